"""Corrected texts: a text after applying the corrections that its marks suggest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from finecomb.core.records import Mark
from finecomb.core.span import TEXT_PART

CORRECTION_QUESTION = "correction"


@dataclass(frozen=True, slots=True)
class CorrectedText:
    """A text with the corrections of its marks applied."""

    text: str
    applied: int
    """Number of corrections applied."""
    left_out: tuple[str, ...]
    """IDs of marks whose correction was not applied: the mark has several spans, is not on the text, or overlaps
    another.
    """


def apply_corrections(text: str, marks: Iterable[Mark]) -> CorrectedText:
    """Replace each mark's quote with its `correction`; if marks overlap, only the first is applied.

    >>> from finecomb.core.span import Span
    >>> wrong = Mark(id="m", spans=(Span(4, 6),), quotes=("30",), label=None, answers={"correction": "28"})
    >>> apply_corrections("won 30-20", [wrong]).text
    'won 28-20'
    """
    pieces: list[str] = []
    end, applied, left_out = 0, 0, []
    for mark in sorted((mark for mark in marks if mark.answers.get(CORRECTION_QUESTION)), key=lambda mark: mark.spans):
        span = mark.spans[0] if len(mark.spans) == 1 else None
        if span is None or span.part != TEXT_PART or span.start < end:
            left_out.append(mark.id)
            continue
        pieces += [text[end : span.start], str(mark.answers[CORRECTION_QUESTION])]
        end, applied = span.end, applied + 1
    return CorrectedText("".join([*pieces, text[end:]]), applied, tuple(left_out))
