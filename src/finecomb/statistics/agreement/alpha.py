"""Coincidences of values on the same unit, and measures computed from them: alpha, observed agreement and two-agree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.statistics.inference.resampling import Floats, Ints, Sums, Weights, ratio_or_nan
from finecomb.statistics.measures.unit_grid import UnitVotes

Ratings = NDArray[np.float64]  # (annotators, units); NaN where not rated
Distance = Callable[[Floats, Floats], Floats]
"""Function that takes values, (V,), and their counts, (..., V), and returns squared differences, (..., V, V)."""

# --- coincidences per document -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgreementTally:
    """Sums over the units of each of D documents, for R separately rated rows (e.g. labels) with V values."""

    rows: tuple[str, ...]
    """Names of the R rows."""
    values: Floats
    """Sorted values, (V,); for marks, 0 (not marked) and 1 (marked)."""
    coincidences: Floats
    """o_ck, (D, R, V, V): value pairs within units, normalised so that a unit contributes its number of ratings."""
    agreeing: Floats
    """Sum over units of P_u, the share of agreeing pairs in a unit, (D, R)."""
    pairable: Floats
    """Number of units with two or more ratings, (D, R)."""
    shares: Floats
    """Sum of n_uc / m_u over all rated units, (D, R, V)."""
    rated: Floats
    """Number of units with at least one rating, (D, R)."""
    full: Floats
    """P_u, number of units, and n_c, each summed over the units with the maximum number of ratings, (D, R, 2 + V)."""


def sum_by_document(values: Floats, bounds: Ints) -> Floats:
    """Sum `values`, (..., units), over the units of each document, (..., documents)."""
    result = np.zeros((*values.shape[:-1], len(bounds) - 1))
    filled = np.diff(bounds) > 0  # reduceat does not return 0 for an empty slice
    if filled.any():
        result[..., filled] = np.add.reduceat(values, bounds[:-1][filled], axis=-1)
    return result


def tally_binary_votes(
    rows: tuple[str, ...], marked: Ints, readers: Ints, bounds: Ints, raters: int | None = None
) -> AgreementTally:
    """Tally binary marks: `marked`, (R, units), of `readers`, (units,), annotators marked each unit.

    `raters` is the maximum number of annotators per unit. Pass it if the arrays contain only some of the study's units.
    """
    k, m = marked.astype(np.float64), readers.astype(np.float64)
    raters = int(readers.max(initial=0)) if raters is None else raters
    pairable, rated, most = m >= 2, m >= 1, (readers == raters) & (readers >= 2)
    mixed = np.where(pairable, k * (m - k) / np.maximum(m - 1, 1), 0.0)  # o_01 = o_10 per unit
    crossed, unlike = sum_by_document(mixed, bounds), sum_by_document(2 * mixed / np.maximum(m, 1), bounds)
    ones, total = sum_by_document(k * pairable, bounds), sum_by_document(m * pairable, bounds)
    units, rated_units = (sum_by_document(mask.astype(np.float64), bounds) for mask in (pairable, rated))
    share = sum_by_document(k / np.maximum(m, 1), bounds)
    full_units = np.broadcast_to(sum_by_document(most.astype(np.float64), bounds), (len(k), len(bounds) - 1))
    full_unlike = sum_by_document(2 * mixed * most, bounds) / max(raters, 1)
    full_ones = sum_by_document(k * most, bounds)
    coincidences, shares, full = (
        np.stack([array.T for array in arrays], axis=-1)  # several (R, D) arrays as (D, R, number of arrays)
        for arrays in (
            [total - ones - crossed, crossed, crossed, ones - crossed],
            [rated_units - share, share],
            [full_units - full_unlike, full_units, raters * full_units - full_ones, full_ones],
        )
    )
    return AgreementTally(
        rows,
        np.array([0.0, 1.0]),
        coincidences.reshape(-1, len(rows), 2, 2),
        (units - unlike).T,
        np.repeat(units[:, None], len(rows), axis=1),
        shares,
        np.repeat(rated_units[:, None], len(rows), axis=1),
        full,
    )


def concatenate_tallies(parts: Sequence[AgreementTally]) -> AgreementTally:
    """Concatenate the tallies of several parts that have the same rows and values."""
    if len(parts) == 1:
        return parts[0]
    names = ("coincidences", "agreeing", "pairable", "shares", "rated", "full")
    sums = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    return AgreementTally(parts[0].rows, parts[0].values, *sums)


def tally_value_counts(row: str, values: Floats, counts: Ints, bounds: Ints) -> AgreementTally:
    """Tally the counts of each value per unit, (units, V); the result has a single row."""
    n = counts.astype(np.float64)  # n_uc
    m = n.sum(axis=1)  # m_u
    readers = counts.sum(axis=1)
    pairable, most = m >= 2, (readers == readers.max(initial=0)) & (readers >= 2)
    agree = np.where(pairable, (n * (n - 1)).sum(axis=1) / np.maximum(m * (m - 1), 1), 0.0)  # P_u
    columns = [agree * most, most.astype(np.float64), *(n * most[:, None]).T]
    return AgreementTally(
        (row,),
        values,
        _coincidences_per_document(np.where(pairable[:, None], n, 0.0), 1 / np.maximum(m - 1, 1), bounds)[:, None],
        sum_by_document(agree, bounds)[:, None],
        sum_by_document(pairable.astype(np.float64), bounds)[:, None],
        sum_by_document((n / np.maximum(m, 1)[:, None]).T, bounds).T[:, None],
        sum_by_document((m >= 1).astype(np.float64), bounds)[:, None],
        np.stack([sum_by_document(column, bounds) for column in columns], axis=-1)[:, None],
    )


def _coincidences_per_document(n: Floats, weight: Floats, bounds: Ints) -> Floats:
    """Compute o_ck = sum over units of n_uc (n_uk - [c = k]) / (m_u - 1) per document, (D, V, V)."""
    result = np.zeros((len(bounds) - 1, n.shape[1], n.shape[1]))
    for document, (first, last) in enumerate(itertools.pairwise(bounds)):
        counts = n[first:last]
        weighted = counts * weight[first:last, None]
        result[document] = counts.T @ weighted - np.diag(weighted.sum(axis=0))
    return result


def pool_sums_per_draw(weights: Weights, sums: Floats) -> Floats:
    """Compute the weighted sum over documents of `sums`, (documents, ...), for each draw, (draws, ...)."""
    if not len(sums):
        return np.zeros((len(weights), *sums.shape[1:]))
    return np.tensordot(weights, sums, axes=1)


# --- any scale ---------------------------------------------------------------------------------------------------


def nominal_distance(values: Floats, totals: Floats) -> Floats:
    """Return 0 for equal values and 1 for different ones."""
    return 1.0 - np.eye(len(values))


def interval_distance(values: Floats, totals: Floats) -> Floats:
    """Return the squared difference (c - k)^2."""
    return np.square(values[:, None] - values[None, :])


def ratio_distance(values: Floats, totals: Floats) -> Floats:
    """Return the squared ratio ((c - k) / (c + k))^2; values must not be negative."""
    if (values < 0).any():
        raise FinecombError("alpha-ratio requires values of at least 0; use alpha-interval")
    sums = values[:, None] + values[None, :]
    return np.square((values[:, None] - values[None, :]) / np.where(sums > 0, sums, 1.0))


def ordinal_distance(values: Floats, totals: Floats) -> Floats:
    """Return squared differences of mid-ranks (number of lower ratings plus half of the equal ratings)."""
    ranks = np.cumsum(totals, axis=-1) - totals / 2
    return np.square(ranks[..., :, None] - ranks[..., None, :])


DISTANCE_BY_SCALE: dict[str, Distance] = {
    "nominal": nominal_distance,
    "ordinal": ordinal_distance,
    "interval": interval_distance,
    "ratio": ratio_distance,
}


def alpha_from_coincidences(coincidences: Floats, values: Floats, distance: Distance = nominal_distance) -> Floats:
    """Compute alpha from coincidences o_ck, (..., V, V); NaN where expected disagreement is 0."""
    totals = coincidences.sum(axis=-1)  # n_c
    delta = distance(values, totals)
    observed = (coincidences * delta).sum(axis=(-2, -1))
    chance = (totals[..., :, None] * totals[..., None, :] * delta).sum(axis=(-2, -1))
    return 1 - ratio_or_nan((totals.sum(axis=-1) - 1) * observed, chance)


def value_counts_per_unit(ratings: Ratings) -> tuple[Floats, Ints]:
    """Return the distinct values, (V,), and their counts per unit, (units, V)."""
    rated = ~np.isnan(ratings)
    values, codes = np.unique(ratings[rated], return_inverse=True)
    units = np.nonzero(rated)[1]
    size = ratings.shape[1] * len(values)
    counts = np.bincount(units * len(values) + codes, minlength=size)
    return values, counts.reshape(ratings.shape[1], len(values))


def alpha(ratings: Ratings, distance: Distance | str = nominal_distance) -> float:
    r"""Compute Krippendorff's alpha, $\alpha = 1 - D_o / D_e$.

    This is the general form in Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability". `ratings` has shape
    (annotators, units), with NaN where a unit was not rated. `distance` is a function or the name of a scale: nominal,
    ordinal, interval or ratio. The result is NaN if no unit has two ratings, or if only one value occurs (D_e = 0).
    Other packages treat the last case differently.

    >>> round(alpha(np.array([[0.0, 1, 1], [0, 1, 0]])), 3)
    0.444
    """
    values, counts = value_counts_per_unit(ratings)
    tally = tally_value_counts("any", values, counts, np.array([0, len(counts)]))
    return float(alpha_from_coincidences(tally.coincidences, values, _resolve_distance(distance))[0, 0])


def observed_agreement(coincidences: Floats) -> Floats:
    """Compute observed agreement, 1 - D_o, from coincidences, (..., V, V)."""
    return ratio_or_nan(np.trace(coincidences, axis1=-2, axis2=-1), coincidences.sum(axis=(-2, -1)))


def _resolve_distance(given: Distance | str) -> Distance:
    if not isinstance(given, str):
        return given
    if given not in DISTANCE_BY_SCALE:
        raise FinecombError(f"unknown scale {given!r}{did_you_mean(given, DISTANCE_BY_SCALE)}")
    return DISTANCE_BY_SCALE[given]


# --- label sets --------------------------------------------------------------------------------------------------


def build_masi_distance(sets: Sequence[frozenset[str]]) -> Distance:
    """Build the MASI distance 1 - J M between label sets (Passonneau 2006); ratings are indices into `sets`.

    J is the Jaccard index. M is 1 for equal sets, 2/3 for a set and its subset, 1/3 for other overlapping sets, and 0
    for disjoint sets. Two empty sets are equal.
    """
    table = np.array([[1 - _masi_similarity(first, second) for second in sets] for first in sets]).reshape(
        len(sets), len(sets)
    )
    return lambda values, totals: table


def _masi_similarity(one: frozenset[str], other: frozenset[str]) -> float:
    if one == other:
        return 1.0
    jaccard = len(one & other) / len(one | other)
    return jaccard * (2 / 3 if one <= other or other <= one else 1 / 3)


# --- over documents ----------------------------------------------------------------------------------------------


def pooled_alpha(tally: AgreementTally, weights: Weights, distance: Distance = nominal_distance) -> Floats:
    """Compute alpha over the units of all documents, (draws, R)."""
    return alpha_from_coincidences(pool_sums_per_draw(weights, tally.coincidences), tally.values, distance)


def mean_document_alpha(
    tally: AgreementTally, weights: Weights, distance: Distance = nominal_distance, undefined: float = math.nan
) -> Floats:
    """Compute the mean of per-document alphas, (draws, R), as in Dou et al. (2022), appendix C.

    Alpha is undefined for documents in which all ratings are equal. They are skipped or, if `undefined` is given, count
    as that value. Documents with fewer than two annotators are always skipped.
    """
    text_alphas = alpha_from_coincidences(tally.coincidences, tally.values, distance)  # (D, R)
    return _weighted_nan_mean(np.where(np.isnan(text_alphas) & (tally.pairable > 0), undefined, text_alphas), weights)


def pooled_observed_agreement(tally: AgreementTally, weights: Weights) -> Floats:
    """Compute observed agreement, 1 - D_o, over the units of all documents, (draws, R)."""
    return observed_agreement(pool_sums_per_draw(weights, tally.coincidences))


def mean_document_observed_agreement(tally: AgreementTally, weights: Weights) -> Floats:
    """Compute the mean of per-document observed agreement, (draws, R)."""
    return _weighted_nan_mean(observed_agreement(tally.coincidences), weights)


def _weighted_nan_mean(document_values: Floats, weights: Weights) -> Floats:
    """Compute the weighted mean over documents, ignoring undefined values."""
    defined = np.isfinite(document_values)
    return ratio_or_nan(weights @ np.where(defined, document_values, 0.0), weights @ defined.astype(np.float64))


# --- closed form for binary marks --------------------------------------------------------------------------------


def binary_alpha_from_sums(sums: Sums) -> Floats:
    r"""Compute nominal alpha of binary ratings, $1 - (n - 1) D_o / (2 n_1 (n - n_1))$, for each row of sums.

    See Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", for two values. The result is NaN if all
    ratings are equal, since expected disagreement is then 0.
    """
    observed, ones, total = sums[..., 0], sums[..., 1], sums[..., 2]
    return 1 - ratio_or_nan((total - 1) * observed, 2 * ones * (total - ones))


def two_agree_sums(tallies: UnitVotes) -> Sums:
    """Count the units marked by at least two annotators, and by at least one, (categories, documents, 2).

    Documents with fewer than two annotators count 0.
    """
    pairable = np.repeat(tallies.readers, np.diff(tallies.grid.bounds)) >= 2
    two_or_more, any_marked = ((tallies.marked >= least) & pairable for least in (2, 1))
    return np.stack(
        [tallies.grid.sum_per_document(units.astype(np.float64)) for units in (two_or_more, any_marked)], axis=-1
    )


def two_agree_percentage(sums: Sums) -> Floats:
    """Compute the percentage of marked units that at least two annotators marked (Dou et al. 2022, appendix C)."""
    return 100 * ratio_or_nan(sums[..., 0], sums[..., 1])


ALL_UNITS_MARKED_REASON = "all annotators marked every unit of the texts with two or more annotators"
"""Reason for an undefined alpha in texts with marks; other measures can be undefined for other reasons."""


def undefined_agreement_reason(readers: Ints, is_marked: bool, has_label: bool = False) -> str:
    """Return the reason why agreement is undefined.

    `readers` are the numbers of annotators per text. `is_marked` is True if a unit of a text with two or more
    annotators is marked, and `has_label` if only marks with one label count.
    """
    if not len(readers):
        return "no annotations"
    if (readers < 2).all():
        return "no text has two or more annotators"
    if is_marked:
        return ALL_UNITS_MARKED_REASON
    return f"no unit is marked{' with this label' if has_label else ''} in the texts with two or more annotators"
