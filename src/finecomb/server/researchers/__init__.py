"""Server routes and pages for researchers."""
