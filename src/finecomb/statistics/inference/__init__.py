"""Confidence intervals, resampling and significance tests over documents."""
