"""Pairs of marks that overlap: spans on one line that meet, and what their marks share."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class SpanArrays(NamedTuple):
    """Spans of many texts on one line, texts apart from each other."""

    start: Ints
    end: Ints
    owner: Ints
    """Which mark a span belongs to."""


class OverlapPairs(NamedTuple):
    """Things of one side that meet things of the other."""

    one: Ints
    other: Ints
    shared: Floats
    """Characters that both cover."""


def overlapping_span_pairs(one: SpanArrays, other: SpanArrays) -> OverlapPairs:
    """Every pair of spans that share a character; an omission meets what it lies in or touches.

    Looked at in half steps: a span is [2s, 2e), and an omission at s is [2s - 1, 2s + 1).
    """
    (low, high), (other_low, other_high) = (_doubled_span_ends(line) for line in (one, other))
    first = _pairs_starting_within(low, high, other_low, "left")  # spans of the other side that start inside
    second = _pairs_starting_within(other_low, other_high, low, "right")  # those of this side that start later
    a, b = np.concatenate([first[0], second[1]]), np.concatenate([first[1], second[0]])
    shared = np.minimum(one.end[a], other.end[b]) - np.maximum(one.start[a], other.start[b])
    return OverlapPairs(a, b, np.maximum(shared, 0).astype(np.float64))


def mark_pairs_from_span_pairs(pairs: OverlapPairs, one: SpanArrays, other: SpanArrays) -> OverlapPairs:
    """Each pair of marks once, in order, with the sum of what its spans share."""
    size = int(other.owner.max(initial=0)) + 1
    keys, inverse = np.unique(one.owner[pairs.one] * size + other.owner[pairs.other], return_inverse=True)
    a, b = np.divmod(keys, size)
    return OverlapPairs(a, b, np.bincount(inverse, pairs.shared, len(keys)).astype(np.float64))


def _doubled_span_ends(line: SpanArrays) -> tuple[Ints, Ints]:
    empty = line.start == line.end
    return 2 * line.start - empty, 2 * line.end + empty


def _pairs_starting_within(low: Ints, high: Ints, starts: Ints, side: Literal["left", "right"]) -> tuple[Ints, Ints]:
    """Pairs (i, j) with low[i] <= starts[j] < high[i], or low[i] < starts[j] with side `right`."""
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    first, last = np.searchsorted(ordered, low, side), np.searchsorted(ordered, high, "left")
    counts = np.maximum(last - first, 0)
    one = np.repeat(np.arange(len(low)), counts)
    at = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return one, order[at]
