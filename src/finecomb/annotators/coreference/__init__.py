"""Coreference resolution for persons in English texts: mention chains and a rule-based resolver."""
