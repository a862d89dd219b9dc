"""The shipped Scarecrow protocol: its labels, its texts, and the 100 points of its qualification (Dou et al. 2022, B.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from finecomb.core.protocol import Choice, Example, Exercise, Protocol, Solution, locate
from finecomb.core.protocol_text import format_yaml, parse_protocol
from finecomb.core.qualification import Given, grade
from finecomb.core.records import Answer, Mark
from finecomb.core.span import Span
from finecomb.protocols import shipped

PROTOCOL: Protocol = shipped("scarecrow")

# Label, title, group and flag in the order in which they are shown.
LABELS = [
    ("grammar-usage", "Grammar and usage", "language", "GU"),
    ("off-prompt", "Off-prompt", "language", "OP"),
    ("redundant", "Redundant", "language", "RD"),
    ("self-contradiction", "Self-contradiction", "language", "SC"),
    ("incoherent", "Incoherent", "language", "IN"),
    ("bad-math", "Bad math", "factual", "BM"),
    ("encyclopedic", "Encyclopedic", "factual", "EN"),
    ("commonsense", "Commonsense", "factual", "CS"),
    ("needs-google", "Needs Google", "reader", "NG"),
    ("technical-jargon", "Technical jargon", "reader", "TJ"),
]
NAMES = [name for name, _, _, _ in LABELS]
WITH_ANTECEDENT = ("redundant", "self-contradiction")


def exercises(part: str) -> tuple[Exercise, ...]:
    return next(each.exercises for each in qualification_parts() if each.name == part)


def choices() -> tuple[Choice, ...]:
    return next(each.choices for each in qualification_parts() if each.name == "choices")


def qualification_parts():  # type: ignore[no-untyped-def]
    assert PROTOCOL.qualification is not None
    return PROTOCOL.qualification.parts
