r"""Confidence intervals over clusters: one module for all statistics.

A statistic is a function of the weights of clusters: all weights 1 give its value, a weight of 0 leaves a cluster out,
and resampled weights give a bootstrap value. The method follows from the kind of the statistic and was chosen by
simulation (`benchmarks/coverage.py`, docs/statistics/intervals.md):

| kind | examples | method |
| --- | --- | --- |
| mean | counts, rates, shares per annotation | Hall's transformed t interval (`hall`), closed form |
| proportion | F1, recall, precision, two-agree | jackknife-t on the logit (`jackknife-t-logit`) |
| coefficient | alpha, kappa, AC1, gamma | bootstrap-t (`bootstrap-t`); jackknife-t outside 8 to 100 clusters |
| correlation | Pearson's r | jackknife-t on Fisher's z (`jackknife-t-z`) |
| number | differences and everything else | jackknife-t (`jackknife-t`) |

If all clusters are 0 or 1, the interval is exact (Clopper and Pearson 1934). The percentile bootstrap is available as
`percentile`. Fewer than four clusters give no interval, and an interval of width 0 is never returned.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy  # submodules load on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.results import Estimate, Signature
from finecomb.statistics.inference.clusters import FEW_CLUSTERS, MIN_CLUSTERS, Clusters, text_clusters
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments
from finecomb.statistics.inference.resampling import seeded_document_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Weights = NDArray[np.float64]  # (draws, clusters)
WeightedStatistic = Callable[[Weights], Floats]
"""Function of the weights of documents, (draws, documents), that returns values, (draws, rows); NaN if undefined."""
StatisticKind = Literal["mean", "proportion", "coefficient", "correlation", "number"]
IntervalMethod = Literal["auto", "percentile"]
Bounds = tuple[float, float]

DEFAULT_LEVEL = 0.95
MAX_BOOTSTRAP_T_CLUSTERS = 100
"""Above this number of clusters, the jackknife-t interval of a coefficient covers as often as bootstrap-t."""
MAX_JACKKNIFE_GROUPS = 1000
"""Above this number of clusters, the jackknife leaves out random groups of clusters."""
MIN_DEFINED_SHARE = 0.5
"""Minimum share of resamples in which a statistic must be defined for an interval."""
NO_DRAWS_REASON = "no resamples were drawn, so there is no interval"
SAME_VALUE_REASON = "all clusters give the same value, so there is no interval"
ONE_CLUSTER_REASON = "the value depends on one cluster, so there is no interval"
_MAX_WEIGHTS_IN_MEMORY = 4_000_000
_BOUNDS_BY_KIND: dict[str, Bounds] = {"proportion": (0.0, 1.0), "coefficient": (-1.0, 1.0), "correlation": (-1.0, 1.0)}


class Interval(NamedTuple):
    """Limits of an interval with the method that computed it, or NaN with the reason."""

    low: float
    high: float
    method: str = ""
    why: str = ""
    """Reason for a missing interval, or `few clusters` with their number."""


@dataclass(frozen=True, slots=True)
class IntervalSettings:
    """Settings of intervals."""

    method: IntervalMethod = "auto"
    draws: int = 1000
    seed: int = 0
    level: float = DEFAULT_LEVEL

    @property
    def signature_fields(self) -> dict[str, object]:
        """Number of draws and seed, if intervals are drawn."""
        is_drawn = self.method == "percentile"
        return {"draws": self.draws if is_drawn else None, "seed": self.seed if is_drawn else None}


DEFAULT_SETTINGS = IntervalSettings()


def count_reason(clusters: int, noun: str = "cluster") -> str:
    """Return the reason why there are too few clusters for an interval, or an empty string."""
    if clusters >= MIN_CLUSTERS:
        return ""
    return f"an interval requires at least {MIN_CLUSTERS} {noun}s, found {clusters}"


def few_clusters_note(clusters: int) -> str:
    """Return the label of intervals over fewer than `FEW_CLUSTERS` clusters, or an empty string."""
    return f"few clusters ({clusters})" if clusters < FEW_CLUSTERS else ""


def missing_interval(why: str) -> Interval:
    """Return an interval without limits."""
    return Interval(math.nan, math.nan, "", why)


def estimate_from_interval(value: float, interval: Interval, signature: Signature, why: str = "") -> Estimate:
    """Build an estimate from a value and its interval; `why` is the reason if the value is undefined."""
    signature = signature.insert(interval=interval.method or None)
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    return Estimate(float(value), interval.low, interval.high, signature, interval.why)


# --- means and ratios --------------------------------------------------------------------------------------------


def ratio_intervals(
    top: Floats,
    bottom: Floats,
    *,
    bounds: Bounds = (-math.inf, math.inf),
    settings: IntervalSettings = DEFAULT_SETTINGS,
    noun: str = "cluster",
) -> list[Interval]:
    r"""Compute the interval of sum(top) / sum(bottom) for each row, from sums per cluster, (clusters, rows).

    The influence of cluster i is exact: $\psi_i = (G - 1)(R - R_{(i)})$ with the ratio $R_{(i)}$ without it, which for
    equal denominators is the deviation of the cluster's mean. Clusters without a denominator do not count. `bounds` are
    the smallest and largest possible value, e.g. 0 and 1 for a share; with both of them, values that are all 0 or all 1
    have an exact interval.
    """
    if settings.method == "percentile":
        return weighted_intervals(
            lambda weights: _divide(weights @ top, weights @ bottom), text_clusters(len(top)), "mean", settings=settings
        )
    return [_ratio_interval(t, b, bounds, settings.level, noun) for t, b in zip(top.T, bottom.T, strict=True)]


def _ratio_interval(top: Floats, bottom: Floats, bounds: Bounds, level: float, noun: str) -> Interval:
    counts = bottom > 0
    if not counts.all():
        top, bottom = top[counts], bottom[counts]
    clusters, total = len(top), bottom.sum()
    if why := count_reason(clusters, noun):
        return missing_interval(why)
    value = top.sum() / total
    residuals = top - value * bottom
    if bounds == (0.0, 1.0):
        is_zero, is_one = top == 0, np.abs(top - bottom) <= 1e-12 * bottom
        is_equal = np.ptp(bottom) <= 1e-12 * total
        if (is_zero | is_one).all() and (is_equal or is_zero.all() or is_one.all()):
            low, high = exact_interval(int(is_one.sum()), clusters, level)
            return Interval(low, high, "exact", few_clusters_note(clusters))
    if np.abs(residuals).max() <= 1e-12 * max(abs(top).max(), 1e-300):
        return missing_interval(_same_value_reason(value, clusters, noun))
    influence = (clusters - 1) * residuals / (total - bottom)
    low, high = hall_interval(float(value), mean_error_moments(influence), level)
    low, high = max(low, bounds[0]), min(high, bounds[1])
    return Interval(low, high, "hall", few_clusters_note(clusters))


def _same_value_reason(value: float, clusters: int, noun: str) -> str:
    if value == 0:
        high = exact_interval(0, clusters)[1]
        return (
            f"0 in all {clusters} {noun}s, so there is no interval;"
            f" at most {high:.0%} of {noun}s differ from 0 (exact, 95%)"
        )
    return f"all {clusters} {noun}s give the same value, so there is no interval"


@functools.lru_cache(maxsize=4096)
def t_quantile(df: float, level: float = DEFAULT_LEVEL) -> float:
    """Return the two-sided quantile of Student's t distribution."""
    return float(scipy.special.stdtrit(df, (1 + level) / 2))


@functools.lru_cache(maxsize=4096)
def exact_interval(successes: int, trials: int, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
    """Compute the exact interval of a binomial probability (Clopper and Pearson 1934).

    >>> [round(limit, 3) for limit in exact_interval(0, 10)]
    [0.0, 0.308]
    """
    tail, failures = (1 - level) / 2, trials - successes
    low = float(scipy.special.betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(scipy.special.betaincinv(successes + 1, failures, 1 - tail)) if failures else 1.0
    return low, high


def two_way_ratio_intervals(
    top: Floats,
    bottom: Floats,
    first: Ints,
    second: Ints,
    *,
    bounds: Bounds = (-math.inf, math.inf),
    settings: IntervalSettings = DEFAULT_SETTINGS,
) -> list[Interval]:
    r"""Compute intervals of ratios whose observations belong to two crossed clusters, e.g. text and annotator.

    `top` and `bottom` have the shape (observations, rows), `first` and `second` give the clusters. The variance is
    $V_1 + V_2 - V_{12}$ (Cameron, Gelbach and Miller 2011), or the larger of $V_1$ and $V_2$ if the sum is smaller. The
    t quantile is that of the smaller number of clusters.
    """
    cells = first * (int(second.max(initial=-1)) + 1) + second
    intervals: list[Interval] = []
    for t, b in zip(top.T, bottom.T, strict=True):
        counts = b > 0
        groups = [np.unique(key[counts], return_inverse=True) for key in (first, second, cells)]
        clusters = min((len(names) for names, _ in groups[:2]), default=0)
        if why := count_reason(clusters):
            intervals.append(missing_interval(why))
            continue
        value = t[counts].sum() / b[counts].sum()
        variances = [
            _linearised_variance(_sum_groups(at, t[counts]), _sum_groups(at, b[counts]), value) for _, at in groups
        ]
        variance = max(variances[0] + variances[1] - variances[2], variances[0], variances[1])
        if not variance > 0:
            intervals.append(missing_interval(SAME_VALUE_REASON))
            continue
        reach = t_quantile(clusters - 1, settings.level) * math.sqrt(variance)
        low, high = max(value - reach, bounds[0]), min(value + reach, bounds[1])
        intervals.append(Interval(low, high, "two-way-t", few_clusters_note(clusters)))
    return intervals


def _sum_groups(groups: Ints, values: Floats) -> Floats:
    return np.bincount(groups, values).astype(np.float64)


def _linearised_variance(top: Floats, bottom: Floats, value: float) -> float:
    clusters = len(top)
    influence = (clusters - 1) * (top - value * bottom) / np.maximum(bottom.sum() - bottom, 1e-300)
    return float(np.square(influence).sum()) / (clusters - 1) / clusters


# --- any statistic -----------------------------------------------------------------------------------------------


def weighted_intervals(
    evaluate: WeightedStatistic,
    clusters: Clusters,
    kind: StatisticKind | Sequence[StatisticKind],
    *,
    bounds: Bounds | None = None,
    settings: IntervalSettings = DEFAULT_SETTINGS,
    value: Floats | None = None,
) -> list[Interval]:
    """Compute the interval of each row of a statistic that is a function of the weights of documents.

    `kind` is one kind for all rows or one per row. `bounds` are the limits of the statistic's range, if they differ
    from those of its kind. `value` is the value of each row, if already computed.
    """
    noun = clusters.name if clusters.name else "cluster"
    value = evaluate(np.ones((1, len(clusters.positions))))[0] if value is None else value
    kinds = [kind] * len(value) if isinstance(kind, str) else list(kind)
    limits = [bounds or _BOUNDS_BY_KIND.get(name, (-math.inf, math.inf)) for name in kinds]
    if why := count_reason(clusters.count, noun):
        return [missing_interval(why)] * len(value)
    if settings.method == "percentile":
        return _percentile_intervals(evaluate, clusters, settings)
    if clusters.count > MAX_JACKKNIFE_GROUPS:
        order = np.random.default_rng(settings.seed).permutation(clusters.count) % MAX_JACKKNIFE_GROUPS
        clusters = Clusters(clusters.name, order[clusters.positions], clusters.is_default)
    count = clusters.count
    one = np.eye(count)
    left_out, alone = np.split(evaluate_batches(evaluate, clusters, np.concatenate([1 - one, one])), 2)
    is_bootstrapped = np.array(kinds) == "coefficient"
    quantiles = np.full((2, len(value)), np.nan)
    if is_bootstrapped.any() and FEW_CLUSTERS <= count <= MAX_BOOTSTRAP_T_CLUSTERS and settings.draws:
        quantiles = bootstrap_t_quantiles(evaluate, clusters, value, settings)
    return [
        _weighted_interval(
            float(value[row]), left_out[:, row], alone[:, row], kinds[row], limits[row],
            quantiles[:, row] if is_bootstrapped[row] else np.full(2, np.nan), settings.level, noun,
        )
        for row in range(len(value))
    ]  # fmt: skip


def _weighted_interval(
    value: float,
    left_out: Floats,
    alone: Floats,
    kind: str,
    bounds: Bounds,
    quantiles: Floats,
    level: float,
    noun: str,
) -> Interval:
    if math.isnan(value):
        return missing_interval("")
    # A cluster counts if it has a value of its own or changes the value; e.g. a text that only gold marked has no F1
    informative = np.isfinite(alone) | ~(np.abs(left_out - value) <= 1e-12)
    found = int(informative.sum())
    if why := count_reason(found, noun):
        return missing_interval(f"{why} with a value")
    if not np.isfinite(left_out).all():
        return missing_interval(ONE_CLUSTER_REASON)
    note = few_clusters_note(found)
    # Clusters without a value do not change a proportion, so they do not count. Those of a coefficient do: a text
    # without marks has no alpha of its own, but it changes chance agreement.
    count = found if kind in ("proportion", "mean") else len(left_out)
    if kind == "proportion" and value in bounds and np.isin(alone[np.isfinite(alone)], bounds).all():
        low, high = exact_interval(found if value == bounds[1] else 0, found, level)
        width = bounds[1] - bounds[0]
        return Interval(bounds[0] + low * width, bounds[0] + high * width, "exact", note)
    changes = left_out - left_out.mean()
    if count == found:
        left_out = left_out[informative]
        changes = left_out - left_out.mean()
    error = math.sqrt((count - 1) / count * float(changes @ changes))
    if error <= 1e-12 * max(1.0, abs(value)):
        return missing_interval(f"all {count} {noun}s give the same value, so there is no interval")
    reach = t_quantile(count - 1, level)
    if kind in ("proportion", "correlation") and bounds[0] < value < bounds[1]:
        low, high = _transformed_limits(value, left_out, error, count, reach, bounds)
        return Interval(low, high, "jackknife-t-logit" if kind == "proportion" else "jackknife-t-z", note)
    if kind == "mean":
        pseudo = (count - 1) * (value - left_out)
        low, high = hall_interval(value, mean_error_moments(pseudo), level)
        return Interval(max(low, bounds[0]), min(high, bounds[1]), "hall", note)
    if np.isfinite(quantiles).all():
        low, high = value - quantiles[1] * error, value - quantiles[0] * error
        return Interval(max(low, bounds[0]), min(high, bounds[1]), "bootstrap-t", note)
    low, high = max(value - reach * error, bounds[0]), min(value + reach * error, bounds[1])
    return Interval(low, high, "jackknife-t", note)


def _transformed_limits(
    value: float, left_out: Floats, error: float, count: int, reach: float, bounds: Bounds
) -> tuple[float, float]:
    """Compute a jackknife-t interval on the logit of the position between two bounds.

    For the bounds -1 and 1, the logit is twice Fisher's z. If a value without one cluster is a bound, its logit is
    infinite, and the error is transformed by the derivative instead.
    """
    low, width = bounds[0], bounds[1] - bounds[0]
    share, shares = (value - low) / width, (left_out - low) / width
    centre = math.log(share / (1 - share))
    if ((shares > 0) & (shares < 1)).all():
        logits = np.log(shares / (1 - shares))
        changes = logits - logits.mean()
        error_of_logit = math.sqrt((count - 1) / count * float(changes @ changes))
    else:
        error_of_logit = error / width / (share * (1 - share))
    limits = [low + width * float(scipy.special.expit(centre + side * reach * error_of_logit)) for side in (-1.0, 1.0)]
    return limits[0], limits[1]


def evaluate_batches(evaluate: WeightedStatistic, clusters: Clusters, weights: Weights) -> Floats:
    """Evaluate a statistic for weights of clusters, (draws, clusters), a few million weights at a time."""
    parts = [evaluate(clusters.expand_weights(batch)) for batch in _iter_batches(weights, len(clusters.positions))]
    return np.concatenate(parts)


def _iter_batches(weights: Weights, documents: int) -> Iterator[Weights]:
    step = max(1, _MAX_WEIGHTS_IN_MEMORY // max(1, documents))
    for start in range(0, len(weights), step):
        yield weights[start : start + step]


def bootstrap_t_quantiles(
    evaluate: WeightedStatistic, clusters: Clusters, value: Floats, settings: IntervalSettings
) -> Floats:
    r"""Return the quantiles of $t^* = (\hat\theta^* - \hat\theta) / s^*$ for each row, (2, rows).

    Each resample has its own jackknife standard error $s^*$, for which one copy of each drawn cluster is left out.
    NaN if a statistic is undefined in most resamples.
    """
    count = clusters.count
    weights = seeded_document_weights(count, settings.draws, settings.seed)
    drawn = evaluate_batches(evaluate, clusters, weights)  # (draws, rows)
    errors = np.empty_like(drawn)
    step = max(1, _MAX_WEIGHTS_IN_MEMORY // max(1, count * len(clusters.positions)))
    for start in range(0, len(weights), step):
        batch = weights[start : start + step]
        without = batch[:, None, :] - np.eye(count) * (batch > 0)[:, None, :]
        values = evaluate(clusters.expand_weights(without.reshape(-1, count))).reshape(len(batch), count, -1)
        copies = batch[:, :, None]
        values = np.where(copies > 0, values, 0.0)
        means = (copies * values).sum(axis=1, keepdims=True) / count
        squares = (copies * np.square(values - means)).sum(axis=1)
        errors[start : start + step] = np.sqrt((count - 1) / count * squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (drawn - value) / errors
    ratios[(errors <= 1e-12) & (np.abs(drawn - value) <= 1e-12)] = 0.0
    quantiles = np.full((2, len(value)), np.nan)
    for row in range(len(value)):
        defined = ratios[~np.isnan(ratios[:, row]), row]
        if len(defined) >= MIN_DEFINED_SHARE * len(ratios):
            tails = [(1 - settings.level) / 2, (1 + settings.level) / 2]
            # An infinite ratio comes from a resample without variation; the range of the statistic limits it later.
            quantiles[:, row] = np.clip(np.quantile(defined, tails, method="inverted_cdf"), -1e9, 1e9)
    return quantiles


def _percentile_intervals(
    evaluate: WeightedStatistic, clusters: Clusters, settings: IntervalSettings
) -> list[Interval]:
    if not settings.draws:
        value = evaluate(np.ones((1, len(clusters.positions))))[0]
        return [missing_interval(NO_DRAWS_REASON)] * len(value)
    drawn = evaluate_batches(evaluate, clusters, seeded_document_weights(clusters.count, settings.draws, settings.seed))
    return [percentile_of_draws(values, clusters.count, level=settings.level) for values in drawn.T]


def percentile_of_draws(values: Floats, clusters: int, reason: str = "", level: float = DEFAULT_LEVEL) -> Interval:
    """Return the percentile interval of resampled values, (draws,); `reason` is set if it has none."""
    defined = values[np.isfinite(values)]
    if not reason and not len(values):
        reason = NO_DRAWS_REASON
    if not reason and (not len(defined) or np.ptp(defined) == 0):
        reason = (
            "all resamples give the same value, so there is no interval" if len(defined) else "no resample has a value"
        )
    if reason:
        return missing_interval(reason)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), "percentile", few_clusters_note(clusters))


def _divide(top: Floats, bottom: Floats) -> Floats:
    result = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result
