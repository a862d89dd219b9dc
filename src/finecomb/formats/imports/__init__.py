"""Import of tables, JSON and logs with paths, guessed roles and import maps."""
