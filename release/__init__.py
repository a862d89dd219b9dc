"""What surrounds a release: locked requirements, their licences, and a wheel that is the same twice."""
