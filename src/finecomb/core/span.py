"""Spans: half-open intervals of code points, and operations on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from finecomb.core.errors import SpanError

TEXT_PART = "text"

Offsets = NDArray[np.int64]  # (n, 2): start and end of each token or sentence, sorted, without overlaps


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open interval [start, end) of code points of one part; start == end marks an omission."""

    start: int
    end: int
    part: str = TEXT_PART

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise SpanError(f"span [{self.start}, {self.end}) must satisfy 0 <= start <= end")

    def __len__(self) -> int:
        return self.end - self.start

    def __bool__(self) -> bool:
        return True  # An omission has length 0 but is still a span.

    def overlap_length(self, other: Span) -> int:
        """Return the number of code points that both spans cover."""
        if self.part != other.part:
            return 0
        return max(0, min(self.end, other.end) - max(self.start, other.start))

    def intersects(self, other: Span) -> bool:
        """Return True if the spans overlap; an omission overlaps a span that it lies in or touches."""
        if self.part != other.part:
            return False
        if len(self) and len(other):
            return self.start < other.end and other.start < self.end
        return self.start <= other.end and other.start <= self.end

    def extract(self, text: str) -> str:
        """Return the part of `text` that the span covers; a span that ends after the text is rejected."""
        if self.end > len(text):
            raise SpanError(
                f"span [{self.start}, {self.end}) ends after the {self.part}, which has {len(text)} characters"
            )
        return text[self.start : self.end]

    def to_wire(self) -> list[int | str]:
        """Return the span as stored in files: `[start, end]` on the text, `[part, start, end]` on other parts."""
        return [self.start, self.end] if self.part == TEXT_PART else [self.part, self.start, self.end]

    @classmethod
    def from_wire(cls, value: Any) -> Span:
        """Parse `[start, end]` or `[part, start, end]`."""
        if type(value) is list and len(value) == 2:  # the usual case
            start, end = value
            if type(start) is int and type(end) is int:
                return cls(start, end)
        if isinstance(value, Span):
            return value
        if isinstance(value, list | tuple):
            *part, start, end = value if len(value) in (2, 3) else (None, None)
            if type(start) is int and type(end) is int and (not part or isinstance(part[0], str)):
                return cls(start, end, *part)
        raise SpanError(f"a span must be [start, end] or [part, start, end], found {value!r}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.from_wire, serialization=core_schema.plain_serializer_function_ser_schema(cls.to_wire)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        integer, text = {"type": "integer", "minimum": 0}, {"type": "string"}
        return {
            "description": "[start, end] on the text, or [part, start, end] on a named context",
            "anyOf": [
                {"type": "array", "prefixItems": [integer, integer], "minItems": 2, "maxItems": 2},
                {"type": "array", "prefixItems": [text, integer, integer], "minItems": 3, "maxItems": 3},
            ],
        }


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Merge overlapping and adjacent spans, in order; omissions inside other spans are dropped.

    >>> merge_spans([Span(3, 6), Span(0, 4), Span(8, 9)])
    (Span(start=0, end=6, part='text'), Span(start=8, end=9, part='text'))
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.part, span.start, span.end)):
        last = merged[-1] if merged else None
        if last is not None and last.part == span.part and span.start <= last.end:
            merged[-1] = Span(last.start, max(last.end, span.end), span.part)
        else:
            merged.append(span)
    return tuple(merged)


def covered_length(spans: Iterable[Span]) -> int:
    """Return the number of code points covered by at least one span."""
    return sum(len(span) for span in merge_spans(spans))


def covered_token_mask(spans: Iterable[Span], offsets: Offsets) -> NDArray[np.bool_]:
    """Return a mask of the tokens (or sentences, segments) at `offsets` that a span covers at least in part, (n,).

    An omission covers no character, so it covers no token.
    """
    result = np.zeros(len(offsets), dtype=bool)
    for span in spans:
        first, last = token_range(span, offsets)
        result[first:last] = True
    return result


def token_range(span: Span, offsets: Offsets) -> tuple[int, int]:
    """Return the half-open range of tokens that share a character with `span`; empty for an omission."""
    if not len(span):
        return 0, 0
    first = int(np.searchsorted(offsets[:, 1], span.start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], span.end, side="left"))
    return first, max(first, last)


def most_overlapping_index(span: Span, offsets: Offsets) -> int:
    """Return the index of the token, sentence or segment that contains most of a span; in a tie, the first.

    An omission belongs to the piece that it lies in or touches; between two pieces, to the first. Without pieces, -1 is
    returned.
    """
    if not len(span):
        inside = np.flatnonzero((offsets[:, 0] <= span.start) & (span.start <= offsets[:, 1]))
        return int(inside[0]) if len(inside) else -1
    first, last = token_range(span, offsets)
    if first == last:
        return -1
    shares = np.minimum(offsets[first:last, 1], span.end) - np.maximum(offsets[first:last, 0], span.start)
    return first + int(np.argmax(shares))


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A range of text between two consecutive span edges, with the indices of the owners whose spans cover it."""

    start: int
    end: int
    owners: tuple[int, ...]


def split_at_edges(length: int, spans: Sequence[Sequence[Span]], part: str = TEXT_PART) -> list[TextPiece]:
    """Split `[0, length)` at every edge of the spans; `spans[i]` belong to owner i. The pieces cover the part exactly.

    An omission becomes an empty piece at its position, before the text that follows it.
    """
    events: list[tuple[int, int, int]] = []  # (position, 0 for an end or 1 for a start, owner)
    gaps: dict[int, list[int]] = {}
    for owner, owner_spans in enumerate(spans):
        for span in merge_spans(span for span in owner_spans if span.part == part):
            if len(span):
                events += [(span.start, 1, owner), (span.end, 0, owner)]
            else:
                gaps.setdefault(span.start, []).append(owner)
    edges = sorted({0, length, *gaps, *(position for position, _, _ in events)})
    changes = {edge: [] for edge in edges}  # type: dict[int, list[tuple[int, int]]]
    for position, kind, owner in sorted(events):
        changes[position].append((kind, owner))
    result: list[TextPiece] = []
    active: set[int] = set()
    for edge, following in itertools.zip_longest(edges, edges[1:]):
        for kind, owner in changes[edge]:
            (active.add if kind else active.discard)(owner)
        if edge in gaps:
            result.append(TextPiece(edge, edge, tuple(gaps[edge])))
        if following is not None:
            result.append(TextPiece(edge, following, tuple(sorted(active))))
    return result
