"""Texts with the corrections of marks applied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from finecomb.core.records import Mark
from finecomb.core.span import TEXT

CORRECTION = "correction"


@dataclass(frozen=True, slots=True)
class TextCorrection:
    """A text after corrections."""

    text: str
    applied: int
    """How many marks' corrections are in it."""
    left_out: tuple[str, ...]
    """Ids of marks with a correction that could not be applied: several spans, or words that another one changed."""


def corrected_text(text: str, marks: Iterable[Mark]) -> TextCorrection:
    """The text with each mark's `correction` in place of its words; of two that overlap the first in the text counts.

    >>> from finecomb.core.span import Span
    >>> wrong = Mark(id="m", spans=(Span(4, 6),), quotes=("30",), label=None, answers={"correction": "28"})
    >>> corrected_text("won 30-20", [wrong]).text
    'won 28-20'
    """
    pieces: list[str] = []
    end, applied, left_out = 0, 0, []
    for mark in sorted((mark for mark in marks if mark.answers.get(CORRECTION)), key=lambda mark: mark.spans):
        span = mark.spans[0] if len(mark.spans) == 1 else None
        if span is None or span.part != TEXT or span.start < end:
            left_out.append(mark.id)
            continue
        pieces += [text[end : span.start], str(mark.answers[CORRECTION])]
        end, applied = span.end, applied + 1
    return TextCorrection("".join([*pieces, text[end:]]), applied, tuple(left_out))
