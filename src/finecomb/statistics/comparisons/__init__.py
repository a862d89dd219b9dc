"""Comparisons of systems, and tests for human-or-machine studies."""
