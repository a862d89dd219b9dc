"""Intervals, resampling and tests over whole documents."""
