"""Solver for the best alignment, with a lower bound on the disorder of any alignment."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.statistics.agreement.gamma.cluster_search import ClusterSearch
from finecomb.statistics.agreement.gamma.column_pricing import improve_clusters_by_descent
from finecomb.statistics.agreement.gamma.continuum import Bools, Continuum, Floats, Ints
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.heuristic_alignments import find_good_alignments
from finecomb.statistics.agreement.gamma.master_problem import MasterProblem
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem, build_alignment_problem
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, BudgetExceededError, WorkBudget

_REDUCED_COST_TOLERANCE = 1e-8  # reduced costs below minus this count as negative
_BOUND_TOLERANCE = 1e-6  # relative difference at which two bounds count as equal
_MIN_CLUSTER_USE = 1e-3  # a descent starts from clusters with at least this share in the relaxed solution
_COARSER_GAPS = (0.3, 0.1, 0.03, 0.01)  # relative gaps to prove, in this order, if a full proof takes too much work
_RESERVED_WORK_SHARE = 0.3  # share of the budget kept for rounding and coarser bounds
MAX_MARKS_PER_TEXT = 4000
DEFAULT_WORK_UNITS = 60.0
"""Default work limit, in units, for the alignment of one text."""

ProofStatus = Literal["proven", "stopped"]


@dataclass(frozen=True, slots=True)
class BestAlignment:
    """An alignment of a continuum: clusters of marks, with bounds on the lowest possible disorder."""

    clusters: Bools
    """(K, marks): True if the mark is in the cluster. Each mark is in one cluster; with soft gamma, in at least one."""
    status: ProofStatus
    """`proven`: the alignment is optimal. `stopped`: the work limit was reached before a proof."""
    lower: float
    """Lower bound on the disorder of any alignment."""
    upper: float
    """Disorder of this alignment: sum of unitary disorders / mean number of marks per annotator."""

    @property
    def cluster_first_marks(self) -> Ints:
        """First mark in the cluster of each mark, (marks,), or in its first cluster if a mark is in several."""
        return np.asarray(self.clusters.argmax(axis=1)[self.clusters.argmax(axis=0)])


def best_alignment(
    marks: Continuum, dissimilarity: Dissimilarity | None = None, soft: bool = False, work: float = DEFAULT_WORK_UNITS
) -> BestAlignment:
    """Find the alignment of lowest disorder (Mathet et al. 2015, section 5.1) within about `work` units of work.

    With `soft` a mark must be in at least one cluster and can be in several (soft-gamma of pygamma-agreement). Requires
    at least two annotators and one mark.
    """
    if marks.annotators < 2 or not len(marks):
        raise FinecombError(
            f"an alignment requires at least two annotators and one mark, found {marks.annotators} and {len(marks)}"
        )
    dissimilarity = dissimilarity or Dissimilarity()
    alignment_problem = build_alignment_problem(marks, dissimilarity)
    solver = _ColumnGenerationSolver(alignment_problem, soft, WorkBudget.from_units(work))
    clusters, lower, upper = solver.solve()
    proven = upper - lower <= _BOUND_TOLERANCE * max(upper, 1.0)
    scale = dissimilarity.delta / marks.marks_per_annotator
    bound = upper if proven else max(lower, 0.0)
    return BestAlignment(
        clusters[np.lexsort(~clusters.T[::-1])], "proven" if proven else "stopped", bound * scale, upper * scale
    )


class _ColumnGenerationSolver:
    """Column generation: a linear program over clusters. Descent, and finally exact search, adds clusters."""

    def __init__(self, alignment_problem: AlignmentProblem, soft: bool, budget: WorkBudget) -> None:
        self.problem, self.soft = alignment_problem, soft
        self.budget = budget
        self.master = MasterProblem(alignment_problem, soft)
        self.search = ClusterSearch.from_problem(alignment_problem)
        self.prices: Floats = np.zeros(len(alignment_problem))
        self.lower = -math.inf

    def solve(self) -> tuple[Bools, float, float]:
        """Return the clusters of the best alignment found, a lower bound on any alignment's cost, and its own cost."""
        start = find_good_alignments(self.problem, np.random.default_rng(0), self.budget)
        self.best = start[-1]
        self.master.add_clusters(np.eye(len(self.problem), dtype=bool))
        self.master.add_clusters(np.concatenate(start))
        with contextlib.suppress(BudgetExceededError):
            self._generate_columns()
        if self._has_gap:
            self._keep_if_better(self.master.find_integral_vertex(self.budget))
        if self._has_gap:
            every = np.ones(len(self.master.costs), dtype=bool)
            self._keep_if_better(self.master.solve_integer_program(every, self.budget, 0.5)[0])
        with contextlib.suppress(BudgetExceededError):
            if self._has_gap and math.isfinite(self.lower):
                # List all clusters that could close the gap, and choose the best alignment among them. The reduced
                # costs of the clusters of an alignment add up to its cost minus all prices, and none is negative.
                # Therefore no cluster of a better alignment has a reduced cost above the gap.
                gap = self.best_cost - self.lower + _BOUND_TOLERANCE
                self.master.add_clusters(self.search.find_all_below(self.prices, gap, self.budget))
                within = self.master.costs - self.master.clusters @ self.prices < gap
                clusters, bound = self.master.solve_integer_program(within, self.budget)
                self._keep_if_better(clusters)
                self.lower = max(self.lower, min(bound, self.best_cost))
            elif self._has_gap:
                # A full proof took too much work, so prove smaller and smaller gaps while work is left.
                for share in _COARSER_GAPS:
                    short = share * self.best_cost / self.problem.max_cluster_count(self.best_cost)
                    if len(self.search.find_some_below(self.prices, -short, self.budget)):
                        break
                    self._raise_lower_bound(short)
        return self.best, max(self.lower, pairwise_lower_bound(self.problem) if self._has_gap else 0.0), self.best_cost

    @property
    def best_cost(self) -> float:
        return float(self.problem.cluster_costs(self.best).sum())

    @property
    def _has_gap(self) -> bool:
        return self.best_cost - self.lower > _BOUND_TOLERANCE * max(self.best_cost, 1.0)

    def _keep_if_better(self, clusters: Bools | None) -> None:
        if clusters is not None and self.problem.cluster_costs(clusters).sum() < self.best_cost:
            self.best = clusters

    def _generate_columns(self) -> None:
        """Add clusters until none has a negative reduced cost."""
        while True:
            prices, shares = self.master.solve_dual_prices(self.budget)
            self.budget.raise_if_exhausted(_RESERVED_WORK_SHARE)
            self.prices = prices
            starts = np.concatenate(
                [np.eye(len(self.problem), dtype=bool), self.master.clusters[shares > _MIN_CLUSTER_USE]]
            )
            self.budget.spend(STEPS_PER_CALL + len(starts) * len(self.problem) ** 2 / 3)
            clusters, reduced = improve_clusters_by_descent(self.problem, self.prices, starts)
            if self.master.add_clusters(clusters[reduced < -_REDUCED_COST_TOLERANCE]):
                continue
            if not self.master.add_clusters(
                self.search.find_some_below(self.prices, -_REDUCED_COST_TOLERANCE, self.budget, _RESERVED_WORK_SHARE)
            ):
                self._raise_lower_bound(_REDUCED_COST_TOLERANCE)
                return

    def _raise_lower_bound(self, short: float) -> None:
        """Raise the lower bound, given that no cluster has a reduced cost below -`short`.

        The bound is the sum of all prices, minus `short` for each cluster.
        """
        clusters = len(self.problem) if self.soft else self.problem.max_cluster_count(self.best_cost)
        self.lower = max(self.lower, float(self.prices.sum()) - clusters * short)


def pairwise_lower_bound(alignment_problem: AlignmentProblem) -> float:
    """Return a lower bound on the cost, computed without a search by aligning each pair of annotators separately.

    With K clusters, a pair of annotators costs at least K minus the maximum saved by matching their marks. K is at
    least the largest number of marks of one annotator.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    saved = 0.0
    for first in range(len(alignment_problem.marks)):
        for second in range(first):
            gains = np.maximum(
                -alignment_problem.joint_costs[np.ix_(alignment_problem.marks[first], alignment_problem.marks[second])],
                0,
            )
            saved += gains[linear_sum_assignment(gains, maximize=True)].sum()
    return float(max(max(len(marks) for marks in alignment_problem.marks) - saved, 0.0))
