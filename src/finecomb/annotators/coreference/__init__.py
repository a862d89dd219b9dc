"""Coreference of persons in English texts: chains of mentions and a rule-based resolver."""
