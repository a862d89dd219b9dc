"""Dissimilarity of two marks in position and category (Mathet et al. 2015, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.statistics.agreement.gamma.continuum import Continuum, Floats, Ints


@dataclass(frozen=True, slots=True)
class Dissimilarity:
    r"""Weighted dissimilarity $d = \alpha d_{pos} + \beta d_{cat}$, with the cost $\Delta$ of an unaligned mark."""

    delta: float = 1.0
    """Delta, the cost of an unaligned mark. All dissimilarities are multiples of Delta, so it does not change gamma."""
    alpha: float = 1.0
    """Weight of the positional dissimilarity; with 0, only categories are compared."""
    beta: float = 1.0
    """Weight of the categorical dissimilarity; with 0, only positions are compared."""
    categories: Floats | None = None
    """(categories, categories): dissimilarities from 0 to 1 (default: 0 for equal and 1 for different categories)."""

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise FinecombError(f"gamma's delta must be greater than 0, found {self.delta:g}")
        if self.alpha < 0 or self.beta < 0 or not self.alpha + self.beta > 0:
            raise FinecombError(
                f"gamma's alpha and beta must be at least 0 and not both 0, found {self.alpha:g} and {self.beta:g}"
            )

    def positional_dissimilarity(self, marks: Continuum) -> Floats:
        r"""Compute the sporadic positional dissimilarity of all pairs of marks, (marks, marks).

        $d_{pos} = \Delta \left(\frac{|s - s'| + |e - e'|}{l + l'}\right)^2$
        """
        distance = np.abs(marks.start[:, None] - marks.start) + np.abs(marks.end[:, None] - marks.end)
        lengths = marks.end - marks.start
        return np.asarray(self.delta * (distance / (lengths[:, None] + lengths)) ** 2)

    def categorical_dissimilarity(self, one: Ints, other: Ints) -> Floats:
        """Compute the categorical dissimilarity elementwise for two arrays of categories."""
        if self.categories is None:
            return np.asarray(self.delta * (one != other))
        return np.asarray(self.delta * self.categories[one, other])

    def combined_dissimilarity(self, marks: Continuum) -> Floats:
        """Compute the weighted dissimilarity of all pairs of marks, (marks, marks)."""
        by_category = self.categorical_dissimilarity(marks.category[:, None], marks.category[None, :])
        return self.alpha * self.positional_dissimilarity(marks) + self.beta * by_category


def label_group_distances(protocol: Protocol | None, categories: Sequence[str]) -> Floats:
    """Return label distances: 0 if equal, 1/2 within a group, 1 otherwise. The last row is for unlisted labels."""
    labels = [protocol.find_label(name) if protocol else None for name in categories]
    groups = [label.group if label else None for label in labels] + [None]
    same = np.array([[first is not None and first == second for second in groups] for first in groups])
    return np.where(np.eye(len(groups), dtype=bool), 0.0, np.where(same, 0.5, 1.0))
