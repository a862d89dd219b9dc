"""Measures of annotations: counts, coverage, rates, scores and lengths."""
