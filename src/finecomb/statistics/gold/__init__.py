"""Gold: annotators merged into one standard, and any judge scored against it."""
