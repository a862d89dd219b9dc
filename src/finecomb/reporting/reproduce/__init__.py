"""Tables and figures of five papers in their original layout, computed from any study with a suitable protocol."""
