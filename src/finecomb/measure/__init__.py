"""Numbers from annotations: how often, how much, how sure."""
