"""Fast heuristic alignments, which merge alignments of disjoint sets of annotators by optimal matching."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, WorkBudget


def merge_alignments(alignment_problem: AlignmentProblem, one: Bools, other: Bools, budget: WorkBudget) -> Bools:
    """Merge the clusters of two disjoint sets of annotators by the lowest-cost matching."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    marks = len(alignment_problem)
    budget.spend(STEPS_PER_CALL / 5 + len(one) * (marks * (marks + len(other)) / 25 + 10 * len(other)))
    # A merged pair saves one cluster.
    saved = np.minimum(one.astype(np.float64) @ alignment_problem.joint_costs @ other.T.astype(np.float64) - 1, 0)
    row, column = linear_sum_assignment(saved)
    worthwhile = saved[row, column] < 0
    row, column = row[worthwhile], column[worthwhile]
    merged = one.copy()
    merged[row] |= other[column]
    is_unmatched = np.ones(len(other), dtype=bool)
    is_unmatched[column] = False
    return np.concatenate([merged, other[is_unmatched]])


def find_good_alignments(
    alignment_problem: AlignmentProblem, rng: np.random.Generator, budget: WorkBudget
) -> list[Bools]:
    """Return heuristic alignments, (K, U) each, best last. The number of starts grows with the number of annotators.

    Each start adds annotators one by one, then repeatedly splits them into two groups and merges the groups again. It
    stops after as many consecutive splits without improvement as there are annotators.
    """
    singletons, m = np.eye(len(alignment_problem), dtype=bool), len(alignment_problem.marks)
    alignments: list[Bools] = []
    for _ in range(1 + m // 15):
        order = rng.permutation(m)
        best = singletons[alignment_problem.marks[order[0]]]
        for annotator in order[1:]:
            best = merge_alignments(alignment_problem, best, singletons[alignment_problem.marks[annotator]], budget)
        alignments.append(best)
        cost, failed = alignment_problem.cluster_costs(best).sum(), 0
        while failed < m and m > 2 and budget.left:
            side = np.isin(alignment_problem.owner, rng.permutation(m)[: rng.integers(1, m // 2 + 1)])
            first, second = (part[part.any(axis=1)] for part in (best & side, best & ~side))
            candidate = merge_alignments(alignment_problem, first, second, budget)
            failed += 1
            if (lower_cost := alignment_problem.cluster_costs(candidate).sum()) < cost - 1e-12:
                best, cost, failed = candidate, lower_cost, 0
                alignments.append(best)
    return sorted(alignments, key=lambda clusters: -alignment_problem.cluster_costs(clusters).sum())
