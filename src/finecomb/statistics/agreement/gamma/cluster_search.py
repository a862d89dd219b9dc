r"""Every cluster whose reduced cost lies below a threshold, or the proof that there is none.

With prices $\pi$ a cluster S of k marks has a reduced cost of
$1 - \frac{k(k-1)}{2C} - \sum_{u \in S} \pi_u + \frac{1}{C} \sum_{u, v \in S} d_{uv}$. The last sum couples all
annotators weakly, which defeats bounds that look at two of them at a time. But S has a medoid: a mark u whose row
$r_u = \sum_{v \in S} d_{uv}$ is smallest, so that the last sum is at least $k r_u / 2C$, and that falls apart into one
term for each annotator. So the search goes medoid by medoid: with the medoid given, most marks of the others are out of
the question at once, and the rest is decided annotator by annotator, many partial clusters side by side.

With T the part that is decided and j marks still to come, the pairs among those cost at least, for each of them, half

- the j - 1 smallest distances to marks of the others (Gilmore and Lawler's bound), or
- what the medoid's row is ahead of its own: their row sums are no smaller than the medoid's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Floats, Ints
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, BudgetExceededError, WorkBudget

_MEDOID_BLOCK_SIZE = 64  # medoids whose bounds are computed at once
_MAX_OPEN_MARKS = 400  # marks open for all the medoids that are searched side by side
_MAX_PARTIAL_CLUSTERS = 4096  # partial clusters taken further at once
_MAX_CLUSTERS = 50_000  # clusters
_ROUNDING_MARGIN = 1e-9  # against rounding, wherever something is ruled out


class _MedoidBounds(NamedTuple):
    """Bounds for each medoid with one more decision taken, infinite where it is not to be had."""

    with_mark: Floats
    """(A, m, L): when this mark is in."""
    without: Floats
    """(A, m): when none of this annotator's is."""


class _OpenDecisions(NamedTuple):
    """What is still to be decided for each of a few medoids, the most telling annotators first."""

    medoids: Ints
    """(A,)"""
    marks: Ints
    """(A, t, L): marks that may be in, U where there is none."""
    prices: Floats
    """(A, t, L): their prices, below zero so that less is better; infinite where there is no mark."""
    optional: Bools
    """(A, t): whether the annotator may be left out."""


class _RemainingBounds(NamedTuple):
    """What is open behind some annotator, with sums that bound it."""

    medoids: Ints
    """(A,)"""
    marks: Ints
    """(A, left, L)"""
    prices: Floats
    """(A, left, L)"""
    nearest: Floats
    """(left, A, left, L): half the sum of a mark's j smallest distances to marks of the others."""
    ahead: Floats
    """(A, U + 1): how much a mark's row can gain on the medoid's."""


class _PartialClusters(NamedTuple):
    """Clusters decided up to some annotator."""

    of: Ints
    """(R,): which medoid."""
    cost: Floats
    """(R,): distances minus prices."""
    size: Ints
    """(R,)"""
    reach: Floats
    """(R, U + 1): sum of distances to each mark."""
    members: Bools
    """(R, U + 1): the last column is for no mark."""

    def select_rows(self, rows: Ints | slice) -> _PartialClusters:
        return _PartialClusters(self.of[rows], self.cost[rows], self.size[rows], self.reach[rows], self.members[rows])


@dataclass(frozen=True)
class ClusterSearch:
    """The tables of a problem that every search needs."""

    problem: AlignmentProblem
    table: Ints
    """(m, L): marks of each annotator, U where there are no more."""
    distance: Floats
    """(U + 1, U + 1): d / C; no mark is at no distance."""
    far: Floats
    """(U + 1, U + 1): the same, but no mark is infinitely far."""
    base: Floats
    """(m + 2,): 1 - k(k - 1) / 2C, for k marks."""

    @classmethod
    def from_problem(cls, alignment_problem: AlignmentProblem) -> ClusterSearch:
        """Lay out the tables."""
        size, m = len(alignment_problem), len(alignment_problem.marks)
        table = np.full((m, max(len(marks) for marks in alignment_problem.marks)), size)
        for annotator, marks in enumerate(alignment_problem.marks):
            table[annotator, : len(marks)] = marks
        distance, far = np.zeros((size + 1, size + 1)), np.full((size + 1, size + 1), np.inf)
        distance[:-1, :-1] = far[:-1, :-1] = alignment_problem.distance
        k = np.arange(m + 2)
        return cls(alignment_problem, table, distance, far, 1 - k * (k - 1) / 2 * alignment_problem.gain)

    def find_all_below(self, prices: Floats, threshold: float, budget: WorkBudget) -> Bools:
        """All clusters whose reduced cost is less than `threshold`, (found, U)."""
        batches: list[Bools] = [np.zeros((0, len(self.problem)), dtype=bool)]
        for batch in self._iter_clusters_below(prices, threshold, budget):
            batches.append(batch)
            if sum(map(len, batches)) > _MAX_CLUSTERS:
                raise BudgetExceededError
        return np.unique(np.concatenate(batches), axis=0)

    def find_some_below(self, prices: Floats, threshold: float, budget: WorkBudget, kept: float = 0.0) -> Bools:
        """Some of them, as soon as there are any; none when there are none. A share `kept` of the budget stays."""
        none = np.zeros((0, len(self.problem)), dtype=bool)
        return next((batch for batch in self._iter_clusters_below(prices, threshold, budget, kept) if len(batch)), none)

    def _iter_clusters_below(
        self, prices: Floats, threshold: float, budget: WorkBudget, kept: float = 0.0
    ) -> Iterator[Bools]:
        """All of them, group by group of medoids."""
        budget.spend(2 * (STEPS_PER_CALL + len(self.problem) * len(self.table) * self.table.size))
        for medoids in self._medoid_groups(prices, threshold):
            near = self._search_medoids(medoids, prices, threshold, budget, kept)
            yield near[self.problem.costs(near) - near @ prices < threshold]

    def _medoid_groups(self, prices: Floats, threshold: float) -> list[Ints]:
        """Medoids to be searched side by side: those with much the same number of marks open, the easiest first."""
        blocks = np.split(
            np.arange(len(self.problem)), np.arange(_MEDOID_BLOCK_SIZE, len(self.problem), _MEDOID_BLOCK_SIZE)
        )
        open_ = [(self._medoid_bounds(block, prices).with_mark < threshold).sum(axis=(1, 2)) for block in blocks]
        count = np.concatenate(open_)
        alive = np.flatnonzero((count > 0) | (1 - prices < threshold))  # with others, or alone
        order = alive[np.argsort(count[alive], kind="stable")]
        group = np.cumsum(count[order]) // _MAX_OPEN_MARKS
        return [members for members in np.split(order, np.flatnonzero(np.diff(group)) + 1) if len(members)]

    def _search_medoids(
        self, medoids: Ints, prices: Floats, threshold: float, budget: WorkBudget, kept: float
    ) -> Bools:
        """Those with one of these medoids, depth first."""
        todo = self._open_decisions(medoids, self._medoid_bounds(medoids, prices), prices, threshold)
        batches = [np.zeros((0, len(self.problem)), dtype=bool)]
        rests: dict[int, _RemainingBounds] = {}
        stack = [(0, self._initial_clusters(todo.medoids, prices))]
        while stack:
            depth, rows = stack.pop()
            budget.check(kept)
            if len(rows.of) > _MAX_PARTIAL_CLUSTERS:
                stack += [
                    (depth, rows.select_rows(slice(_MAX_PARTIAL_CLUSTERS, None))),
                    (depth, rows.select_rows(slice(_MAX_PARTIAL_CLUSTERS))),
                ]
            elif depth == todo.marks.shape[1]:
                batches.append(rows.members[rows.cost + self.base[rows.size] < threshold, :-1])
            elif len(rows.of):
                if depth not in rests:
                    rests[depth] = self._remaining_bounds(todo, depth + 1)
                    budget.spend(self._bound_step_count(rests[depth]))
                more = self._expand_clusters(rows, todo, depth, prices)
                budget.spend(self._expansion_step_count(len(more.of), rests[depth]))
                stack.append((depth + 1, self._prune_clusters(more, rests[depth], threshold)))
        return np.concatenate(batches)

    def _bound_step_count(self, rest: _RemainingBounds) -> float:
        """What it takes to work out the bounds on what is open."""
        marks = int(rest.marks[0].size)
        return STEPS_PER_CALL / 3 + len(rest.medoids) * marks * (marks + len(self.problem)) / 2

    def _expansion_step_count(self, rows: int, rest: _RemainingBounds) -> float:
        """What it takes to expand partial clusters to so many, and to see which of them are kept."""
        left, width = (int(size) for size in rest.marks.shape[1:])
        return STEPS_PER_CALL + rows * (2 * len(self.problem) + left * left * width / 2)

    # --- with nothing but the medoid ---------------------------------------------------------------------------------

    def _medoid_bounds(self, medoids: Ints, prices: Floats) -> _MedoidBounds:
        """Bounds by the medoid's row alone, the least over all sizes k.

        Of identical marks the first is the medoid, so that no cluster is found twice.
        """
        owners = self.problem.owner[medoids]
        worth = np.append(-prices, np.inf) + np.zeros((len(medoids), 1))  # (A, U + 1)
        worth[:, :-1][
            (self.problem.kind == self.problem.kind[medoids][:, None])
            & (np.arange(len(self.problem)) < medoids[:, None])
        ] = np.inf
        worth[:, :-1][self.problem.owner == owners[:, None]] = np.inf
        with_mark = np.full((len(medoids), *self.table.shape), np.inf)
        without = np.full((len(medoids), len(self.table)), np.inf)
        for k in range(1, len(self.table) + 1):
            costs = (worth + k / 2 * self.distance[medoids])[:, self.table]  # (A, m, L)
            best = costs.min(axis=2)
            ordered = np.sort(best, axis=1)
            total = (self.base[k] - prices[medoids] + ordered[:, : k - 1].sum(axis=1))[:, None]  # the k - 1 best
            last = ordered[:, [k - 2]] if k > 1 else np.full((len(medoids), 1), -np.inf)
            with np.errstate(invalid="ignore"):  # inf - inf where there are fewer than k annotators
                among = best <= last
                if k > 1:
                    others = total - np.where(among, best, last)
                    np.fmin(with_mark, others[:, :, None] + costs, out=with_mark)
                np.fmin(without, total + np.where(among, ordered[:, [k - 1]] - best, 0.0), out=without)
        without[np.arange(len(medoids)), owners] = -np.inf  # given
        return _MedoidBounds(with_mark, without)

    def _open_decisions(self, medoids: Ints, roots: _MedoidBounds, prices: Floats, threshold: float) -> _OpenDecisions:
        """What the bounds leave open: annotators and marks that may be in a cluster below the threshold.

        First come the annotators whose second best choice has the highest bound: there most is ruled out.
        """
        with_mark, without = roots
        possible = with_mark < threshold
        choices = np.sort(np.concatenate([with_mark, without[:, :, None]], axis=2), axis=2)
        telling = np.where(possible.any(axis=2), choices[:, :, 1], -np.inf)
        width = int(possible.any(axis=2).sum(axis=1).max(initial=0))
        order = np.argsort(-telling, axis=1, kind="stable")[:, :width, None]
        with_mark = np.take_along_axis(with_mark, order, axis=1)
        ranked = np.argsort(with_mark, axis=2, kind="stable")[:, :, : int(possible.sum(axis=2).max(initial=0))]
        marks = np.take_along_axis(self.table[order[:, :, 0]], ranked, axis=2)
        marks = np.where(np.take_along_axis(with_mark, ranked, axis=2) < threshold, marks, len(self.problem))
        optional = np.take_along_axis(without, order[:, :, 0], axis=1) < threshold
        optional |= (marks == len(self.problem)).all(axis=2)
        return _OpenDecisions(medoids, marks, np.append(-prices, np.inf)[marks], optional)

    # --- annotator by annotator --------------------------------------------------------------------------------------

    def _initial_clusters(self, medoids: Ints, prices: Floats) -> _PartialClusters:
        rows = np.arange(len(medoids))
        members = np.zeros((len(medoids), len(self.problem) + 1), dtype=bool)
        members[rows, medoids] = True
        return _PartialClusters(
            rows, -prices[medoids], np.ones(len(rows), dtype=np.int64), self.distance[medoids], members
        )

    def _expand_clusters(
        self, rows: _PartialClusters, todo: _OpenDecisions, depth: int, prices: Floats
    ) -> _PartialClusters:
        """Each cluster once without a mark of the next annotator, where that may be, and once with each."""
        none = len(self.problem)
        marks = todo.marks[rows.of, depth]
        with_row, at = np.nonzero(marks < none)
        without = np.flatnonzero(todo.optional[rows.of, depth])
        mark = np.concatenate([np.full(len(without), none), marks[with_row, at]])
        new = rows.select_rows(np.concatenate([without, with_row]))
        places = np.arange(len(mark))
        cost = new.cost - np.append(prices, 0.0)[mark] + new.reach[places, mark]
        new.members[places, mark] = True
        return _PartialClusters(new.of, cost, new.size + (mark < none), new.reach + self.distance[mark], new.members)

    def _remaining_bounds(self, todo: _OpenDecisions, depth: int) -> _RemainingBounds:
        marks, medoids = todo.marks[:, depth:], todo.medoids
        count, left, width = marks.shape
        nearest = np.zeros((max(left, 1), count, left, width))
        if left > 1:
            near = self.far[marks[:, :, :, None, None], marks[:, None, None]].min(axis=4)  # (A, left, L, left)
            near[:, np.arange(left), :, np.arange(left)] = np.inf
            nearest[1:] = np.moveaxis(np.cumsum(np.sort(near, axis=3)[..., :-1], axis=3) / 2, 3, 0)
        gain = self.distance[marks] - self.distance[medoids[:, None, None], marks][..., None]  # (A, left, L, U + 1)
        ahead = gain.max(axis=2, initial=0.0).sum(axis=1)  # of no mark it is 0
        return _RemainingBounds(medoids, marks, todo.prices[:, depth:], nearest, ahead)

    def _prune_clusters(self, rows: _PartialClusters, rest: _RemainingBounds, threshold: float) -> _PartialClusters:
        """Those that may still become a cluster below the threshold with the medoid that they are meant to have."""
        row = rows.reach[np.arange(len(rows.of)), rest.medoids[rows.of]]  # the medoid's
        central = ~(rows.members & (rows.reach + rest.ahead[rows.of] < row[:, None] - _ROUNDING_MARGIN))[:, :-1].any(
            axis=1
        )
        rows, row = rows.select_rows(np.flatnonzero(central)), row[central]
        left = rest.marks.shape[1]
        sizes = np.minimum(rows.size[:, None] + np.arange(left + 1), len(self.base) - 1)
        fixed = rows.cost[:, None] + self.base[sizes]  # (R, left + 1): with j more marks, but for what those cost
        if not left or not len(row):
            return rows.select_rows(np.flatnonzero(fixed[:, 0] < threshold))
        worth, marks, of = rest.prices[rows.of], rest.marks[rows.of], rows.of
        reach = np.take_along_axis(rows.reach, marks.reshape(len(row), -1), axis=1).reshape(marks.shape)
        may = fixed < threshold
        may[:, 1:] = fixed[:, 1:] + np.cumsum(np.sort((worth + reach).min(axis=2), axis=1), axis=1) < threshold
        possible = may[:, 0].copy()
        for j in range(1, left + 1):
            some = np.flatnonzero(may[:, j] & ~possible)
            if j > 1 and len(some):
                costs = worth[some] + reach[some] + rest.nearest[j - 1, of[some]]
                some = some[fixed[some, j] + _smallest_cost_sum(costs, j) < threshold]
            if len(some):
                to_medoid = self.distance[rest.medoids[of[some], None, None], marks[some]]
                costs = worth[some] + reach[some] / 2 + j / 2 * to_medoid
                some = some[fixed[some, j] + j / 2 * row[some] + _smallest_cost_sum(costs, j) < threshold]
            possible[some] = True
        return rows.select_rows(np.flatnonzero(possible))


def _smallest_cost_sum(costs: Floats, j: int) -> Floats:
    """The sum of the j least over annotators, each with its best mark, (R, annotators, L) to (R,)."""
    best = costs.min(axis=2)
    if j < best.shape[1]:
        best.partition(j - 1, axis=1)
    return np.asarray(best[:, :j].sum(axis=1))
