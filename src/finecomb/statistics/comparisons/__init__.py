"""Comparisons of systems and tests of human-or-machine studies."""
