"""How much work an alignment may take: counted, never timed, so that a busy machine changes no number.

A *step* is about one number of an array worked out. What a call counts is a formula of the sizes of its arrays and of
the solver's iterations; the formulas were fitted to the processor seconds that calls took, so that steps go with time.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS_PER_UNIT = 2.5e8
"""Of one unit of work: about a second of one core when this was written."""
STEPS_PER_CALL = 1e5
"""Steps that a handful of array operations takes however small the arrays are."""


class BudgetExceededError(Exception):
    """The work allowed is done, or there are too many clusters to list."""


@dataclass(slots=True)
class WorkBudget:
    """The steps that an alignment may take, and how many of them are left."""

    total: float
    left: float

    @classmethod
    def from_units(cls, units: float) -> WorkBudget:
        """So many units of work."""
        return cls(units * STEPS_PER_UNIT, units * STEPS_PER_UNIT)

    def spend(self, steps: float) -> None:
        """Count steps that were taken."""
        self.left = max(self.left - steps, 0.0)

    def check(self, kept: float = 0.0) -> None:
        """Give up where no more than a share `kept` of the whole is left."""
        if self.left <= kept * self.total:
            raise BudgetExceededError

    def affordable_count(self, steps: float, share: float = 1.0) -> int:
        """How often something of so many steps can be done with a share of what is left; at least once."""
        return int(min(max(share * self.left / steps, 1.0), 2.0**31 - 1))
