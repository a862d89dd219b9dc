"""Good alignments fast: two partial alignments over different annotators are joined in the best way by matching."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, WorkBudget


def merge_alignments(alignment_problem: AlignmentProblem, one: Bools, other: Bools, budget: WorkBudget) -> Bools:
    """Clusters of some annotators and of others, each with at most one of the others: the best of all matchings."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    marks = len(alignment_problem)
    budget.spend(STEPS_PER_CALL / 5 + len(one) * (marks * (marks + len(other)) / 25 + 10 * len(other)))
    saved = np.minimum(
        one.astype(np.float64) @ alignment_problem.joint_costs @ other.T.astype(np.float64) - 1, 0
    )  # one cluster less
    row, column = linear_sum_assignment(saved)
    worthwhile = saved[row, column] < 0
    row, column = row[worthwhile], column[worthwhile]
    both = one.copy()
    both[row] |= other[column]
    alone = np.ones(len(other), dtype=bool)
    alone[column] = False
    return np.concatenate([both, other[alone]])


def find_good_alignments(
    alignment_problem: AlignmentProblem, rng: np.random.Generator, budget: WorkBudget
) -> list[Bools]:
    """Alignments, (K, U) each, the best last; with more annotators from more starts."""
    alignments = [
        alignment
        for _ in range(1 + len(alignment_problem.marks) // 15)
        for alignment in _improve_alignments(alignment_problem, rng, budget)
    ]
    return sorted(alignments, key=lambda clusters: -alignment_problem.costs(clusters).sum())


def _improve_alignments(
    alignment_problem: AlignmentProblem, rng: np.random.Generator, budget: WorkBudget
) -> list[Bools]:
    """Better and better: annotators are added one by one, then split in two groups and joined again.

    Splits are drawn until as many in a row as there are annotators have changed nothing.
    """
    alone, m = np.eye(len(alignment_problem), dtype=bool), len(alignment_problem.marks)
    order = rng.permutation(m)
    clusters = alone[alignment_problem.marks[order[0]]]
    for annotator in order[1:]:
        clusters = merge_alignments(alignment_problem, clusters, alone[alignment_problem.marks[annotator]], budget)
    alignments, cost, failed = [clusters], alignment_problem.costs(clusters).sum(), 0
    while failed < m and m > 2 and budget.left:
        side = np.isin(alignment_problem.owner, rng.permutation(m)[: rng.integers(1, m // 2 + 1)])
        first, second = (part[part.any(axis=1)] for part in (alignments[-1] & side, alignments[-1] & ~side))
        again = merge_alignments(alignment_problem, first, second, budget)
        if (less := alignment_problem.costs(again).sum()) < cost - 1e-12:
            alignments, cost, failed = [*alignments, again], less, 0
        else:
            failed += 1
    return alignments
