"""The one place where work is spread out; a result never depends on how it was cut."""
