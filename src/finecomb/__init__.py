"""Finecomb: go through generated text with a fine-tooth comb."""
