r"""Prediction-powered inference: a mean over all texts from people's values on some and judges' values on all.

The estimate is a regression estimate. With $\bar y$ the mean of people's values, $\bar f$ the mean of a judge's values
on the same texts and $\bar F$ its mean on all texts,

$$\hat\theta = \bar y + \lambda (\bar F - \bar f).$$

With the best $\lambda$ this is prediction-powered inference with power tuning (Angelopoulos, Duchi and Zrnic 2023,
"PPI++"), in a form in which "all texts" include the human-annotated ones. Additions for small samples:

- $\lambda$ is shrunk towards 0 by $1 - 2/F$, with F from the regression, so that a useless judge does no harm.
- Residuals are leave-one-out, computed in one step from the leverages, so that overfitting does not narrow the
  interval.
- The interval is corrected for skewness (`mean_interval`).

Texts may belong to strata of known shares, and may have been drawn with unequal probabilities (Horvitz and Thompson
1952, as a ratio). Each judge is one column.
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
ZERO_ERROR_MOMENTS = ErrorMoments(0.0)


@dataclass(frozen=True)
class TextValues:
    """Values of one measure, from people on some texts and from judges on all texts."""

    human: Floats
    """(n,): people's values on the texts that they annotated."""
    read: Ints
    """(n,): positions of the human-annotated texts among all texts."""
    judges: Floats
    """(judges, N): value of each judge on each text; an empty array if there are no judges."""
    strata: Ints | None = None
    """(N,): stratum number of each text, from 0."""
    inclusion: Floats | None = None
    """(n,): relative inclusion probability of each text; None if all are equal."""

    def __post_init__(self) -> None:
        texts = self.judges.shape[1]
        if len(self.human) != len(self.read) or (len(self.read) and self.read.max() >= texts):
            raise ValueError(
                "`human` and `read` must have the same length, and `read` must hold positions among all texts"
            )
        if self.inclusion is not None and (self.inclusion <= 0).any():
            raise FinecombError("inclusion probabilities must be above 0")

    @property
    def text_count(self) -> int:
        """Number of all texts (N)."""
        return int(self.judges.shape[1])

    @functools.cached_property
    def stratum_shares(self) -> Floats:
        """Share of all texts in each stratum."""
        strata = np.zeros(self.text_count, dtype=np.int64) if self.strata is None else self.strata
        return np.bincount(strata) / self.text_count

    @functools.cached_property
    def strata_of_read_texts(self) -> Ints:
        """(n,): stratum of each text that people annotated."""
        return np.zeros(len(self.read), dtype=np.int64) if self.strata is None else self.strata[self.read]

    def without_judges_or_strata(self) -> TextValues:
        """Return the values of people alone, without judges and strata."""
        return replace(self, strata=None, judges=self.judges[:0])

    def without_judges(self) -> TextValues:
        """Return the values without judges but with strata."""
        return replace(self, judges=self.judges[:0])


@dataclass(frozen=True)
class PpiEstimate:
    """Estimated mean with its error moments and the weights of the judges."""

    value: float
    spread: ErrorMoments
    slopes: Floats
    """(judges,): weight of each judge; 0 if the judge does not improve the estimate."""
    influence: Floats
    """(n,): contribution of each human text to the error of the estimate."""
    fixed: ErrorMoments = ZERO_ERROR_MOMENTS
    """Part of the error that more human texts do not reduce: the error of the judges' means over all texts."""

    def interval(self, level: float = 0.95, signed: bool = False) -> tuple[float, float]:
        """Return the confidence interval as (low, high); set `signed` for differences."""
        return hall_interval(self.value, self.spread, level, signed=signed)

    @property
    def uses_judges(self) -> bool:
        """True if any judge has a weight other than 0."""
        return bool(np.any(self.slopes != 0))


def ppi_mean(values: TextValues) -> PpiEstimate:
    """Estimate a mean over all texts with judges and strata. Without both, it is the mean of people's values."""
    counts = np.bincount(values.strata_of_read_texts, minlength=len(values.stratum_shares))
    # The variance within a stratum needs two values.
    thin = np.flatnonzero((counts < 2) & (values.stratum_shares > 0))
    if len(thin):
        raise FinecombError(
            f"stratum {thin[0]} requires at least 2 texts annotated by people, found {counts[thin[0]]}; "
            "merge it with another stratum"
        )
    # Horvitz-Thompson weights, scaled to the known share of the stratum.
    raw = np.ones(len(values.read)) if values.inclusion is None else 1 / values.inclusion
    totals = np.bincount(values.strata_of_read_texts, raw, len(values.stratum_shares))
    base = np.asarray(
        raw * values.stratum_shares[values.strata_of_read_texts] / totals[values.strata_of_read_texts], dtype=np.float64
    )
    centred = _centre_by_stratum(values.human[None], values, base)[0]
    design = _JudgeRegression.fit(values, base, centred)
    slopes = design.slopes
    # Mean of each judge over all texts minus its mean over human texts
    gap = np.asarray(values.judges.mean(axis=1), dtype=np.float64) - values.judges[:, values.read] @ base
    value = float(base @ values.human + slopes @ gap)
    influence = (base + design.shrinkage * (gap @ design.inverse) @ (design.columns * base)) * design.residuals
    fixed = _judge_mean_error_moments(values, slopes, design.shrinkage)
    # Error because people annotated only some of the texts, summed over strata
    total = ErrorMoments(0.0)
    for stratum in np.unique(values.strata_of_read_texts):
        inside = values.strata_of_read_texts == stratum
        shares = base[inside] / base[inside].sum()
        # Effective sample size: number of equally weighted texts with the same variance
        size = 1 / float((shares**2).sum())
        third = float((influence[inside] ** 3).sum())
        # Correction of the unbiased third moment
        third *= math.sqrt(size * (size - 1)) / (size - 2) if size > 2.5 else 0.0
        total += ErrorMoments(float((influence[inside] ** 2).sum()), third, size - 1)
    spread = replace(total, df=max(total.df - design.fitted_degrees_of_freedom, 1.0)) + fixed
    return PpiEstimate(value, spread, slopes, influence, fixed)


def _centre_by_stratum(rows: Floats, values: TextValues, base: Floats) -> Floats:
    """Subtract from each row of (rows, n) its weighted mean within each stratum."""
    size = len(values.stratum_shares)
    means = np.array([np.bincount(values.strata_of_read_texts, row * base, size) for row in rows]).reshape(
        len(rows), size
    )
    means = np.divide(means, values.stratum_shares, out=np.zeros_like(means), where=values.stratum_shares > 0)
    return np.asarray(rows - means[:, values.strata_of_read_texts], dtype=np.float64)


@dataclass(frozen=True)
class _JudgeRegression:
    """Regression of people's values on judges' values, both centred by stratum."""

    columns: Floats
    """(judges, n): centred values of judges."""
    inverse: Floats
    """(judges, judges): inverse of the weighted cross products of judges."""
    slopes: Floats
    shrinkage: float
    residuals: Floats
    """(n,): leave-one-out residual of each text."""

    @property
    def fitted_degrees_of_freedom(self) -> float:
        """Degrees of freedom used by the fit."""
        return self.shrinkage * len(self.slopes)

    @classmethod
    def fit(cls, values: TextValues, base: Floats, centred: Floats) -> _JudgeRegression:
        columns = _centre_by_stratum(values.judges[:, values.read], values, base)
        products = (columns * base) @ columns.T
        # Judges may be collinear, hence the pseudo-inverse and its rank.
        inverse = np.asarray(np.linalg.pinv(products, rcond=1e-9, hermitian=True), dtype=np.float64)
        unshrunk_slopes = inverse @ ((columns * base) @ centred)
        # Shrinkage factor of the slopes, 1 - 2 / F, or 0 if F is below 2 or not available
        judges = int(np.linalg.matrix_rank(inverse))
        freedom = len(base) - len(values.stratum_shares) - judges
        unexplained = float(base @ (centred - unshrunk_slopes @ columns) ** 2)
        explained = float(base @ centred**2) - unexplained
        if not judges or freedom < 1 or explained <= 1e-12:
            shrinkage = 0.0
        # A perfect judge has an infinite F and needs no shrinkage.
        elif unexplained <= 1e-12 * explained:
            shrinkage = 1.0
        else:
            shrinkage = max(0.0, 1 - SHRINKAGE / (explained / judges / (unexplained / freedom)))
        slopes = shrinkage * unshrunk_slopes
        leverage = shrinkage * base * np.einsum("kn,kl,ln->n", columns, inverse, columns)
        # Leverage of the text on the mean of its stratum
        stratum_leverage = base / values.stratum_shares[values.strata_of_read_texts]
        # The limit avoids a division by 0 for a text that determines the slope alone.
        residuals = (centred - slopes @ columns) / (np.sqrt(1 - stratum_leverage) * (1 - np.minimum(leverage, 0.99)))
        return cls(columns, inverse, slopes, shrinkage, residuals)


def _judge_mean_error_moments(values: TextValues, slopes: Floats, shrinkage: float) -> ErrorMoments:
    """Return the error moments of the judges' means, which have an error because all texts are themselves a sample.

    The human-annotated texts are among all texts. With shrunk slopes, their residuals remain correlated with the
    judges' values, which adds 2 (1 - shrinkage) / shrinkage times the variance.
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
    """Predict the value of each text, (N,), with judges trained on people's values for other texts.

    The human texts are divided into folds. Each fold is predicted by a judge trained on the others, and all other texts
    by the mean of these judges (Zrnic and Candes 2024, "Cross-prediction-powered inference"). `train` takes features
    and values and returns a function of features.
    """
    if folds < 2 or folds > len(read):
        raise FinecombError(
            f"folds must be from 2 to the number of texts annotated by people ({len(read)}), found {folds}"
        )
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
    """Factor by which people alone would need more texts for the same variance, with its interval."""

    ratio: float
    low: float
    high: float


def estimate_variance_gain(without: PpiEstimate, with_judge: PpiEstimate) -> VarianceGain:
    """Estimate the ratio of the variance of `without` to that of `with_judge`, on the same human texts.

    The 95% interval is computed for the logarithm of the ratio from the influence of each text on both variances.
    """
    ratio = without.spread.variance / with_judge.spread.variance
    n = len(without.influence)
    if np.array_equal(without.influence, with_judge.influence) or n < 3:
        return VarianceGain(ratio, ratio, ratio)
    before, after = (mean.influence**2 / mean.spread.variance for mean in (without, with_judge))
    reach = 1.96 * float(np.std(before - after, ddof=1)) * math.sqrt(n)
    return VarianceGain(ratio, ratio * math.exp(-reach), ratio * math.exp(reach))
