"""The findings of rules: positions, labels and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from finecomb.core.records import Document


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A position that a rule would mark, in code points of the text."""

    start: int
    end: int
    label: str
    """Label of the protocol `scarecrow`."""
    reason: str
    """Reason for the mark, in a sentence that an annotator can check."""
    antecedent: tuple[int, int] | None = None
    """Position of the earlier words that are repeated or contradicted."""


Rule = Callable[[Document], Iterable[RuleFinding]]
