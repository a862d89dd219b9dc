"""Parallel execution on local processes or a Ray cluster. Results never depend on the number of workers."""
