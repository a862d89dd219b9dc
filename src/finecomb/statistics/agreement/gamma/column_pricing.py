"""Heuristic pricing: clusters with negative reduced costs, found by coordinate descent from many starts."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Floats
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem

_MAX_SWEEPS = 10


def improve_clusters_by_descent(
    alignment_problem: AlignmentProblem, prices: Floats, starts: Bools
) -> tuple[Bools, Floats]:
    """Improve clusters by choosing the best mark of each annotator in turn, and return them with their reduced costs.

    The best mark of an annotator is the one that lowers the reduced cost most while the other marks are fixed. If no
    mark lowers it, the annotator has no mark in the cluster.
    """
    clusters = starts.astype(np.float64)
    adds = clusters @ alignment_problem.joint_costs - prices  # (K, U): change of the reduced cost by each mark
    for _ in range(_MAX_SWEEPS):
        changed = False
        for marks in alignment_problem.marks:
            gains = adds[:, marks]
            least = gains.min(axis=1, keepdims=True)
            best = (gains == least) & (least < 0)
            best &= np.cumsum(best, axis=1) == 1  # the first of several identical marks
            change = best - clusters[:, marks]
            if change.any():
                adds += change @ alignment_problem.joint_costs[marks]
                clusters[:, marks] = best
                changed = True
        if not changed:
            break
    reduced = 1 + ((adds - prices) * clusters).sum(axis=1) / 2
    return clusters > 0.5, reduced
