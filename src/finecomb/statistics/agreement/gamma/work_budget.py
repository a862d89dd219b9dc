"""Budget of work for an alignment, counted in steps instead of time, so that results do not depend on the machine.

A *step* is about one computed number of an array. The steps of a call are a formula of its array sizes and solver
iterations, fitted to measured processor time, so that steps are roughly proportional to time.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS_PER_UNIT = 2.5e8
"""Steps per unit of work. At calibration, a unit took about a second on one core."""
STEPS_PER_CALL = 1e5
"""Fixed number of steps for a few array operations, regardless of the size of the arrays."""


class BudgetExceededError(Exception):
    """Error raised when the work budget is exhausted or there are too many clusters to list."""


@dataclass(slots=True)
class WorkBudget:
    """Total and remaining steps of an alignment."""

    total: float
    left: float

    @classmethod
    def from_units(cls, units: float) -> WorkBudget:
        """Create a work budget from units of work."""
        return cls(units * STEPS_PER_UNIT, units * STEPS_PER_UNIT)

    def spend(self, steps: float) -> None:
        """Subtract steps from the budget."""
        self.left = max(self.left - steps, 0.0)

    def raise_if_exhausted(self, kept: float = 0.0) -> None:
        """Raise an error if at most the share `kept` of the budget is left."""
        if self.left <= kept * self.total:
            raise BudgetExceededError

    def affordable_count(self, steps: float, share: float = 1.0) -> int:
        """Return how many times `steps` fit into a share of the remaining budget; at least 1."""
        return int(min(max(share * self.left / steps, 1.0), 2.0**31 - 1))
