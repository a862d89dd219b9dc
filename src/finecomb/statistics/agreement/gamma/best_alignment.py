"""The best alignment, with its certificate: a bound that no alignment can beat."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.statistics.agreement.gamma.cluster_search import Search
from finecomb.statistics.agreement.gamma.column_pricing import descent
from finecomb.statistics.agreement.gamma.continuum import Bools, Continuum, Floats, Ints
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.master_problem import Master
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem, problem
from finecomb.statistics.agreement.gamma.upper_bound import good_alignments
from finecomb.statistics.agreement.gamma.work_budget import CALL, GaveUpError, WorkBudget

_NEGATIVE = 1e-8  # a reduced cost of less than minus this is below zero
_SAME = 1e-6  # relative difference between bounds that are the same
_USED = 1e-3  # share of a cluster in a relaxed alignment that is worth a descent
_COARSER = (0.3, 0.1, 0.03, 0.01)  # relative gaps that are tried for when a proof takes too much work
_KEPT = 0.3  # share of the work that is for what can be had without a proof
MOST_MARKS = 4000
WORK = 60.0
"""Units of work for the alignment of a text, unless somebody says otherwise."""

Status = Literal["proven", "stopped"]


@dataclass(frozen=True, slots=True)
class Best:
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
    def firsts(self) -> Ints:
        """The first mark of each mark's cluster, (marks,); of its first cluster where it is in several."""
        return np.asarray(self.clusters.argmax(axis=1)[self.clusters.argmax(axis=0)])


def best_alignment(
    marks: Continuum, dissimilarity: Dissimilarity | None = None, soft: bool = False, work: float = WORK
) -> Best:
    """The alignment of least disorder (Mathet et al. 2015, section 5.1), within about so many units of work.

    With `soft` a mark may be in several clusters and must be in one (soft-gamma of pygamma-agreement). Needs two
    annotators and one mark.
    """
    if marks.annotators < 2 or not len(marks):
        raise FinecombError("an alignment needs two annotators and a mark")
    dissimilarity = dissimilarity or Dissimilarity()
    alignment_problem = problem(marks, dissimilarity)
    solver = _Solver(alignment_problem, soft, WorkBudget.of(work))
    clusters, lower, upper = solver.solved()
    proven = upper - lower <= _SAME * max(upper, 1.0)
    scale = dissimilarity.delta / marks.mean_marks
    bound = upper if proven else max(lower, 0.0)
    return Best(_in_order(clusters), "proven" if proven else "stopped", bound * scale, upper * scale)


def _in_order(clusters: Bools) -> Bools:
    return clusters[np.lexsort(~clusters.T[::-1])]


class _Solver:
    """Column generation: a linear program over clusters, priced by descent and in the end by exact search."""

    def __init__(self, alignment_problem: AlignmentProblem, soft: bool, budget: WorkBudget) -> None:
        self.problem, self.soft = alignment_problem, soft
        self.budget = budget
        self.master = Master(alignment_problem, soft)
        self.search = Search.of(alignment_problem)
        self.prices: Floats = np.zeros(len(alignment_problem))
        self.lower = -math.inf

    def solved(self) -> tuple[Bools, float, float]:
        """Clusters, a bound below every alignment, and their cost."""
        start = good_alignments(self.problem, np.random.default_rng(0), self.budget)
        self.best = start[-1]
        self.master.add(np.eye(len(self.problem), dtype=bool))
        self.master.add(np.concatenate(start))
        with contextlib.suppress(GaveUpError):
            self._generate()
        self._round()
        with contextlib.suppress(GaveUpError):
            if self._open:
                self._close() if math.isfinite(self.lower) else self._settle()
        return self.best, max(self.lower, pairwise_bound(self.problem) if self._open else 0.0), self.upper

    @property
    def upper(self) -> float:
        return float(self.problem.costs(self.best).sum())

    @property
    def _open(self) -> bool:
        return self.upper - self.lower > _SAME * max(self.upper, 1.0)

    def _take(self, clusters: Bools | None) -> None:
        if clusters is not None and self.problem.costs(clusters).sum() < self.upper:
            self.best = clusters

    def _generate(self) -> None:
        """Add clusters until none is worth more than it costs."""
        while True:
            prices, used = self.master.prices(self.budget)
            self.budget.check(_KEPT)
            self.prices = prices
            starts = np.concatenate([np.eye(len(self.problem), dtype=bool), self.master.clusters[used > _USED]])
            self.budget.spend(CALL + len(starts) * len(self.problem) ** 2 / 3)
            clusters, reduced = descent(self.problem, self.prices, starts)
            if self.master.add(clusters[reduced < -_NEGATIVE]):
                continue
            if not self.master.add(self.search.some_below(self.prices, -_NEGATIVE, self.budget, _KEPT)):
                self._bound(_NEGATIVE)
                return

    def _bound(self, short: float) -> None:
        """No cluster is worth more than its cost and `short`: what all marks are worth, less that for each cluster."""
        clusters = len(self.problem) if self.soft else self.problem.most_clusters(self.upper)
        self.lower = max(self.lower, float(self.prices.sum()) - clusters * short)

    def _round(self) -> None:
        """From the relaxed alignment to a good alignment of the clusters known."""
        if self._open:
            self._take(self.master.corner(self.budget))
        if self._open:
            self._take(self.master.chosen(np.ones(len(self.master.costs), dtype=bool), self.budget, 0.5)[0])

    def _close(self) -> None:
        """List all clusters that could close the gap, and pick the best alignment of these.

        The reduced costs of an alignment's clusters add up to its cost less the prices of all marks, and none is below
        zero. So none of a better alignment is above the gap.
        """
        gap = self.upper - self.lower + _SAME
        self.master.add(self.search.below(self.prices, gap, self.budget))
        within = self.master.costs - self.master.clusters @ self.prices < gap
        clusters, bound = self.master.chosen(within, self.budget)
        self._take(clusters)
        self.lower = max(self.lower, min(bound, self.upper))

    def _settle(self) -> None:
        """When the proof took too much work: show that no alignment is much better, less and less while any is left."""
        for share in _COARSER:
            short = share * self.upper / self.problem.most_clusters(self.upper)
            if len(self.search.some_below(self.prices, -short, self.budget)):
                return
            self._bound(short)


def pairwise_bound(alignment_problem: AlignmentProblem) -> float:
    """A bound below every alignment that needs no search: each two annotators aligned in the best way for them alone.

    With K clusters two annotators cost at least K - (the most that matching their marks saves), and K is at least the
    greatest number of marks of an annotator.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    saved = 0.0
    for one in range(len(alignment_problem.marks)):
        for other in range(one):
            gains = np.maximum(
                -alignment_problem.joint[np.ix_(alignment_problem.marks[one], alignment_problem.marks[other])], 0
            )
            saved += gains[linear_sum_assignment(gains, maximize=True)].sum()
    return float(max(max(len(marks) for marks in alignment_problem.marks) - saved, 0.0))
