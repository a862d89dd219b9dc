"""Agreement on categories among aligned marks: gamma-cat and gamma-k (Mathet 2017)."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Continuum, Floats
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity


def category_disagreement_sums(
    marks: Continuum, clusters: Bools, dissimilarity: Dissimilarity, categories: int
) -> Floats:
    r"""Return the sums of weighted category dissimilarities and of weights over aligned pairs, (1 + categories, 2).

    Row 0 covers all pairs (gamma-cat), row 1 + k the pairs with a mark of category k (gamma-k). In a cluster of v
    marks, a pair has the weight $\max(0, 1 - \alpha d_{pos} / \Delta) / (v - 1)$: closer marks count more, and a mark
    counts the same in small and large clusters. The disorder is the ratio of the two sums. Marks alone in their cluster
    do not count. Dissimilarities are multiples of Delta.
    """
    delta = dissimilarity.delta
    near = np.maximum(0.0, 1 - dissimilarity.alpha * dissimilarity.positional_dissimilarity(marks) / delta)
    several = clusters[clusters.sum(axis=1) > 1].astype(np.float64)
    shares = several / (several.sum(axis=1, keepdims=True) - 1)
    # The rounding of a matrix product can depend on the number of threads; that of `einsum` cannot.
    weights = near * np.einsum("ku,kv->uv", several, shares)
    np.fill_diagonal(weights, 0.0)
    by_category = dissimilarity.categorical_dissimilarity(marks.category[:, None], marks.category[None, :])
    members = [np.flatnonzero(marks.category == category) for category in range(categories)]
    columns = []
    for pairs in (weights * by_category / delta, weights):
        # Half of the symmetric matrix: all pairs, then the pairs in which at least one mark has the category
        sums = [pairs[rows].sum() - pairs[np.ix_(rows, rows)].sum() / 2 for rows in members]
        columns.append([pairs.sum() / 2, *sums])
    return np.array(columns).T
