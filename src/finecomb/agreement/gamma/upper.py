"""Good alignments fast: two partial alignments over different annotators are joined in the best way by matching."""

from __future__ import annotations

import time

import numpy as np

from finecomb.agreement.gamma.continuum import Bools
from finecomb.agreement.gamma.problem import AlignmentProblem


def joined(own: AlignmentProblem, one: Bools, other: Bools) -> Bools:
    """Clusters of some annotators and of others, each with at most one of the others: the best of all matchings."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    saved = np.minimum(one.astype(np.float64) @ own.joint @ other.T.astype(np.float64) - 1, 0)  # one cluster less
    row, column = linear_sum_assignment(saved)
    kept = saved[row, column] < 0
    row, column = row[kept], column[kept]
    both = one.copy()
    both[row] |= other[column]
    alone = np.ones(len(other), dtype=bool)
    alone[column] = False
    return np.concatenate([both, other[alone]])


def good_alignments(own: AlignmentProblem, rng: np.random.Generator, deadline: float) -> list[Bools]:
    """Alignments, (K, U) each, the best last; with more annotators from more starts."""
    found = [each for _ in range(1 + len(own.marks) // 15) for each in _improving(own, rng, deadline)]
    return sorted(found, key=lambda clusters: -own.costs(clusters).sum())


def _improving(own: AlignmentProblem, rng: np.random.Generator, deadline: float) -> list[Bools]:
    """Better and better: annotators are added one by one, then split in two groups and joined again.

    Splits are drawn until as many in a row as there are annotators have changed nothing.
    """
    alone, m = np.eye(len(own), dtype=bool), len(own.marks)
    order = rng.permutation(m)
    clusters = alone[own.marks[order[0]]]
    for annotator in order[1:]:
        clusters = joined(own, clusters, alone[own.marks[annotator]])
    found, cost, failed = [clusters], own.costs(clusters).sum(), 0
    while failed < m and m > 2 and time.monotonic() < deadline:
        side = np.isin(own.owner, rng.permutation(m)[: rng.integers(1, m // 2 + 1)])
        again = joined(own, *(part[part.any(axis=1)] for part in (found[-1] & side, found[-1] & ~side)))
        if (less := own.costs(again).sum()) < cost - 1e-12:
            found, cost, failed = [*found, again], less, 0
        else:
            failed += 1
    return found
