"""English pronouns by gender and number."""

from __future__ import annotations

MALE = ("he", "him", "his", "himself")
FEMALE = ("she", "her", "hers", "herself")
PLURAL = ("they", "them", "their", "theirs", "themselves", "we", "us", "our", "ours", "ourselves", "yourselves")
FIRST_SECOND_PERSON = ("i", "me", "my", "mine", "myself", "you", "your", "yours", "yourself")
