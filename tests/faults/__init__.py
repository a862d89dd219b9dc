"""Fault injection tests on a real server under load. `python -m tests.faults` writes their table."""
