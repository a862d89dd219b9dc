"""Agreement on categories among marks that the best alignment has put together: gamma-cat and gamma-k (Mathet 2017)."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Continuum, Floats
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity


def category_disagreement_sums(
    marks: Continuum, clusters: Bools, dissimilarity: Dissimilarity, categories: int
) -> Floats:
    r"""Weighted dissimilarities of categories and weights, (1 + categories, 2), over pairs of marks in one cluster.

    Row 0 is of all pairs (gamma-cat), row 1 + k of those with a mark of category k (gamma-k). In a cluster of v marks a
    pair weighs $\max(0, 1 - \alpha d_{pos} / \Delta) / (v - 1)$: the nearer the marks, the more their categories count,
    and each mark as much in a small cluster as in a large one. A disorder is their ratio. Marks alone in their cluster
    have no say. The dissimilarities are in multiples of Delta.
    """
    near = np.maximum(
        0.0, 1 - dissimilarity.alpha * dissimilarity.positional_dissimilarity(marks) / dissimilarity.delta
    )
    several = clusters[clusters.sum(axis=1) > 1].astype(np.float64)
    shares = several / (several.sum(axis=1, keepdims=True) - 1)
    weights = near * np.einsum("ku,kv->uv", several, shares)  # a matrix product may round otherwise with other threads
    np.fill_diagonal(weights, 0.0)
    apart = (
        weights
        * dissimilarity.categorical_dissimilarity(marks.category[:, None], marks.category[None, :])
        / dissimilarity.delta
    )
    return np.stack([_sum_pairs_by_category(table, marks, categories) for table in (apart, weights)], axis=1)


def _sum_pairs_by_category(pairs: Floats, marks: Continuum, categories: int) -> Floats:
    """Sums of a symmetric matrix over pairs: all, and those where one mark or both have each category."""
    members = [np.flatnonzero(marks.category == category) for category in range(categories)]
    sums = [pairs[rows].sum() - pairs[np.ix_(rows, rows)].sum() / 2 for rows in members]
    return np.array([pairs.sum() / 2, *sums])
