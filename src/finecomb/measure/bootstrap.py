"""Intervals by resampling whole documents: tokens of one text are not independent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Sums = NDArray[np.float64]  # (documents, statistics): sufficient statistics of each document


def ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """numerator / denominator, NaN where the denominator is 0."""
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def interval(
    sums: Sums,
    statistic: Callable[[Sums], NDArray[np.float64]],
    draws: int,
    rng: np.random.Generator,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile interval of `statistic` when documents are drawn with replacement.

    `statistic` takes summed statistics, (draws, statistics), and returns one value a draw; undefined ones are left out.
    (NaN, NaN) with fewer than two documents or when no draw gives a value.
    """
    documents = len(sums)
    if documents < 2 or draws < 1:
        return np.nan, np.nan
    weights = rng.multinomial(documents, np.full(documents, 1 / documents), size=draws)  # (draws, documents)
    values = statistic(weights @ sums)
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
