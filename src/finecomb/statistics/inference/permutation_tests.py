"""Permutation tests and bootstrap intervals of a difference of means, and corrections for many tests."""

from __future__ import annotations

import itertools
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.resampling import (
    bootstrap_interval_from_sums,
    draws_per_batch,
    mean_difference_interval,
    permutation_p_value,
    ratio_or_nan,
)

Values = NDArray[np.float64]
Correction = Literal["holm", "bonferroni", "none"]


class MeanDifference(NamedTuple):
    """A difference, its p and its interval."""

    difference: float
    p: float
    low: float
    high: float
    exact: bool
    """Whether every arrangement was looked at."""


_ALWAYS_EXACT = 10_000  # so many arrangements are listed in no time


def paired_permutation_test(first: Values, second: Values, draws: int, rng: np.random.Generator) -> MeanDifference:
    """Mean of `first - second`; under the null each difference could have had the other sign.

    Exact when there are no more than `draws` (or 10,000) arrangements, else p = (1 + hits) / (1 + draws) (Phipson and
    Smyth 2010), NaN without draws.
    The interval resamples pairs. All NaN with fewer than two pairs.
    """
    d = first - second
    if len(d) < 2:
        return MeanDifference(float(d.mean()) if len(d) else math.nan, math.nan, math.nan, math.nan, exact=False)
    exact = 2 ** len(d) <= max(draws, _ALWAYS_EXACT)
    null = _all_sign_flip_means(d) if exact else _random_sign_flip_means(d, draws, rng)
    low, high = bootstrap_interval_from_sums(
        np.stack([d, np.ones(len(d))], axis=1), lambda s: ratio_or_nan(s[:, 0], s[:, 1]), draws, rng
    )
    return MeanDifference(float(d.mean()), permutation_p_value(null, float(d.mean()), exact), low, high, exact)


def unpaired_permutation_test(first: Values, second: Values, draws: int, rng: np.random.Generator) -> MeanDifference:
    """Mean of `first` minus mean of `second`; under the null each value could have been of the other group.

    Exact and Monte Carlo as in `paired`. The interval resamples each group. NaN with fewer than two values in a group.
    """
    if min(len(first), len(second)) < 2:
        are_values = len(first) and len(second)
        difference = float(first.mean() - second.mean()) if are_values else math.nan
        return MeanDifference(difference, math.nan, math.nan, math.nan, exact=False)
    both, n = np.concatenate([first, second]), len(first)
    difference = float(first.mean() - second.mean())
    exact = math.comb(len(both), n) <= max(draws, _ALWAYS_EXACT)
    sums = _all_split_sums(both, n) if exact else _random_split_sums(both, n, draws, rng)
    null = sums / n - (both.sum() - sums) / len(second)
    low, high = mean_difference_interval(first, second, draws, rng)
    return MeanDifference(difference, permutation_p_value(null, difference, exact), low, high, exact)


def _all_sign_flip_means(d: Values) -> Values:
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(d))))
    means: Values = signs @ d / len(d)
    return means


def _random_sign_flip_means(d: Values, draws: int, rng: np.random.Generator) -> Values:
    sizes = draws_per_batch(draws, len(d))
    return np.concatenate([(2.0 * rng.integers(0, 2, (size, len(d))) - 1) @ d / len(d) for size in sizes])


def _all_split_sums(both: Values, n: int) -> Values:
    """Sum of the first group in every split."""
    arrangements = np.array(list(itertools.combinations(range(len(both)), n)))
    sums: Values = both[arrangements].sum(axis=1)
    return sums


def _random_split_sums(both: Values, n: int, draws: int, rng: np.random.Generator) -> Values:
    sizes = draws_per_batch(draws, len(both))
    return np.concatenate(
        [rng.permuted(np.broadcast_to(both, (size, len(both))), axis=1)[:, :n].sum(axis=1) for size in sizes]
    )


def adjust_p_values(p: Values, correction: Correction = "holm") -> Values:
    """p-values corrected for how many there are; NaN stays NaN and is no test.

    Holm (1979): the smallest times m, the next times m - 1, ..., never falling; Bonferroni: all times m; at most 1.

    >>> adjust_p_values(np.array([0.01, 0.04, 0.03]), "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    if correction not in ("holm", "bonferroni", "none"):
        raise FinecombError(f"a correction is holm, bonferroni or none, not {correction!r}")
    p = np.asarray(p, dtype=np.float64)
    result, defined = p.copy(), np.flatnonzero(~np.isnan(p))
    m = len(defined)
    if correction == "bonferroni":
        result[defined] = np.minimum(1, m * p[defined])
    elif correction == "holm":
        order = defined[np.argsort(p[defined], kind="stable")]
        result[order] = np.minimum(1, np.maximum.accumulate((m - np.arange(m)) * p[order]))
    return result
