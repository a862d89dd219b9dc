r"""A mean over all texts from people's values of some and judges' values of all.

The estimate is a regression estimate: with $\bar y$ the mean of people's values, $\bar f$ the mean of a judge's
values on the same texts and $\bar F$ its mean on all texts,

$$\hat\theta = \bar y + \lambda (\bar F - \bar f).$$

With the best $\lambda$ it is prediction-powered inference with power tuning (Angelopoulos, Duchi and Zrnic 2023,
"PPI++"), written so that the texts people read stay among all texts. What is added for few texts:

- $\lambda$ is shrunk towards 0 by $1 - 2/F$, F being that of the regression, so that a judge of no use costs nothing;
- residuals are those of each text when $\lambda$ is fitted without it (leave-one-out, in one step by the leverages), so
  that fitting is not mistaken for knowing;
- the interval undoes skewness (`mean_interval`).

Texts may lie in strata of known shares, and may have been drawn with unequal probabilities (Horvitz and Thompson 1952,
as a ratio). Several judges are several columns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
SHRINKAGE = 2.0
NO_SPREAD = ErrorMoments(0.0)


@dataclass(frozen=True)
class TextValues:
    """Values of one measure: people's of some texts, judges' of all of them."""

    human: Floats
    """(n,): people's values of the texts that they read."""
    read: Ints
    """(n,): which of all texts these are."""
    judges: Floats
    """(judges, N): every judge's value of every text; no rows where there is no judge."""
    strata: Ints | None = None
    """(N,): the number of each text's stratum, from 0."""
    inclusion: Floats | None = None
    """(n,): in what proportion to the others each text had a chance to be read; None where all had the same."""

    def __post_init__(self) -> None:
        texts = self.judges.shape[1]
        if len(self.human) != len(self.read) or (len(self.read) and self.read.max() >= texts):
            raise ValueError("people's values need the places of their texts among all texts")
        if self.inclusion is not None and (self.inclusion <= 0).any():
            raise FinecombError("a text that was read cannot have had a chance of 0 to be drawn")

    @property
    def text_count(self) -> int:
        """N, all texts."""
        return int(self.judges.shape[1])

    @functools.cached_property
    def stratum_shares(self) -> Floats:
        """Share of all texts in each stratum."""
        strata = np.zeros(self.text_count, dtype=np.int64) if self.strata is None else self.strata
        return np.bincount(strata) / self.text_count

    @functools.cached_property
    def stratum_of_read(self) -> Ints:
        """(n,): the stratum of each text that people read."""
        return np.zeros(len(self.read), dtype=np.int64) if self.strata is None else self.strata[self.read]

    def without_judges_or_strata(self) -> TextValues:
        """Without strata and without judges: people alone."""
        return replace(self, strata=None, judges=self.judges[:0])

    def without_judges(self) -> TextValues:
        """Without judges; strata stay."""
        return replace(self, judges=self.judges[:0])


@dataclass(frozen=True)
class PpiEstimate:
    """An estimated mean with what went into it."""

    value: float
    spread: ErrorMoments
    slopes: Floats
    """(judges,): how much each judge counts; 0 where it adds nothing."""
    influence: Floats
    """(n,): what each text that people read adds to the error of the estimate."""
    fixed: ErrorMoments = NO_SPREAD
    """The part of the spread that more human texts do not lessen: that of judges' means over all texts."""

    def interval(self, level: float = 0.95, signed: bool = False) -> tuple[float, float]:
        """Both ends at a level of confidence; `signed` for differences."""
        return hall_interval(self.value, self.spread, level, signed=signed)

    @property
    def uses_judges(self) -> bool:
        """Whether a judge counts at all."""
        return bool(np.any(self.slopes != 0))


def ppi_mean(values: TextValues) -> PpiEstimate:
    """The mean over all texts; without judges and strata, the plain mean of people's values."""
    _reject_thin_strata(values)
    base = _base_weights(values)
    centred = _centre_by_stratum(values.human[None], values, base)[0]
    design = _Regression.fit(values, base, centred)
    slopes = design.slopes
    gap = _judge_means(values) - values.judges[:, values.read] @ base  # of each judge: all texts less those read
    value = float(base @ values.human + slopes @ gap)
    influence = (base + design.shrinkage * (gap @ design.inverse) @ (design.columns * base)) * design.residuals
    fixed = _judge_mean_error_moments(values, slopes, design.shrinkage)
    spread = _sampling_error_moments(values, base, influence, design.degrees_of_freedom) + fixed
    return PpiEstimate(value, spread, slopes, influence, fixed)


def _reject_thin_strata(values: TextValues) -> None:
    counts = np.bincount(values.stratum_of_read, minlength=len(values.stratum_shares))
    thin = np.flatnonzero((counts < 2) & (values.stratum_shares > 0))
    if len(thin):
        raise FinecombError(
            f"stratum {thin[0]} has {counts[thin[0]]} text read by people; a stratum needs two, so join it with another"
        )


def _base_weights(values: TextValues) -> Floats:
    """(n,): what each text counts without a judge; adds up to the share of its stratum within each stratum."""
    raw = np.ones(len(values.read)) if values.inclusion is None else 1 / values.inclusion
    totals = np.bincount(values.stratum_of_read, raw, len(values.stratum_shares))
    return np.asarray(
        raw * values.stratum_shares[values.stratum_of_read] / totals[values.stratum_of_read], dtype=np.float64
    )


def _centre_by_stratum(rows: Floats, values: TextValues, base: Floats) -> Floats:
    """Rows, (rows, n), less their mean within each stratum."""
    size = len(values.stratum_shares)
    means = np.array([np.bincount(values.stratum_of_read, row * base, size) for row in rows]).reshape(len(rows), size)
    means = np.divide(means, values.stratum_shares, out=np.zeros_like(means), where=values.stratum_shares > 0)
    return np.asarray(rows - means[:, values.stratum_of_read], dtype=np.float64)


def _judge_means(values: TextValues) -> Floats:
    """(judges,): each judge's mean over all texts."""
    return np.asarray(values.judges.mean(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class _Regression:
    """People's values on judges', both without their stratum's mean."""

    columns: Floats
    """(judges, n)."""
    inverse: Floats
    """(judges, judges): of the judges' weighted products."""
    slopes: Floats
    shrinkage: float
    residuals: Floats
    """(n,): of each text when the rest is fitted without it."""

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom that fitting costs."""
        return self.shrinkage * len(self.slopes)

    @classmethod
    def fit(cls, values: TextValues, base: Floats, centred: Floats) -> _Regression:
        columns = _centre_by_stratum(values.judges[:, values.read], values, base)
        products = (columns * base) @ columns.T
        inverse = np.asarray(np.linalg.pinv(products, rcond=1e-9, hermitian=True), dtype=np.float64)
        whole = inverse @ ((columns * base) @ centred)
        shrinkage = _shrinkage(base, centred, centred - whole @ columns, int(np.linalg.matrix_rank(inverse)), values)
        slopes = shrinkage * whole
        leverage = shrinkage * base * np.einsum("kn,kl,ln->n", columns, inverse, columns)
        stratum_leverage = (
            base / values.stratum_shares[values.stratum_of_read]
        )  # leverage of the text on its stratum's mean
        residuals = (centred - slopes @ columns) / (np.sqrt(1 - stratum_leverage) * (1 - np.minimum(leverage, 0.99)))
        return cls(columns, inverse, slopes, shrinkage, residuals)


def _shrinkage(base: Floats, centred: Floats, residuals: Floats, judges: int, values: TextValues) -> float:
    """By how much slopes are pulled towards 0: 1 - 2 / F, 0 where F is below 2 or cannot be had."""
    freedom = len(base) - len(values.stratum_shares) - judges
    unexplained = float(base @ residuals**2)
    explained = float(base @ centred**2) - unexplained
    if not judges or freedom < 1 or explained <= 1e-12:
        return 0.0
    if unexplained <= 1e-12 * explained:
        return 1.0
    return max(0.0, 1 - SHRINKAGE / (explained / judges / (unexplained / freedom)))


def _sampling_error_moments(values: TextValues, base: Floats, influence: Floats, lost: float) -> ErrorMoments:
    """The error from people having read some texts only, stratum by stratum."""
    total = ErrorMoments(0.0)
    for stratum in np.unique(values.stratum_of_read):
        inside = values.stratum_of_read == stratum
        shares = base[inside] / base[inside].sum()
        size = 1 / float((shares**2).sum())  # texts of equal weight that would do as well
        third = float((influence[inside] ** 3).sum())
        third *= math.sqrt(size * (size - 1)) / (size - 2) if size > 2.5 else 0.0  # as the unbiased third moment has it
        total += ErrorMoments(float((influence[inside] ** 2).sum()), third, size - 1)
    return replace(total, df=max(total.df - lost, 1.0))


def _judge_mean_error_moments(values: TextValues, slopes: Floats, shrinkage: float) -> ErrorMoments:
    """The error from all texts being a sample too: of judges' means over them.

    The texts people read are among all texts. With shrunk slopes their residuals still go along with the judges'
    values, which adds 2 (1 - shrinkage) / shrinkage times as much.
    """
    total = ErrorMoments(0.0)
    if not np.any(slopes):
        return total
    line = slopes @ values.judges
    strata = np.zeros(values.text_count, dtype=np.int64) if values.strata is None else values.strata
    for stratum, share in enumerate(values.stratum_shares):
        part = line[strata == stratum]
        if len(part) < 2:
            continue
        centred = part - part.mean()
        weight = share / len(part)
        variance = weight**2 * float((centred**2).sum()) * (2 - shrinkage) / shrinkage
        total += ErrorMoments(variance, weight**3 * float((centred**3).sum()), len(part) - 1)
    return total


def cross_fitted_predictions(
    features: Sequence[object],
    human: Floats,
    read: Ints,
    train: Callable[[Sequence[object], Floats], Callable[[Sequence[object]], Floats]],
    folds: int = 5,
    seed: int = 0,
) -> Floats:
    """A judge trained on people's own values, (N,), that never judges a text it was fitted on.

    People's texts are cut into folds; each is predicted by a judge trained on the others, and texts that nobody read by
    the mean of all of them (Zrnic and Candes 2024, "Cross-prediction-powered inference"). `train` takes features and
    values and returns a function of features.
    """
    if folds < 2 or folds > len(read):
        raise FinecombError(f"{len(read)} texts cannot be cut into {folds} folds; take 2 to {len(read)}")
    fold = np.random.default_rng(seed).permutation(np.arange(len(read)) % folds)
    total, held_out = np.zeros(len(features)), np.zeros(len(features))
    for number in range(folds):
        training = fold != number
        judge = train([features[place] for place in read[training]], human[training])
        predicted = np.asarray(judge(features), dtype=np.float64)
        total += predicted / folds
        held = read[~training]
        held_out[held] = predicted[held]
    total[read] = held_out[read]
    return total


@dataclass(frozen=True, slots=True)
class VarianceGain:
    """How many times as many texts people would have had to read for the same variance, with an interval."""

    ratio: float
    low: float
    high: float


def estimate_variance_gain(without: PpiEstimate, with_judge: PpiEstimate) -> VarianceGain:
    """What the second estimate gains over the first, on the same human texts.

    The interval, at 95%, is that of the logarithm of the ratio, from how each text moves both variances.
    """
    ratio = without.spread.variance / with_judge.spread.variance
    n = len(without.influence)
    if np.array_equal(without.influence, with_judge.influence) or n < 3:
        return VarianceGain(ratio, ratio, ratio)
    before, after = (mean.influence**2 / mean.spread.variance for mean in (without, with_judge))
    reach = 1.96 * float(np.std(before - after, ddof=1)) * math.sqrt(n)
    return VarianceGain(ratio, ratio * math.exp(-reach), ratio * math.exp(reach))
