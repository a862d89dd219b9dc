"""Adjudication of disagreements between annotators."""
