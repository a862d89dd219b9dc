"""What researchers see and do."""
