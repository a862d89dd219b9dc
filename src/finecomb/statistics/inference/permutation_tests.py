r"""Studentised permutation tests of a difference of means, intervals that invert them, and corrections.

A permutation test of the plain difference of means rejects a true null hypothesis too often if the groups differ in
size and variance. Dividing each permuted difference by its own standard error makes the test valid (Chung and Romano
2013, "Exact and asymptotically robust permutation tests"). Clusters are permuted as a whole. Pairs are permuted within
pairs. If only some texts can be paired, both parts are permuted and combined with weights by their variances.

The interval consists of the differences that the same test, with the same permutations, does not reject, so it contains
0 exactly if p is above 1 - level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.resampling import draws_per_batch, permutation_p_value

Values = NDArray[np.float64]
ClusterSums = NDArray[np.float64]  # (clusters, 2): sum of values and number of texts
Correction = Literal["max-t", "holm", "bonferroni", "none"]
MIN_PART_CLUSTERS = 4
"""Minimum number of pairs, or of clusters per group, for a part of a partly paired comparison to count."""
_MAX_EXACT_ARRANGEMENTS = 10_000  # up to this many arrangements are enumerated quickly
_TOLERANCE = 1e-10


class MeanDifference(NamedTuple):
    """Difference of means with its p-value and interval."""

    difference: float
    p: float
    low: float
    high: float
    exact: bool
    """True if the test enumerated all arrangements."""
    error: float = math.nan
    """Standard error of the difference."""
    why: str = ""
    """Reason for a missing p-value or interval."""


class ShiftedPart(NamedTuple):
    """Estimate and variance of one part after a hypothetical difference was removed: observed, then permuted."""

    estimate: float
    variance: float
    null_estimates: Values
    null_variances: Values


@dataclass(frozen=True, slots=True)
class PermutedPairs:
    """Differences of pairs, and sums of their randomly signed values."""

    differences: Values
    signed: Values
    """(draws, 2): sum of signed differences, and sum of signs."""

    def shift(self, delta: float) -> ShiftedPart:
        """Return estimates and variances if `delta` is subtracted from each difference."""
        d, n = self.differences - delta, len(self.differences)
        square = float(d @ d)
        null = (self.signed[:, 0] - delta * self.signed[:, 1]) / n
        variances = np.maximum(square / n - null**2, 0.0) / (n - 1)
        mean = float(d.mean())
        return ShiftedPart(mean, max(square / n - mean**2, 0.0) / (n - 1), null, variances)


@dataclass(frozen=True, slots=True)
class PermutedGroups:
    """Cluster sums of two groups, and sums over the first group of each random split."""

    first: int
    """Number of clusters in the first group."""
    moments: Values
    """(clusters, 8): t, b, tt, tb, bb and, in the first group only, b, tb, bb; t is a sum and b a number of texts."""
    split_moments: Values
    """(draws, 8): sums of the moments over the clusters that a split assigns to the first group."""

    def shift(self, delta: float) -> ShiftedPart:
        """Return estimates and variances if `delta` is subtracted from each value of the first group."""
        totals = self.moments.sum(axis=0)
        sizes = self.first, len(self.moments) - self.first
        own = self.moments[: self.first].sum(axis=0)
        differences = []
        for first in (own, self.split_moments):
            a, variance_a = _ratio_and_variance(_shift_moments(first, delta), sizes[0])
            b, variance_b = _ratio_and_variance(_shift_moments(totals - first, delta), sizes[1])
            differences.append((a - b, variance_a + variance_b))
        (estimate, variance), null = differences
        return ShiftedPart(float(estimate), float(variance), *null)


def _shift_moments(moments: Values, delta: float) -> tuple[Values, Values, Values, Values, Values]:
    """Return the sums of t, b, tt, tb and bb after t - delta * b in the first group."""
    t, b, tt, tb, bb, own_b, own_tb, own_bb = np.moveaxis(moments, -1, 0)
    return t - delta * own_b, b, tt - 2 * delta * own_tb + delta**2 * own_bb, tb - delta * own_bb, bb


def _ratio_and_variance(sums: tuple[Values, Values, Values, Values, Values], clusters: int) -> tuple[Values, Values]:
    """Return sum(t) / sum(b) and its linearised variance over clusters."""
    t, b, tt, tb, bb = sums
    ratio = t / b
    residual = np.maximum(tt - 2 * ratio * tb + ratio**2 * bb, 0.0)
    return ratio, residual / b**2 * clusters / (clusters - 1)


def paired_permutation_test(
    first: Values, second: Values, draws: int, rng: np.random.Generator, level: float = 0.95
) -> MeanDifference:
    """Test the mean of `first - second`; under the null hypothesis each difference has a random sign.

    The test is exact if there are at most 10,000 arrangements. Otherwise p = (1 + hits) / (1 + draws) (Phipson and
    Smyth 2010); p is NaN without draws. p and interval are NaN with fewer than two pairs.
    """
    none = np.zeros((0, 2))
    return difference_test(first - second, none, none, draws, rng, level)


def unpaired_permutation_test(
    first: Values, second: Values, draws: int, rng: np.random.Generator, level: float = 0.95
) -> MeanDifference:
    """Test the mean of `first` minus the mean of `second`; under the null hypothesis group membership is random.

    p and interval are NaN with fewer than two values in a group.
    """
    groups = [np.stack([values, np.ones(len(values))], axis=1) for values in (first, second)]
    return difference_test(np.zeros(0), groups[0], groups[1], draws, rng, level)


def difference_test(
    pairs: Values,
    first: ClusterSums,
    second: ClusterSums,
    draws: int,
    rng: np.random.Generator,
    level: float = 0.95,
    invert: bool = True,
) -> MeanDifference:
    """Test a difference of means from differences of pairs, from two groups of clusters, or from both.

    `pairs` are the differences of paired clusters; `first` and `second` have the sum of values and the number of texts
    of each unpaired cluster. If both parts have at least `MIN_PART_CLUSTERS`, their estimates are combined with weights
    by their variances; otherwise the larger part counts. Without `invert`, only p is computed.
    """
    parts = choose_parts(len(pairs), len(first), len(second))
    if not parts:
        return _untested_difference(pairs, first, second)
    exact = False
    permuted: list[PermutedPairs | PermutedGroups] = []
    if "pairs" in parts:
        exact = len(parts) == 1 and 2 ** min(len(pairs), 64) <= _MAX_EXACT_ARRANGEMENTS
        permuted.append(_permute_pairs(pairs, draws, rng, exact))
    if "groups" in parts:
        arrangements = math.comb(len(first) + len(second), len(first))
        exact = len(parts) == 1 and arrangements <= _MAX_EXACT_ARRANGEMENTS
        permuted.append(_permute_groups(first, second, draws, rng, exact))
    observed = [part.shift(0.0) for part in permuted]
    scale = max((float(np.abs(values).max()) for values in (pairs, first, second) if values.size), default=0.0)
    floor = max(_TOLERANCE**2 * scale**2, 1e-300)  # variances below are rounding errors
    varies = [part.variance > floor for part in observed]
    if any(varies):  # a part without variation would have an infinite weight, so it does not count
        permuted, observed = list(itertools.compress(permuted, varies)), list(itertools.compress(observed, varies))
    weights = [1 / max(part.variance, floor) for part in observed]
    estimate = observed[0].estimate
    if len(observed) > 1:
        estimate = sum(w * part.estimate for w, part in zip(weights, observed, strict=True)) / sum(weights)
    error = 1 / math.sqrt(sum(weights))

    def p_value(delta: float) -> float:
        statistic, null = _studentise([part.shift(delta) for part in permuted], floor)
        return permutation_p_value(null, statistic, exact)

    p = p_value(0.0)
    if math.isnan(p):
        return MeanDifference(estimate, p, math.nan, math.nan, exact, error, "no permutations were drawn")
    if not invert:
        return MeanDifference(estimate, p, math.nan, math.nan, exact, error)
    if not any(varies):
        why = "all values are equal within each group, so there is no interval"
        return MeanDifference(estimate, p, math.nan, math.nan, exact, math.nan, why)
    # An arrangement and its mirror image are equally extreme, so few arrangements cannot reject any difference
    is_hopeless = exact and 2 / len(observed[0].null_estimates) > 1 - level
    low, high = (
        math.copysign(math.inf, side) if is_hopeless else _invert_test(p_value, estimate, side * error, p, 1 - level)
        for side in (-1.0, 1.0)
    )
    why = ""
    if math.isinf(low) or math.isinf(high):
        low = high = math.nan
        why = f"too few clusters: the smallest possible p-value is above {1 - level:.2g}, so there is no interval"
    return MeanDifference(estimate, p, low, high, exact, error, why)


def difference_contributions(pairs: Values, first: ClusterSums, second: ClusterSums) -> tuple[Values, Values, Values]:
    """Return the deviations of pairs and of clusters of each group, whose sum is the error of `difference_test`."""
    result = np.zeros(len(pairs)), np.zeros(len(first)), np.zeros(len(second))
    parts = choose_parts(len(pairs), len(first), len(second))
    deviations: list[tuple[tuple[int, ...], list[Values], float]] = []
    if "pairs" in parts:
        own = (pairs - pairs.mean()) / len(pairs)
        deviations.append(((0,), [own], float(own @ own)))
    if "groups" in parts:
        sides = []
        for group, sign in ((first, 1.0), (second, -1.0)):
            total = group.sum(axis=0)
            sides.append(sign * (group[:, 0] - total[0] / total[1] * group[:, 1]) / total[1])
        variance = sum(float(side @ side) * len(side) / (len(side) - 1) for side in sides)
        deviations.append(((1, 2), sides, variance))
    varying = [entry for entry in deviations if entry[2] > 0]
    for places, arrays, variance in varying:
        share = 1 / variance / sum(1 / entry[2] for entry in varying)
        for place, array in zip(places, arrays, strict=True):
            result[place][:] = share * array
    return result


def choose_parts(pairs: int, first: int, second: int) -> tuple[str, ...]:
    """Return the parts of a comparison that count: `pairs`, `groups` or both; none with fewer than two clusters."""
    both = [name for name, size in (("pairs", pairs), ("groups", min(first, second))) if size >= MIN_PART_CLUSTERS]
    if both:
        return tuple(both)
    if max(pairs, min(first, second)) < 2:
        return ()
    return ("pairs",) if pairs >= min(first, second) else ("groups",)


def _untested_difference(pairs: Values, first: ClusterSums, second: ClusterSums) -> MeanDifference:
    difference = math.nan
    if len(pairs):
        difference = float(pairs.mean())
    elif len(first) and len(second):
        difference = float(first[:, 0].sum() / first[:, 1].sum() - second[:, 0].sum() / second[:, 1].sum())
    return MeanDifference(difference, math.nan, math.nan, math.nan, exact=False, why="fewer than two clusters")


def _permute_pairs(differences: Values, draws: int, rng: np.random.Generator, exact: bool) -> PermutedPairs:
    n = len(differences)
    columns = np.stack([differences, np.ones(n)], axis=1)
    if exact:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return PermutedPairs(differences, np.asarray(signs @ columns, dtype=np.float64))
    sums = [(2.0 * rng.integers(0, 2, (size, n)) - 1) @ columns for size in draws_per_batch(draws, n)]
    return PermutedPairs(differences, np.concatenate(sums))


def _permute_groups(
    first: ClusterSums, second: ClusterSums, draws: int, rng: np.random.Generator, exact: bool
) -> PermutedGroups:
    t, b = np.concatenate([first, second]).T
    t = t - t.sum() / b.sum() * b  # centred, because variances are differences of squares
    n, size = len(t), len(first)
    own = (np.arange(n) < size).astype(np.float64)
    moments = np.stack([t, b, t * t, t * b, b * b, own * b, own * t * b, own * b * b], axis=1)
    if exact:
        members = np.array(list(itertools.combinations(range(n), size)))
        return PermutedGroups(size, moments, moments[members].sum(axis=1))
    sums = [rng.permuted(np.broadcast_to(own, (count, n)), axis=1) @ moments for count in draws_per_batch(draws, n)]
    return PermutedGroups(size, moments, np.concatenate(sums))


def _studentise(parts: list[ShiftedPart], floor: float) -> tuple[float, Values]:
    """Return the combined t statistic, observed and permuted; variances are at least `floor`."""
    tops, bottoms = 0.0, 0.0
    null_tops = np.zeros_like(parts[0].null_estimates)
    null_bottoms = np.zeros_like(null_tops)
    for part in parts:
        variance, variances = max(part.variance, floor), np.maximum(part.null_variances, floor)
        tops += part.estimate / variance
        bottoms += 1 / variance
        null_tops += part.null_estimates / variances
        null_bottoms += 1 / variances
    return tops / math.sqrt(bottoms), null_tops / np.sqrt(null_bottoms)


def _invert_test(p_value: Callable[[float], float], estimate: float, step: float, p: float, alpha: float) -> float:
    """Return the limit of the interval on the side of `step`: where p falls to `alpha`.

    The search keeps a difference that is not rejected and one that is rejected. It starts with 0, so that the interval
    never contradicts the p-value.
    """
    inside, outside = estimate, math.nan
    if step * (0.0 - estimate) > 0:  # 0 lies on this side of the estimate
        if p > alpha:
            inside = 0.0
        else:
            outside = 0.0
    reach = step
    while math.isnan(outside):
        candidate = inside + reach
        if abs(reach) > abs(step) * 2**10:
            return math.copysign(math.inf, step)
        if p_value(candidate) > alpha:
            inside = candidate
            reach *= 2
        else:
            outside = candidate
    for _ in range(30):
        middle = (inside + outside) / 2
        if p_value(middle) > alpha:
            inside = middle
        else:
            outside = middle
    return outside if outside != 0.0 else inside


# --- several comparisons -----------------------------------------------------------------------------------------


class SimultaneousTests(NamedTuple):
    """Single-step max-t adjustment of several comparisons."""

    p: Values
    """(comparisons,): adjusted p-values; NaN for comparisons without a standard error."""
    critical: float
    """Quantile of the largest |t|: an estimate plus and minus this number of standard errors is simultaneous."""


def max_t_adjustment(
    contributions: Values, statistics: Values, draws: int, rng: np.random.Generator, level: float = 0.95
) -> SimultaneousTests:
    r"""Adjust p-values by the distribution of the largest $|t|$ over all comparisons (Westfall and Young 1993).

    `contributions` are the deviations of clusters from each comparison's estimate, (clusters, comparisons); 0 where a
    cluster takes no part. Under the null hypothesis, a cluster's contributions to all comparisons change sign together,
    which keeps their dependence. `statistics` are the observed t statistics.
    """
    defined = np.isfinite(statistics) & (np.abs(contributions) > 0).any(axis=0)
    adjusted = np.full(len(statistics), np.nan)
    if not defined.any() or not draws:
        return SimultaneousTests(adjusted, math.nan)
    columns = contributions[:, defined]
    counts = (columns != 0).sum(axis=0)
    squares = np.square(columns).sum(axis=0)
    largest = []
    for size in draws_per_batch(draws, sum(columns.shape)):
        sums = (2.0 * rng.integers(0, 2, (size, len(columns))) - 1) @ columns
        variances = np.maximum(squares - sums**2 / counts, _TOLERANCE * squares) * counts / np.maximum(counts - 1, 1)
        largest.append((np.abs(sums) / np.sqrt(variances)).max(axis=1))
    null = np.concatenate(largest)
    hits = (null[:, None] >= np.abs(statistics[defined]) * (1 - _TOLERANCE)).sum(axis=0)
    adjusted[defined] = (1 + hits) / (1 + len(null))
    # The smallest critical value whose adjusted p-value is at most 1 - level
    rank = math.floor((1 - level) * (1 + len(null))) - 1
    critical = math.inf if rank < 0 else float(np.sort(null)[::-1][rank])
    return SimultaneousTests(adjusted, critical)


def adjust_p_values(p: Values, correction: Correction = "holm") -> Values:
    """Correct p-values for multiple tests; NaN values stay NaN and do not count as tests.

    Holm (1979) multiplies the smallest p by m, the next by m - 1, and so on, and keeps the corrected p in ascending
    order. Bonferroni multiplies all by m. Corrected p-values are at most 1. Max-t needs more than p-values, see
    `max_t_adjustment`.

    >>> adjust_p_values(np.array([0.01, 0.04, 0.03]), "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    if correction not in ("holm", "bonferroni", "none"):
        raise FinecombError(f"correction must be holm, bonferroni or none, found {correction!r}")
    p = np.asarray(p, dtype=np.float64)
    result, defined = p.copy(), np.flatnonzero(~np.isnan(p))
    m = len(defined)
    if correction == "bonferroni":
        result[defined] = np.minimum(1, m * p[defined])
    elif correction == "holm":
        order = defined[np.argsort(p[defined], kind="stable")]
        result[order] = np.minimum(1, np.maximum.accumulate((m - np.arange(m)) * p[order]))
    return result
