"""Server routes and pages for annotators."""
