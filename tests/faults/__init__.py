"""What can go wrong around a server, done to a real one under load. `python -m tests.faults` writes the table of it."""
