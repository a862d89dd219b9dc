"""Automatic annotators: language models, detectors, fact checkers and simulated annotators."""
