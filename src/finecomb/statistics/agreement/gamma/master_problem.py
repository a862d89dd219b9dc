"""The linear program over the clusters known so far, and the integer program that picks an alignment of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Floats
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem, round_down_to_grain
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, WorkBudget

if TYPE_CHECKING:
    from highspy import Highs

_OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
}
_INTEGER_STEPS_PER_ENTRY = 10  # steps for each entry of the matrix in an iteration of the integer program
_FIRST_NODE_ITERATIONS, _NODE_ITERATIONS = (
    2,
    50,
)  # iterations for each mark at the first node, and for each further node


class MasterProblem:
    """Columns are clusters, rows are marks: each mark in exactly one cluster, or with `soft` in at least one."""

    def __init__(self, alignment_problem: AlignmentProblem, soft: bool) -> None:
        self.problem, self.soft = alignment_problem, soft
        self.clusters = np.zeros((0, len(alignment_problem)), dtype=bool)
        self.costs = np.zeros(0)
        self._seen: set[bytes] = set()
        self._relaxed = self._create_solver(solver="ipm", run_crossover="off", presolve="off")
        self._add_excess_columns()

    def add(self, clusters: Bools) -> int:
        """Take in those that are new; how many."""
        keys = (bits.tobytes() for bits in np.packbits(clusters, axis=1))
        first = {key: at for at, key in reversed(list(enumerate(keys))) if key not in self._seen}
        new = clusters[sorted(first.values())]
        self._seen |= first.keys()
        costs = self.problem.costs(new)
        _add_columns(self._relaxed, new, costs)
        self.clusters, self.costs = np.concatenate([self.clusters, new]), np.concatenate([self.costs, costs])
        return len(new)

    def solve_dual_prices(self, budget: WorkBudget) -> tuple[Floats, Floats]:
        """Dual prices of the marks, and how much of each cluster the relaxed alignment uses.

        From the inside of the optimal face: an alignment has far fewer clusters than marks, so prices are anything but
        unique, and those at a corner say that some marks are worth far more than others for no reason. Central
        prices need half the rounds, and leave the exact search little to refute.
        """
        marks, clusters = len(self.problem), len(self.costs)
        steps = 12 * self._matrix_entry_count + 1.5 * marks * marks + 27 * clusters  # of an iteration
        self._relaxed.setOptionValue("ipm_iteration_limit", budget.affordable_count(steps))
        self._relaxed.clearSolver()
        self._relaxed.run()
        budget.spend(STEPS_PER_CALL + steps * self._relaxed.getInfo().ipm_iteration_count)
        solution = self._relaxed.getSolution()
        return self._dual_feasible_prices(np.array(solution.row_dual)), np.array(solution.col_value)[
            len(self.problem) :
        ]

    def _dual_feasible_prices(self, prices: Floats) -> Floats:
        """Prices at which no known cluster is worth more than it costs, whatever the solver's tolerance was."""
        least = 0.0 if self.soft else -math.inf
        prices = np.maximum(round_down_to_grain(prices, self.problem.grain), least)
        over = (self.clusters @ prices - self.costs).max(initial=0.0)
        return np.asarray(np.maximum(prices - over, least))

    def _add_excess_columns(self) -> None:
        """Let a mark be in more than one cluster for a fee, which keeps its price above minus the fee.

        Taking a mark out of a cluster adds at most (n - 1) / C = 2 / n to its cost. For a higher fee no excess is worth
        its while and the optimum stays, but prices can no longer wander off: a third of the rounds is enough.
        """
        size = len(self.problem)
        marks, fee = np.arange(size, dtype=np.int32), np.full(size, 2.1 / self.problem.annotators)
        self._relaxed.addCols(size, fee, np.zeros(size), np.full(size, np.inf), size, marks, marks, np.full(size, -1.0))

    def integral_vertex(self, budget: WorkBudget) -> Bools | None:
        """The relaxed alignment at a corner where it is an alignment; None when it has halves."""
        solver = self._create_solver(
            solver="simplex", simplex_iteration_limit=budget.affordable_count(self._matrix_entry_count, 0.5)
        )
        _add_columns(solver, self.clusters, self.costs)
        solver.run()
        budget.spend(STEPS_PER_CALL + self._matrix_entry_count * solver.getInfo().simplex_iteration_count)
        value = np.array(solver.getSolution().col_value)
        whole = self.clusters[value > 0.5]
        return whole if np.all(np.abs(value - np.rint(value)) < 1e-6) and self.is_feasible(whole) else None

    def solve_integer_program(
        self, usable: Bools, budget: WorkBudget, share: float = 1.0
    ) -> tuple[Bools | None, float]:
        """The best alignment of some of the clusters, and a bound below all alignments of them.

        Nothing is known where a share of the budget is not enough for the first node of the integer program, which
        cannot be interrupted. Nodes are limited, but what they take is known only afterwards.
        """
        clusters = self.clusters[usable]
        steps = _INTEGER_STEPS_PER_ENTRY * float(clusters.sum())  # of an iteration
        if share * budget.left < _FIRST_NODE_ITERATIONS * len(self.problem) * steps:
            return None, -math.inf
        solver = self._create_solver(mip_max_nodes=budget.affordable_count(_NODE_ITERATIONS * steps, share))
        _add_columns(solver, clusters, self.costs[usable], whole=True)
        solver.run()
        value, bound = np.array(solver.getSolution().col_value), solver.getInfo().mip_dual_bound
        budget.spend(STEPS_PER_CALL + steps * solver.getInfo().simplex_iteration_count)
        picked = clusters[value > 0.5] if len(value) == len(clusters) else clusters[:0]
        return picked if self.is_feasible(picked) else None, bound if math.isfinite(bound) else -math.inf

    @property
    def _matrix_entry_count(self) -> float:
        """Marks of all clusters, the entries of the program's matrix."""
        return float(self.clusters.sum())

    def is_feasible(self, clusters: Bools) -> bool:
        """Whether the clusters are an alignment of all marks."""
        times = clusters.sum(axis=0)
        return bool(np.all(times >= 1 if self.soft else times == 1))

    def _create_solver(self, **options: bool | int | float | str) -> Highs:
        import highspy  # slow to import

        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (_OPTIONS | options).items():
            solver.setOptionValue(name, value)
        count, none = len(self.problem), np.zeros(0, dtype=np.int32)
        most = np.full(count, highspy.kHighsInf if self.soft else 1.0)
        solver.addRows(count, np.ones(count), most, 0, np.zeros(count, dtype=np.int32), none, np.zeros(0))
        return solver


def _add_columns(solver: Highs, clusters: Bools, costs: Floats, whole: bool = False) -> None:
    """With `whole` each is taken or not; else any amount."""
    import highspy  # slow to import

    count = len(clusters)
    of, mark = np.nonzero(clusters)
    starts = np.searchsorted(of, np.arange(count)).astype(np.int32)
    most = np.full(count, 1.0 if whole else highspy.kHighsInf)
    solver.addCols(count, costs, np.zeros(count), most, len(of), starts, mark.astype(np.int32), np.ones(len(of)))
    if whole:
        kinds = np.full(count, highspy.HighsVarType.kInteger)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
