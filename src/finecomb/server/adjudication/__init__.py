"""Deciding where annotators disagree."""
