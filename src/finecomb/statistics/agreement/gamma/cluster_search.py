r"""Exact search for clusters with a reduced cost below a threshold, or a proof that there are none.

With prices $\pi$, a cluster S of k marks has the reduced cost
$1 - \frac{k(k-1)}{2C} - \sum_{u \in S} \pi_u + \frac{1}{C} \sum_{u, v \in S} d_{uv}$. The last sum couples all
annotators weakly, so bounds over pairs of annotators are too loose. However, S has a medoid: a mark u whose row
$r_u = \sum_{v \in S} d_{uv}$ is smallest. The last sum is at least $k r_u / 2C$, which separates into one term per
annotator. The search therefore runs medoid by medoid. A given medoid rules out most marks of the other annotators at
once. The remaining marks are decided annotator by annotator, for many partial clusters in parallel.

Let T be the decided part of a cluster and j the number of marks still to add. The pairs among these j marks cost, for
each of them, at least half of

- its j - 1 smallest distances to marks of other annotators (the Gilmore-Lawler bound), or
- the amount by which the medoid's row sum exceeds its own so far, since no row sum is smaller than the medoid's.
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
_MAX_OPEN_MARKS = 400  # undecided marks of all medoids that are searched together
_MAX_PARTIAL_CLUSTERS = 4096  # partial clusters expanded at once
_MAX_LISTED_CLUSTERS = 50_000  # clusters listed by one search
_ROUNDING_MARGIN = 1e-9  # safety margin against rounding errors in pruning


class _MedoidBounds(NamedTuple):
    """Lower bounds per medoid after one additional decision; infinite where the decision is impossible."""

    with_mark: Floats
    """(A, m, L): bound if the mark is included."""
    without: Floats
    """(A, m): bound if no mark of the annotator is included."""


class _OpenDecisions(NamedTuple):
    """Annotators and marks still to be decided for each of several medoids, most restrictive annotators first."""

    medoids: Ints
    """(A,): mark that is the medoid."""
    marks: Ints
    """(A, t, L): marks that can be included, padded with U."""
    prices: Floats
    """(A, t, L): negated prices of `marks`; infinite for padding."""
    optional: Bools
    """(A, t): True if the t-th undecided annotator can be left out of the cluster."""


class _RemainingBounds(NamedTuple):
    """Undecided marks after a given depth, with sums that bound their costs."""

    medoids: Ints
    """(A,): mark that is the medoid."""
    marks: Ints
    """(A, left, L): marks of the undecided annotators, padded with U."""
    prices: Floats
    """(A, left, L): negated prices of `marks`; infinite for padding."""
    nearest: Floats
    """(left, A, left, L): half the sum of a mark's j smallest distances to marks of other annotators."""
    ahead: Floats
    """(A, U + 1): maximum by which a mark's row sum can still grow relative to the row sum of the medoid."""


class _PartialClusters(NamedTuple):
    """Clusters that are decided for all annotators up to a given one."""

    of: Ints
    """(R,): position of the cluster's medoid."""
    cost: Floats
    """(R,): sum of distances minus prices so far."""
    size: Ints
    """(R,): number of marks."""
    reach: Floats
    """(R, U + 1): sum of distances from each mark to the members."""
    members: Bools
    """(R, U + 1): True if the mark is a member; the last column stands for no mark."""

    def select_rows(self, rows: Ints | slice) -> _PartialClusters:
        return _PartialClusters(self.of[rows], self.cost[rows], self.size[rows], self.reach[rows], self.members[rows])


@dataclass(frozen=True)
class ClusterSearch:
    """Exact search for clusters of low reduced cost, with tables of the alignment problem shared by all searches."""

    problem: AlignmentProblem
    table: Ints
    """(m, L): marks of each annotator, padded with U."""
    distance: Floats
    """(U + 1, U + 1): distances d / C; 0 for padding."""
    far: Floats
    """(U + 1, U + 1): distances d / C; infinite for padding."""
    base: Floats
    """(m + 2,): cost 1 - k(k - 1) / 2C of a cluster of k marks at distance 0, by k."""

    @classmethod
    def from_problem(cls, alignment_problem: AlignmentProblem) -> ClusterSearch:
        """Build the tables from an alignment problem."""
        size, m = len(alignment_problem), len(alignment_problem.marks)
        table = np.full((m, max(len(marks) for marks in alignment_problem.marks)), size)
        for annotator, marks in enumerate(alignment_problem.marks):
            table[annotator, : len(marks)] = marks
        distance, far = np.zeros((size + 1, size + 1)), np.full((size + 1, size + 1), np.inf)
        distance[:-1, :-1] = far[:-1, :-1] = alignment_problem.distance
        k = np.arange(m + 2)
        return cls(alignment_problem, table, distance, far, 1 - k * (k - 1) / 2 * alignment_problem.gain)

    def find_all_below(self, prices: Floats, threshold: float, budget: WorkBudget) -> Bools:
        """Return all clusters with a reduced cost below `threshold`, (clusters, U)."""
        batches: list[Bools] = [np.zeros((0, len(self.problem)), dtype=bool)]
        for batch in self._iter_clusters_below(prices, threshold, budget):
            batches.append(batch)
            if sum(map(len, batches)) > _MAX_LISTED_CLUSTERS:
                raise BudgetExceededError
        return np.unique(np.concatenate(batches), axis=0)

    def find_some_below(self, prices: Floats, threshold: float, budget: WorkBudget, kept: float = 0.0) -> Bools:
        """Return the first clusters found with a reduced cost below `threshold`, or an empty array.

        The search stops once only the share `kept` of the budget is left.
        """
        none = np.zeros((0, len(self.problem)), dtype=bool)
        return next((batch for batch in self._iter_clusters_below(prices, threshold, budget, kept) if len(batch)), none)

    def _iter_clusters_below(
        self, prices: Floats, threshold: float, budget: WorkBudget, kept: float = 0.0
    ) -> Iterator[Bools]:
        """Yield all clusters with a reduced cost below `threshold`, one batch per group of medoids."""
        budget.spend(2 * (STEPS_PER_CALL + len(self.problem) * len(self.table) * self.table.size))
        # Group medoids with similar numbers of undecided marks, the easiest first
        blocks = np.split(
            np.arange(len(self.problem)), np.arange(_MEDOID_BLOCK_SIZE, len(self.problem), _MEDOID_BLOCK_SIZE)
        )
        open_ = [(self._medoid_bounds(block, prices).with_mark < threshold).sum(axis=(1, 2)) for block in blocks]
        count = np.concatenate(open_)
        alive = np.flatnonzero((count > 0) | (1 - prices < threshold))  # with other marks, or alone
        order = alive[np.argsort(count[alive], kind="stable")]
        group = np.cumsum(count[order]) // _MAX_OPEN_MARKS
        for medoids in [members for members in np.split(order, np.flatnonzero(np.diff(group)) + 1) if len(members)]:
            near = self._search_medoids(medoids, prices, threshold, budget, kept)
            yield near[self.problem.cluster_costs(near) - near @ prices < threshold]

    def _search_medoids(
        self, medoids: Ints, prices: Floats, threshold: float, budget: WorkBudget, kept: float
    ) -> Bools:
        """Return the clusters below `threshold` whose medoid is one of the given marks, by depth-first search."""
        todo = self._open_decisions(medoids, self._medoid_bounds(medoids, prices), prices, threshold)
        batches = [np.zeros((0, len(self.problem)), dtype=bool)]
        rests: dict[int, _RemainingBounds] = {}
        stack = [(0, self._initial_clusters(todo.medoids, prices))]
        while stack:
            depth, rows = stack.pop()
            budget.raise_if_exhausted(kept)
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
                    marks = int(rests[depth].marks[0].size)
                    budget.spend(
                        STEPS_PER_CALL / 3 + len(rests[depth].medoids) * marks * (marks + len(self.problem)) / 2
                    )
                expanded = self._expand_clusters(rows, todo, depth, prices)
                left, width = (int(size) for size in rests[depth].marks.shape[1:])
                budget.spend(STEPS_PER_CALL + len(expanded.of) * (2 * len(self.problem) + left * left * width / 2))
                stack.append((depth + 1, self._prune_clusters(expanded, rests[depth], threshold)))
        return np.concatenate(batches)

    # --- bounds by medoid --------------------------------------------------------------------------------------------

    def _medoid_bounds(self, medoids: Ints, prices: Floats) -> _MedoidBounds:
        """Compute lower bounds from the medoid's row of distances alone, minimised over all cluster sizes k.

        The first of several identical marks is the medoid, so that no cluster is found twice.
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
        without[np.arange(len(medoids)), owners] = -np.inf  # the medoid's own mark is included
        return _MedoidBounds(with_mark, without)

    def _open_decisions(self, medoids: Ints, roots: _MedoidBounds, prices: Floats, threshold: float) -> _OpenDecisions:
        """Select the annotators and marks that can be in a cluster below the threshold.

        Annotators whose second-best choice has the highest bound come first, since they rule out the most clusters.
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

    # --- expansion by annotator --------------------------------------------------------------------------------------

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
        """Expand each cluster by every possible mark of the next annotator and, where allowed, by no mark."""
        none = len(self.problem)
        marks = todo.marks[rows.of, depth]
        with_row, column = np.nonzero(marks < none)
        without = np.flatnonzero(todo.optional[rows.of, depth])
        mark = np.concatenate([np.full(len(without), none), marks[with_row, column]])
        new = rows.select_rows(np.concatenate([without, with_row]))
        positions = np.arange(len(mark))
        cost = new.cost - np.append(prices, 0.0)[mark] + new.reach[positions, mark]
        new.members[positions, mark] = True
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
        ahead = gain.max(axis=2, initial=0.0).sum(axis=1)  # 0 for padding
        return _RemainingBounds(medoids, marks, todo.prices[:, depth:], nearest, ahead)

    def _prune_clusters(self, rows: _PartialClusters, rest: _RemainingBounds, threshold: float) -> _PartialClusters:
        """Keep the partial clusters that can still become a cluster below the threshold with the same medoid."""
        row = rows.reach[np.arange(len(rows.of)), rest.medoids[rows.of]]  # the medoid's row sum
        closer = rows.members & (rows.reach + rest.ahead[rows.of] < row[:, None] - _ROUNDING_MARGIN)
        central = ~closer[:, :-1].any(axis=1)  # no member may have a smaller row sum
        rows, row = rows.select_rows(np.flatnonzero(central)), row[central]
        left = rest.marks.shape[1]
        sizes = np.minimum(rows.size[:, None] + np.arange(left + 1), len(self.base) - 1)
        # (R, left + 1): cost after adding j more marks, without the cost of these marks themselves
        fixed = rows.cost[:, None] + self.base[sizes]
        if not left or not len(row):
            return rows.select_rows(np.flatnonzero(fixed[:, 0] < threshold))
        worth, marks, medoid_of = rest.prices[rows.of], rest.marks[rows.of], rows.of
        reach = np.take_along_axis(rows.reach, marks.reshape(len(row), -1), axis=1).reshape(marks.shape)
        may = fixed < threshold
        may[:, 1:] = fixed[:, 1:] + np.cumsum(np.sort((worth + reach).min(axis=2), axis=1), axis=1) < threshold
        possible = may[:, 0].copy()
        for j in range(1, left + 1):
            candidates = np.flatnonzero(may[:, j] & ~possible)
            if j > 1 and len(candidates):
                costs = worth[candidates] + reach[candidates] + rest.nearest[j - 1, medoid_of[candidates]]
                candidates = candidates[fixed[candidates, j] + _smallest_cost_sum(costs, j) < threshold]
            if len(candidates):
                to_medoid = self.distance[rest.medoids[medoid_of[candidates], None, None], marks[candidates]]
                costs = worth[candidates] + reach[candidates] / 2 + j / 2 * to_medoid
                candidates = candidates[
                    fixed[candidates, j] + j / 2 * row[candidates] + _smallest_cost_sum(costs, j) < threshold
                ]
            possible[candidates] = True
        return rows.select_rows(np.flatnonzero(possible))


def _smallest_cost_sum(costs: Floats, j: int) -> Floats:
    """Sum the j smallest costs over annotators, using the best mark of each annotator, (R, annotators, L) to (R,)."""
    best = costs.min(axis=2)
    if j < best.shape[1]:
        best.partition(j - 1, axis=1)
    return np.asarray(best[:, :j].sum(axis=1))
