"""Machines that annotate: language models, detectors and checkers, and simulated annotators."""
