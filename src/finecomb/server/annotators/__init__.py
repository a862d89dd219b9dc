"""What annotators see and send."""
