"""The study server: sign-in, assignment, saving, and the pages that people mark in."""
