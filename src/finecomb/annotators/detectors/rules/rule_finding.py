"""What a rule says: words that may be wrong, the kind of error, and the reason in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from finecomb.core.records import Document


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """Words that a rule would mark, in code points of the text."""

    start: int
    end: int
    label: str
    """A label of `scarecrow`."""
    reason: str
    """Why, in a sentence that an annotator can check."""
    antecedent: tuple[int, int] | None = None
    """The earlier words that it repeats or contradicts."""


Rule = Callable[[Document], Iterable[RuleFinding]]
