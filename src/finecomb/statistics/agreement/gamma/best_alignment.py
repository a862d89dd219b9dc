"""The best alignment, with its certificate: a bound that no alignment can beat."""

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
from finecomb.statistics.agreement.gamma.master_problem import MasterProblem
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem, build_alignment_problem
from finecomb.statistics.agreement.gamma.upper_bound import find_good_alignments
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, BudgetExceededError, WorkBudget

_REDUCED_COST_TOLERANCE = 1e-8  # a reduced cost of less than minus this is below zero
_BOUND_TOLERANCE = 1e-6  # relative difference between bounds that are the same
_MIN_CLUSTER_USE = 1e-3  # share of a cluster in a relaxed alignment that is worth a descent
_COARSER_GAPS = (0.3, 0.1, 0.03, 0.01)  # relative gaps that are tried for when a proof takes too much work
_RESERVED_WORK_SHARE = 0.3  # share of the work that is for what can be had without a proof
MAX_MARKS = 4000
DEFAULT_WORK = 60.0
"""Units of work for the alignment of a text, unless somebody says otherwise."""

Status = Literal["proven", "stopped"]


@dataclass(frozen=True, slots=True)
class BestAlignment:
    """An alignment of a continuum: clusters of marks, its disorder, and what is known of the best one."""

    clusters: Bools
    """(K, marks): with soft gamma a mark may be in several clusters, else it is in one."""
    status: Status
    """`proven`: nothing is better. `stopped`: the work allowed was done; one between `lower` and `upper` may be."""
    lower: float
    """No alignment has a lower disorder."""
    upper: float
    """The disorder of this one: sum of unitary disorders / mean number of marks per annotator."""

    @property
    def cluster_first_marks(self) -> Ints:
        """The first mark of each mark's cluster, (marks,); of its first cluster where it is in several."""
        return np.asarray(self.clusters.argmax(axis=1)[self.clusters.argmax(axis=0)])


def best_alignment(
    marks: Continuum, dissimilarity: Dissimilarity | None = None, soft: bool = False, work: float = DEFAULT_WORK
) -> BestAlignment:
    """The alignment of least disorder (Mathet et al. 2015, section 5.1), within about so many units of work.

    With `soft` a mark may be in several clusters and must be in one (soft-gamma of pygamma-agreement). Needs two
    annotators and one mark.
    """
    if marks.annotators < 2 or not len(marks):
        raise FinecombError("an alignment needs two annotators and a mark")
    dissimilarity = dissimilarity or Dissimilarity()
    alignment_problem = build_alignment_problem(marks, dissimilarity)
    solver = _ColumnGenerationSolver(alignment_problem, soft, WorkBudget.from_units(work))
    clusters, lower, upper = solver.solve()
    proven = upper - lower <= _BOUND_TOLERANCE * max(upper, 1.0)
    scale = dissimilarity.delta / marks.marks_per_annotator
    bound = upper if proven else max(lower, 0.0)
    return BestAlignment(_sort_clusters(clusters), "proven" if proven else "stopped", bound * scale, upper * scale)


def _sort_clusters(clusters: Bools) -> Bools:
    return clusters[np.lexsort(~clusters.T[::-1])]


class _ColumnGenerationSolver:
    """Column generation: a linear program over clusters, priced by descent and in the end by exact search."""

    def __init__(self, alignment_problem: AlignmentProblem, soft: bool, budget: WorkBudget) -> None:
        self.problem, self.soft = alignment_problem, soft
        self.budget = budget
        self.master = MasterProblem(alignment_problem, soft)
        self.search = ClusterSearch.from_problem(alignment_problem)
        self.prices: Floats = np.zeros(len(alignment_problem))
        self.lower = -math.inf

    def solve(self) -> tuple[Bools, float, float]:
        """Clusters, a bound below every alignment, and their cost."""
        start = find_good_alignments(self.problem, np.random.default_rng(0), self.budget)
        self.best = start[-1]
        self.master.add(np.eye(len(self.problem), dtype=bool))
        self.master.add(np.concatenate(start))
        with contextlib.suppress(BudgetExceededError):
            self._generate_columns()
        self._round_relaxation()
        with contextlib.suppress(BudgetExceededError):
            if self._has_gap:
                self._close_gap() if math.isfinite(self.lower) else self._prove_coarser_gap()
        return self.best, max(self.lower, pairwise_lower_bound(self.problem) if self._has_gap else 0.0), self.best_cost

    @property
    def best_cost(self) -> float:
        return float(self.problem.costs(self.best).sum())

    @property
    def _has_gap(self) -> bool:
        return self.best_cost - self.lower > _BOUND_TOLERANCE * max(self.best_cost, 1.0)

    def _keep_if_better(self, clusters: Bools | None) -> None:
        if clusters is not None and self.problem.costs(clusters).sum() < self.best_cost:
            self.best = clusters

    def _generate_columns(self) -> None:
        """Add clusters until none is worth more than it costs."""
        while True:
            prices, used = self.master.solve_dual_prices(self.budget)
            self.budget.check(_RESERVED_WORK_SHARE)
            self.prices = prices
            starts = np.concatenate(
                [np.eye(len(self.problem), dtype=bool), self.master.clusters[used > _MIN_CLUSTER_USE]]
            )
            self.budget.spend(STEPS_PER_CALL + len(starts) * len(self.problem) ** 2 / 3)
            clusters, reduced = improve_clusters_by_descent(self.problem, self.prices, starts)
            if self.master.add(clusters[reduced < -_REDUCED_COST_TOLERANCE]):
                continue
            if not self.master.add(
                self.search.find_some_below(self.prices, -_REDUCED_COST_TOLERANCE, self.budget, _RESERVED_WORK_SHARE)
            ):
                self._raise_lower_bound(_REDUCED_COST_TOLERANCE)
                return

    def _raise_lower_bound(self, short: float) -> None:
        """No cluster is worth more than its cost and `short`: what all marks are worth, less that for each cluster."""
        clusters = len(self.problem) if self.soft else self.problem.max_cluster_count(self.best_cost)
        self.lower = max(self.lower, float(self.prices.sum()) - clusters * short)

    def _round_relaxation(self) -> None:
        """From the relaxed alignment to a good alignment of the clusters known."""
        if self._has_gap:
            self._keep_if_better(self.master.integral_vertex(self.budget))
        if self._has_gap:
            self._keep_if_better(
                self.master.solve_integer_program(np.ones(len(self.master.costs), dtype=bool), self.budget, 0.5)[0]
            )

    def _close_gap(self) -> None:
        """List all clusters that could close the gap, and pick the best alignment of these.

        The reduced costs of an alignment's clusters add up to its cost less the prices of all marks, and none is below
        zero. So none of a better alignment is above the gap.
        """
        gap = self.best_cost - self.lower + _BOUND_TOLERANCE
        self.master.add(self.search.find_all_below(self.prices, gap, self.budget))
        within = self.master.costs - self.master.clusters @ self.prices < gap
        clusters, bound = self.master.solve_integer_program(within, self.budget)
        self._keep_if_better(clusters)
        self.lower = max(self.lower, min(bound, self.best_cost))

    def _prove_coarser_gap(self) -> None:
        """When the proof took too much work: show that no alignment is much better, less and less while any is left."""
        for share in _COARSER_GAPS:
            short = share * self.best_cost / self.problem.max_cluster_count(self.best_cost)
            if len(self.search.find_some_below(self.prices, -short, self.budget)):
                return
            self._raise_lower_bound(short)


def pairwise_lower_bound(alignment_problem: AlignmentProblem) -> float:
    """A bound below every alignment that needs no search: each two annotators aligned in the best way for them alone.

    With K clusters two annotators cost at least K - (the most that matching their marks saves), and K is at least the
    greatest number of marks of an annotator.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    saved = 0.0
    for one in range(len(alignment_problem.marks)):
        for other in range(one):
            gains = np.maximum(
                -alignment_problem.joint_costs[np.ix_(alignment_problem.marks[one], alignment_problem.marks[other])], 0
            )
            saved += gains[linear_sum_assignment(gains, maximize=True)].sum()
    return float(max(max(len(marks) for marks in alignment_problem.marks) - saved, 0.0))
