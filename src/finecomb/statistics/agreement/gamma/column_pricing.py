"""Clusters that are worth more than they cost, found by improving many of them at once."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Floats
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem

_MAX_SWEEPS = 10


def improve_clusters_by_descent(
    alignment_problem: AlignmentProblem, prices: Floats, starts: Bools
) -> tuple[Bools, Floats]:
    """Clusters and their reduced costs, each reached from its start by giving annotator after annotator the best mark.

    The best mark of one annotator while the others stay: the one that lowers the reduced cost most, or none.
    """
    clusters = starts.astype(np.float64)
    adds = clusters @ alignment_problem.joint_costs - prices  # (K, U): what each mark would add
    for _ in range(_MAX_SWEEPS):
        changed = False
        for marks in alignment_problem.marks:
            gains = adds[:, marks]
            least = gains.min(axis=1, keepdims=True)
            best = (gains == least) & (least < 0)
            best &= np.cumsum(best, axis=1) == 1  # of equals the first
            change = best - clusters[:, marks]
            if change.any():
                adds += change @ alignment_problem.joint_costs[marks]
                clusters[:, marks] = best
                changed = True
        if not changed:
            break
    reduced = 1 + ((adds - prices) * clusters).sum(axis=1) / 2
    return clusters > 0.5, reduced
