"""Pairs of overlapping spans and marks, with the number of characters they share."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class SpanArrays(NamedTuple):
    """Spans of many texts, with offsets such that spans of different texts never overlap."""

    start: Ints
    end: Ints
    owner: Ints
    """Position of the mark that each span belongs to."""


class OverlapPairs(NamedTuple):
    """Pairs of overlapping spans or marks, identified by position."""

    one: Ints
    other: Ints
    shared: Floats
    """Number of characters that each pair shares."""


def overlapping_span_pairs(one: SpanArrays, other: SpanArrays) -> OverlapPairs:
    """Return every pair of spans that share a character; an omission pairs with the spans it lies in or touches.

    Offsets are doubled so that omissions get a width: a span is [2s, 2e), and an omission at s is [2s - 1, 2s + 1).
    """
    low, other_low = (2 * line.start - (line.start == line.end) for line in (one, other))
    high, other_high = (2 * line.end + (line.start == line.end) for line in (one, other))
    first = _pairs_starting_within(low, high, other_low, "left")  # spans of `other` that start within a span of `one`
    second = _pairs_starting_within(other_low, other_high, low, "right")  # spans of `one` that start strictly later
    a, b = np.concatenate([first[0], second[1]]), np.concatenate([first[1], second[0]])
    shared = np.minimum(one.end[a], other.end[b]) - np.maximum(one.start[a], other.start[b])
    return OverlapPairs(a, b, np.maximum(shared, 0).astype(np.float64))


def mark_pairs_from_span_pairs(pairs: OverlapPairs, one: SpanArrays, other: SpanArrays) -> OverlapPairs:
    """Aggregate pairs of spans to sorted pairs of marks, summing the shared characters."""
    size = int(other.owner.max(initial=0)) + 1
    keys, inverse = np.unique(one.owner[pairs.one] * size + other.owner[pairs.other], return_inverse=True)
    a, b = np.divmod(keys, size)
    return OverlapPairs(a, b, np.bincount(inverse, pairs.shared, len(keys)).astype(np.float64))


def _pairs_starting_within(low: Ints, high: Ints, starts: Ints, side: Literal["left", "right"]) -> tuple[Ints, Ints]:
    """Return pairs (i, j) with low[i] <= starts[j] < high[i]; with side `right`, low[i] < starts[j]."""
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    first, last = np.searchsorted(ordered, low, side), np.searchsorted(ordered, high, "left")
    counts = np.maximum(last - first, 0)
    one = np.repeat(np.arange(len(low)), counts)
    position = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return one, order[position]
