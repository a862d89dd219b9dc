"""Reports, tables, figures and marked texts for people to read."""
