"""Krippendorff's alpha for any scale, its closed form for binary marks, observed agreement, and the two-agree share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.statistics.agreement.coincidences import (
    Floats,
    Ints,
    Tally,
    Weights,
    pool_sums_per_draw,
    tally_value_counts,
)
from finecomb.statistics.inference.resampling import Sums, ratio_or_nan
from finecomb.statistics.measures.unit_grid import UnitVotes

Ratings = NDArray[np.float64]  # (annotators, units); NaN where not rated
Distance = Callable[[Floats, Floats], Floats]
"""Takes the values, (V,), and how often each was given, (..., V); returns squared differences, (..., V, V)."""

# --- any scale ---------------------------------------------------------------------------------------------------


def nominal_distance(values: Floats, totals: Floats) -> Floats:
    """1 for different values, 0 for the same."""
    return 1.0 - np.eye(len(values))


def interval_distance(values: Floats, totals: Floats) -> Floats:
    """(c - k) squared."""
    return np.square(values[:, None] - values[None, :])


def ratio_distance(values: Floats, totals: Floats) -> Floats:
    """((c - k) / (c + k)) squared; the values are at least 0."""
    if (values < 0).any():
        raise FinecombError("alpha-ratio needs values of at least 0; use alpha-interval")
    sums = values[:, None] + values[None, :]
    return np.square((values[:, None] - values[None, :]) / np.where(sums > 0, sums, 1.0))


def ordinal_distance(values: Floats, totals: Floats) -> Floats:
    """Squared number of ratings between two values, half of each end counted: the difference of their mid-ranks."""
    ranks = np.cumsum(totals, axis=-1) - totals / 2
    return np.square(ranks[..., :, None] - ranks[..., None, :])


DISTANCES: dict[str, Distance] = {
    "nominal": nominal_distance,
    "ordinal": ordinal_distance,
    "interval": interval_distance,
    "ratio": ratio_distance,
}


def alpha_from_coincidences(coincidences: Floats, values: Floats, distance: Distance = nominal_distance) -> Floats:
    """Alpha from coincidences o_ck, (..., V, V); NaN where chance gives no disagreement."""
    totals = coincidences.sum(axis=-1)  # n_c
    delta = distance(values, totals)
    observed = (coincidences * delta).sum(axis=(-2, -1))
    chance = (totals[..., :, None] * totals[..., None, :] * delta).sum(axis=(-2, -1))
    return 1 - ratio_or_nan((totals.sum(axis=-1) - 1) * observed, chance)


def value_counts_per_unit(ratings: Ratings) -> tuple[Floats, Ints]:
    """The values that occur, (V,), and how often each was given to each unit, (units, V)."""
    rated = ~np.isnan(ratings)
    values, codes = np.unique(ratings[rated], return_inverse=True)
    units = np.nonzero(rated)[1]
    size = ratings.shape[1] * len(values)
    counts = np.bincount(units * len(values) + codes, minlength=size)
    return values, counts.reshape(ratings.shape[1], len(values))


def alpha(ratings: Ratings, distance: Distance | str = nominal_distance) -> float:
    r"""Krippendorff's alpha: $\alpha = 1 - D_o / D_e$.

    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", general form.
    `ratings` has shape (annotators, units) with NaN where a unit was not rated; `distance` is a function or the name of
    a scale: nominal, ordinal, interval or ratio.
    NaN when no unit has two ratings, or only one value occurs and D_e = 0; packages differ there.

    >>> round(alpha(np.array([[0.0, 1, 1], [0, 1, 0]])), 3)
    0.444
    """
    values, counts = value_counts_per_unit(ratings)
    one = tally_value_counts("any", values, counts, np.array([0, len(counts)]))
    return float(alpha_from_coincidences(one.coincidences, values, _resolve_distance(distance))[0, 0])


def observed_agreement(coincidences: Floats) -> Floats:
    """1 - D_o from coincidences, (..., V, V)."""
    return ratio_or_nan(np.trace(coincidences, axis1=-2, axis2=-1), coincidences.sum(axis=(-2, -1)))


def _resolve_distance(given: Distance | str) -> Distance:
    if not isinstance(given, str):
        return given
    if given not in DISTANCES:
        raise FinecombError(f"no scale is called {given!r}{did_you_mean(given, DISTANCES)}")
    return DISTANCES[given]


# --- sets of labels ----------------------------------------------------------------------------------------------


def build_masi_distance(sets: Sequence[frozenset[str]]) -> Distance:
    """MASI distance between sets of labels (Passonneau 2006): 1 - J M, to be used with the sets' indices as values.

    J is the Jaccard index; M is 1 for the same set, 2/3 for a set and its subset, 1/3 for sets that overlap, else 0.
    Two empty sets are the same.
    """
    table = np.array([[1 - _masi_similarity(one, other) for other in sets] for one in sets]).reshape(
        len(sets), len(sets)
    )
    return lambda values, totals: table


def _masi_similarity(one: frozenset[str], other: frozenset[str]) -> float:
    if one == other:
        return 1.0
    jaccard = len(one & other) / len(one | other)
    return jaccard * (2 / 3 if one <= other or other <= one else 1 / 3)


# --- over documents ----------------------------------------------------------------------------------------------


def pooled_alpha(tally: Tally, weights: Weights, distance: Distance = nominal_distance) -> Floats:
    """Alpha over the units of all documents, (draws, R)."""
    return alpha_from_coincidences(pool_sums_per_draw(weights, tally.coincidences), tally.values, distance)


def mean_document_alpha(
    tally: Tally, weights: Weights, distance: Distance = nominal_distance, undefined: float = math.nan
) -> Floats:
    """Mean of the alphas of each document, (draws, R), as Dou et al. (2022), appendix C, average over generations.

    Documents where nobody marked anything (or everybody everything) have no alpha: they are left out, or count as
    `undefined`. Those that fewer than two people read are left out in any case.
    """
    text_alphas = alpha_from_coincidences(tally.coincidences, tally.values, distance)  # (D, R)
    return _weighted_nan_mean(np.where(np.isnan(text_alphas) & (tally.pairable > 0), undefined, text_alphas), weights)


def pooled_observed_agreement(tally: Tally, weights: Weights) -> Floats:
    """1 - D_o over the units of all documents, (draws, R)."""
    return observed_agreement(pool_sums_per_draw(weights, tally.coincidences))


def mean_document_observed_agreement(tally: Tally, weights: Weights) -> Floats:
    """Mean of 1 - D_o of each document, (draws, R)."""
    return _weighted_nan_mean(observed_agreement(tally.coincidences), weights)


def _weighted_nan_mean(document_values: Floats, weights: Weights) -> Floats:
    """Weighted mean over documents of what is defined."""
    defined = np.isfinite(document_values)
    return ratio_or_nan(weights @ np.where(defined, document_values, 0.0), weights @ defined.astype(np.float64))


# --- binary marks in closed form ---------------------------------------------------------------------------------


def binary_alpha(sums: Sums) -> Floats:
    r"""Krippendorff's alpha, nominal, of binary ratings: $1 - (n - 1) D_o / (2 n_1 (n - n_1))$ for each row of sums.

    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", for two values.
    NaN when nobody marked anything, or everybody everything: then chance disagreement is 0.
    """
    observed, ones, total = sums[..., 0], sums[..., 1], sums[..., 2]
    return 1 - ratio_or_nan((total - 1) * observed, 2 * ones * (total - ones))


def two_agree_sums(tallies: UnitVotes) -> Sums:
    """Units marked by two or more and by any, (categories, documents, 2); fewer than two readers add nothing."""
    pairable = tallies.annotators_per_unit >= 2
    both, any_ = ((tallies.marked >= least) & pairable for least in (2, 1))
    return np.stack([tallies.grid.sum_per_document(units.astype(np.float64)) for units in (both, any_)], axis=-1)


def two_agree_percentage(sums: Sums) -> Floats:
    """Percentage of the units marked by anybody that were marked by two or more (Dou et al. 2022, appendix C)."""
    return 100 * ratio_or_nan(sums[..., 0], sums[..., 1])


def undefined_agreement_reason(readers: Ints, is_marked: bool) -> str:
    """Why agreement has no value, from the readers of each text and whether a unit that two have read is marked."""
    if not len(readers):
        return "no annotations"
    if (readers < 2).all():
        return "no text was read by two annotators"
    return "everybody marked everything" if is_marked else "nobody marked anything"
