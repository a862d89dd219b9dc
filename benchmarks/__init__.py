"""Performance beside a peer in one run, as ratios; `python -m benchmarks [NAME...]`."""
