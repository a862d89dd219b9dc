"""How unlike two marks are: by place, by category, or both (Mathet et al. 2015, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.statistics.agreement.gamma.continuum import Continuum, Floats, Ints


@dataclass(frozen=True, slots=True)
class Dissimilarity:
    r"""$d = \alpha d_{pos} + \beta d_{cat}$, and $\Delta$ for a mark beside none."""

    delta: float = 1.0
    """Delta, what it costs to leave a mark alone. Both dissimilarities are in multiples of it, so that it changes
    disorders but not gamma."""
    alpha: float = 1.0
    """Weight of places; 0 looks at categories only."""
    beta: float = 1.0
    """Weight of categories; 0 looks at places only."""
    categories: Floats | None = None
    """(categories, categories): 0 to 1; without it 0 for the same and 1 for any other."""

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise FinecombError(f"gamma's delta is more than 0, not {self.delta:g}")
        if self.alpha < 0 or self.beta < 0 or not self.alpha + self.beta > 0:
            raise FinecombError(
                f"gamma's alpha and beta are at least 0 and not both 0, not {self.alpha:g} and {self.beta:g}"
            )

    def positional_dissimilarity(self, marks: Continuum) -> Floats:
        r"""$d_{pos} = \Delta \left(\frac{|s - s'| + |e - e'|}{l + l'}\right)^2$ of every two marks, sporadic."""
        apart = np.abs(marks.start[:, None] - marks.start) + np.abs(marks.end[:, None] - marks.end)
        lengths = marks.end - marks.start
        return np.asarray(self.delta * (apart / (lengths[:, None] + lengths)) ** 2)

    def categorical_dissimilarity(self, one: Ints, other: Ints) -> Floats:
        """d_cat of categories, number by number."""
        if self.categories is None:
            return np.asarray(self.delta * (one != other))
        return np.asarray(self.delta * self.categories[one, other])

    def combined_dissimilarity(self, marks: Continuum) -> Floats:
        """d of every two marks, (marks, marks)."""
        by_category = self.categorical_dissimilarity(marks.category[:, None], marks.category[None, :])
        return self.alpha * self.positional_dissimilarity(marks) + self.beta * by_category


def label_group_distances(protocol: Protocol | None, categories: Sequence[str]) -> Floats:
    """0 for the same label, 1/2 for another of its group, 1 for any other; the last row is for labels not listed."""
    named = [protocol.find_label(name) if protocol else None for name in categories]
    groups = [label.group if label else None for label in named] + [None]
    same = np.array([[one is not None and one == other for other in groups] for one in groups])
    return np.where(np.eye(len(groups), dtype=bool), 0.0, np.where(same, 0.5, 1.0))
