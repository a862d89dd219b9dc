"""Master problem: a linear program over the known clusters, and an integer program that selects an alignment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Floats
from finecomb.statistics.agreement.gamma.set_partitioning import AlignmentProblem, round_down_to_grain
from finecomb.statistics.agreement.gamma.work_budget import STEPS_PER_CALL, WorkBudget

if TYPE_CHECKING:
    from highspy import Highs

_SOLVER_OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
}
_INTEGER_STEPS_PER_ENTRY = 10  # steps per matrix entry and iteration of the integer program
_FIRST_NODE_ITERATIONS, _NODE_ITERATIONS = 2, 50  # iterations per mark at the first node, and per further node


class MasterProblem:
    """Linear program with clusters as columns and marks as rows.

    Each mark must be in exactly one cluster or, with `soft`, in at least one.
    """

    def __init__(self, alignment_problem: AlignmentProblem, soft: bool) -> None:
        self.problem, self.soft = alignment_problem, soft
        self.clusters = np.zeros((0, len(alignment_problem)), dtype=bool)
        self.costs = np.zeros(0)
        self._seen: set[bytes] = set()
        self._relaxed = self._create_solver(solver="ipm", run_crossover="off", presolve="off")
        # Allow a mark to be in more than one cluster for a fee, which keeps its price above minus the fee. Removing a
        # mark from a cluster adds at most (n - 1) / C = 2 / n to its cost. With a higher fee, no excess pays off and
        # the optimum stays the same, but prices are bounded, which needs only a third of the rounds.
        size = len(self.problem)
        marks, fee = np.arange(size, dtype=np.int32), np.full(size, 2.1 / self.problem.annotators)
        self._relaxed.addCols(size, fee, np.zeros(size), np.full(size, np.inf), size, marks, marks, np.full(size, -1.0))

    def add_clusters(self, clusters: Bools) -> int:
        """Add the clusters that are not yet in the program, and return how many were added."""
        keys = (bits.tobytes() for bits in np.packbits(clusters, axis=1))
        first = {key: position for position, key in reversed(list(enumerate(keys))) if key not in self._seen}
        new = clusters[sorted(first.values())]
        self._seen |= first.keys()
        costs = self.problem.cluster_costs(new)
        _add_columns(self._relaxed, new, costs)
        self.clusters, self.costs = np.concatenate([self.clusters, new]), np.concatenate([self.costs, costs])
        return len(new)

    def solve_dual_prices(self, budget: WorkBudget) -> tuple[Floats, Floats]:
        """Return the dual prices of the marks and the share of each cluster in the relaxed solution.

        The prices come from the interior of the optimal face. An alignment has far fewer clusters than marks, so prices
        are not unique, and those at a vertex are arbitrarily uneven. Central prices need half as many rounds and leave
        less work for the exact search.
        """
        marks, clusters = len(self.problem), len(self.costs)
        steps = 12 * self._matrix_entry_count + 1.5 * marks * marks + 27 * clusters  # per iteration
        self._relaxed.setOptionValue("ipm_iteration_limit", budget.affordable_count(steps))
        self._relaxed.clearSolver()
        self._relaxed.run()
        budget.spend(STEPS_PER_CALL + steps * self._relaxed.getInfo().ipm_iteration_count)
        solution = self._relaxed.getSolution()
        # Lower the prices until no known cluster has a negative reduced cost, whatever the solver's tolerance
        prices = np.array(solution.row_dual)
        least = 0.0 if self.soft else -math.inf
        prices = np.maximum(round_down_to_grain(prices, self.problem.grain), least)
        excess = (self.clusters @ prices - self.costs).max(initial=0.0)
        return np.asarray(np.maximum(prices - excess, least)), np.array(solution.col_value)[len(self.problem) :]

    def find_integral_vertex(self, budget: WorkBudget) -> Bools | None:
        """Solve the relaxation at a vertex, and return the alignment, or None if the solution is fractional."""
        solver = self._create_solver(
            solver="simplex", simplex_iteration_limit=budget.affordable_count(self._matrix_entry_count, 0.5)
        )
        _add_columns(solver, self.clusters, self.costs)
        solver.run()
        budget.spend(STEPS_PER_CALL + self._matrix_entry_count * solver.getInfo().simplex_iteration_count)
        value = np.array(solver.getSolution().col_value)
        selected = self.clusters[value > 0.5]
        return selected if np.all(np.abs(value - np.rint(value)) < 1e-6) and self.is_feasible(selected) else None

    def solve_integer_program(
        self, usable: Bools, budget: WorkBudget, share: float = 1.0
    ) -> tuple[Bools | None, float]:
        """Return the best alignment formed by the usable clusters, and a lower bound on the cost of any such alignment.

        Returns None and minus infinity if the share of the budget does not suffice for the first node of the integer
        program, which cannot be interrupted. The number of nodes is limited, but their work is known only afterwards.
        """
        clusters = self.clusters[usable]
        steps = _INTEGER_STEPS_PER_ENTRY * float(clusters.sum())  # per iteration
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
        """Number of marks in all clusters: the non-zero entries of the program's matrix."""
        return float(self.clusters.sum())

    def is_feasible(self, clusters: Bools) -> bool:
        """Return True if the clusters form an alignment of all marks."""
        times = clusters.sum(axis=0)
        return bool(np.all(times >= 1 if self.soft else times == 1))

    def _create_solver(self, **options: bool | int | float | str) -> Highs:
        import highspy  # slow to import

        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (_SOLVER_OPTIONS | options).items():
            solver.setOptionValue(name, value)
        count, none = len(self.problem), np.zeros(0, dtype=np.int32)
        most = np.full(count, highspy.kHighsInf if self.soft else 1.0)
        solver.addRows(count, np.ones(count), most, 0, np.zeros(count, dtype=np.int32), none, np.zeros(0))
        return solver


def _add_columns(solver: Highs, clusters: Bools, costs: Floats, whole: bool = False) -> None:
    """Add clusters as columns, which are binary with `whole` and continuous otherwise."""
    import highspy  # slow to import

    count = len(clusters)
    cluster, mark = np.nonzero(clusters)
    starts = np.searchsorted(cluster, np.arange(count)).astype(np.int32)
    most = np.full(count, 1.0 if whole else highspy.kHighsInf)
    solver.addCols(
        count, costs, np.zeros(count), most, len(cluster), starts, mark.astype(np.int32), np.ones(len(cluster))
    )
    if whole:
        kinds = np.full(count, highspy.HighsVarType.kInteger)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
