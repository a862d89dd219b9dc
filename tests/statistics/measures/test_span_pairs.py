from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from finecomb.statistics.measures.span_pairs import SpanArrays, mark_pairs_from_span_pairs, overlapping_span_pairs

Spans = list[tuple[int, int, int]]
SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.integers(0, 3)), max_size=8)


def line(spans: Spans) -> SpanArrays:
    columns = np.array([(start, start + length, owner) for start, length, owner in spans], dtype=np.int64)
    return SpanArrays(*columns.reshape(len(spans), 3).T)


def slow_meets(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return True if two spans share a character, or if one is an omission inside or next to the other."""
    (a, b), (c, d) = one, other
    if a == b or c == d:
        return a <= d and c <= b if (a == b) != (c == d) else a == c
    return a < d and c < b


@given(SPANS, SPANS)
def test_pairs_are_those_that_meet(one: Spans, other: Spans) -> None:
    sides = line(one), line(other)
    expected: dict[tuple[int, int], int] = {}
    for start, length, owner in one:
        for start_2, length_2, owner_2 in other:
            edges = (start, start + length), (start_2, start_2 + length_2)
            if slow_meets(*edges):
                shared = len(set(range(*edges[0])) & set(range(*edges[1])))
                expected[owner, owner_2] = expected.get((owner, owner_2), 0) + shared
    pairs = mark_pairs_from_span_pairs(overlapping_span_pairs(*sides), *sides)
    keys = list(zip(pairs.one.tolist(), pairs.other.tolist(), strict=True))
    assert keys == sorted(expected)
    assert pairs.shared.tolist() == [expected[key] for key in keys]
