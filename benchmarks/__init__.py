"""Benchmarks against peers in the same run, reported as ratios; run with `python -m benchmarks [NAME...]`."""
