"""Continua for tests of gamma, and the best alignment by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st

from finecomb.statistics.agreement.gamma.continuum import Continuum

ContinuumMark = tuple[int, float, float, int]
"""Annotator, start, end and category of a mark."""


def make_continuum(annotators: int, marks: Sequence[ContinuumMark], length: float = 100.0) -> Continuum:
    owner, start, end, category = (
        (np.array([mark[at] for mark in marks]) for at in range(4)) if marks else [np.zeros(0)] * 4
    )
    return Continuum.from_arrays(
        annotators,
        length,
        owner.astype(np.int64),
        start.astype(np.float64),
        end.astype(np.float64),
        category.astype(np.int64),
    )


def random_continuum(
    rng: np.random.Generator, annotators: int, max_marks: int, length: int = 60, categories: int = 3
) -> Continuum:
    """Draw marks near some true positions and some at random positions; at least one."""
    places = rng.integers(0, length, size=3)
    marks: list[ContinuumMark] = []
    for annotator in range(annotators):
        for _ in range(rng.integers(0, max_marks + 1)):
            start = int(rng.choice(places) + rng.integers(-3, 4)) if rng.random() < 0.7 else int(rng.integers(length))
            start = min(max(start, 0), length - 1)
            marks.append((annotator, start, start + int(rng.integers(1, 12)), int(rng.integers(categories))))
    marks = list(dict.fromkeys(marks)) or [(0, 1, 5, 0)]  # pygamma-agreement removes duplicate marks
    return make_continuum(annotators, marks, float(max(mark[2] for mark in marks)))


@st.composite
def small_continua(draw: st.DrawFn, annotators: int = 4, marks: int = 7) -> Continuum:
    """Generate continua of two to four annotators and up to seven freely overlapping marks, including omissions."""
    n = draw(st.integers(2, annotators))
    one = st.tuples(st.integers(0, n - 1), st.integers(0, 20), st.integers(0, 8), st.integers(0, 2))
    given = draw(st.lists(one, min_size=1, max_size=marks))
    return make_continuum(n, [(owner, start, start + long, category) for owner, start, long, category in given], 30.0)


def slow_distance(marks: Continuum, one: int, other: int, alpha: float = 1.0, beta: float = 1.0) -> float:
    """Compute the combined dissimilarity of two marks, with Delta = 1."""
    lengths = [marks.end[at] - marks.start[at] for at in (one, other)]
    apart = abs(marks.start[one] - marks.start[other]) + abs(marks.end[one] - marks.end[other])
    return float(alpha * (apart / sum(lengths)) ** 2 + beta * (marks.category[one] != marks.category[other]))


def slow_unitary_disorder(marks: Continuum, cluster: Sequence[int], alpha: float = 1.0, beta: float = 1.0) -> float:
    """Compute the disorder of a unitary alignment: the mean over pairs of annotators, 1 where a mark is missing."""
    by_owner = {int(marks.owner[at]): at for at in cluster}
    pairs = list(itertools.combinations(range(marks.annotators), 2))
    each = [
        slow_distance(marks, by_owner[a], by_owner[b], alpha, beta) if a in by_owner and b in by_owner else 1.0
        for a, b in pairs
    ]
    return sum(each) / len(pairs)


def unitary_alignments(marks: Continuum) -> Iterator[tuple[int, ...]]:
    """Return all non-empty sets of marks with at most one mark per annotator."""
    choices = [[-1, *np.flatnonzero(marks.owner == annotator).tolist()] for annotator in range(marks.annotators)]
    for chosen in itertools.product(*choices):
        if any(at >= 0 for at in chosen):
            yield tuple(at for at in chosen if at >= 0)


def slow_disorder(marks: Continuum, soft: bool = False, alpha: float = 1.0, beta: float = 1.0) -> float:
    """Find the lowest disorder over all partitions (or covers) of the marks into unitary alignments."""
    sets = {
        sum(1 << at for at in cluster): slow_unitary_disorder(marks, cluster, alpha, beta)
        for cluster in unitary_alignments(marks)
    }
    least = [0.0] + [math.inf] * ((1 << len(marks)) - 1)
    for done in range(len(least)):
        if done == len(least) - 1 or math.isinf(least[done]):
            continue
        first = (~done & (done + 1)).bit_length() - 1  # the first mark without a cluster
        for members, cost in sets.items():
            if members >> first & 1 and (soft or not members & done):
                least[done | members] = min(least[done | members], least[done] + cost)
    return least[-1] / marks.marks_per_annotator
