"""Cohen's kappa, Fleiss' kappa (also for varying numbers of raters) and Gwet's AC1."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.alpha import (
    AgreementTally,
    Ratings,
    pool_sums_per_draw,
    tally_value_counts,
    value_counts_per_unit,
)
from finecomb.statistics.inference.resampling import Floats, Weights, ratio_or_nan


def cohen(first: Floats, second: Floats) -> float:
    r"""Compute Cohen's kappa, $(p_o - p_e) / (1 - p_e)$, of two annotators over the units that both rated.

    Cohen (1960). Unrated units are NaN in the input. The result is NaN if the annotators share no units, or if both
    gave the same value to all shared units.

    >>> round(cohen(np.array([0.0, 1, 1, 0]), np.array([0.0, 1, 0, 0])), 3)
    0.5
    """
    rated_by_both = ~(np.isnan(first) | np.isnan(second))
    values, codes = np.unique(np.concatenate([first[rated_by_both], second[rated_by_both]]), return_inverse=True)
    size, half = len(values), int(rated_by_both.sum())
    cells = np.bincount(codes[:half] * size + codes[half:], minlength=size * size)
    return float(cohen_from_confusion(cells.reshape(size, size).astype(np.float64)))


def cohen_from_confusion(confusion: Floats) -> Floats:
    """Compute Cohen's kappa from confusion counts, (..., V, V)."""
    total = confusion.sum(axis=(-2, -1))
    observed = ratio_or_nan(np.trace(confusion, axis1=-2, axis2=-1), total)
    expected = ratio_or_nan((confusion.sum(axis=-1) * confusion.sum(axis=-2)).sum(axis=-1), np.square(total))
    return chance_corrected_agreement(observed, expected)


def chance_corrected_agreement(observed: Floats, expected: Floats) -> Floats:
    """Compute (observed - expected) / (1 - expected); NaN where expected agreement is 1."""
    room = np.asarray(1 - expected)  # compared with a tolerance: rounding must not turn 0 / 0 into a large kappa
    return ratio_or_nan(np.asarray(observed - expected), np.where(room > 1e-12, room, 0.0))


def fleiss(ratings: Ratings) -> float:
    """Compute Fleiss' kappa over the units with the maximum number of ratings; other units are excluded.

    Fleiss (1971) assumes a fixed number of raters. The result is NaN if no unit has two ratings, or if only one value
    occurs.

    >>> round(fleiss(np.array([[0.0, 1, 1, 2], [0, 1, 0, 2], [0, 1, 0, np.nan]])), 3)
    0.55
    """
    return float(pooled_fleiss(_tally_ratings(ratings), np.ones((1, 1)))[0, 0])


def fleiss_variable_raters(ratings: Ratings) -> float:
    """Compute Fleiss' kappa for varying numbers of ratings, from the mean of P_u over units with at least two ratings.

    Each unit counts once, whatever its number of ratings. The chance probability of a value is its share of all ratings
    of these units.

    >>> round(fleiss_variable_raters(np.array([[0.0, 1, 1, 2], [0, 1, 0, 2], [0, 1, 0, np.nan]])), 3)
    0.735
    """
    return float(pooled_fleiss_variable_raters(_tally_ratings(ratings), np.ones((1, 1)))[0, 0])


def ac1(ratings: Ratings) -> float:
    """Compute Gwet's AC1 for varying numbers of ratings.

    Expected agreement is the sum of pi_c (1 - pi_c) divided by the number of values minus 1. See Gwet (2008), and Gwet
    (2014) for missing ratings. The result is NaN if no unit has two ratings, or if only one value occurs.

    >>> round(ac1(np.array([[0.0, 1, 1, 2], [0, 1, 0, 2], [0, 1, 0, np.nan]])), 3)
    0.753
    """
    return float(pooled_ac1(_tally_ratings(ratings), np.ones((1, 1)))[0, 0])


def _tally_ratings(ratings: Ratings) -> AgreementTally:
    values, counts = value_counts_per_unit(ratings)
    return tally_value_counts("any", values, counts, np.array([0, len(counts)]))


# --- over documents ----------------------------------------------------------------------------------------------


def _fleiss_from_sums(agreeing: Floats, units: Floats, totals: Floats) -> Floats:
    """Compute Fleiss' kappa from the sum of P_u, the number of units, and n_c, (..., V)."""
    shares = ratio_or_nan(totals, np.broadcast_to(totals.sum(axis=-1, keepdims=True), totals.shape))  # p_c
    return chance_corrected_agreement(ratio_or_nan(agreeing, units), np.square(shares).sum(axis=-1))


def pooled_fleiss(tally: AgreementTally, weights: Weights) -> Floats:
    """Compute Fleiss' kappa over the units with the maximum number of ratings, (draws, R)."""
    sums = pool_sums_per_draw(weights, tally.full)
    return _fleiss_from_sums(sums[..., 0], sums[..., 1], sums[..., 2:])


def pooled_fleiss_variable_raters(tally: AgreementTally, weights: Weights) -> Floats:
    """Compute Fleiss' kappa over all units with two or more ratings, (draws, R)."""
    totals = pool_sums_per_draw(weights, tally.coincidences.sum(axis=-1))  # n_c of pairable units
    return _fleiss_from_sums(
        pool_sums_per_draw(weights, tally.agreeing), pool_sums_per_draw(weights, tally.pairable), totals
    )


def pooled_ac1(tally: AgreementTally, weights: Weights) -> Floats:
    """Compute Gwet's AC1, (draws, R)."""
    rated = pool_sums_per_draw(weights, tally.rated)[..., None]
    shares = pool_sums_per_draw(weights, tally.shares)
    shares = ratio_or_nan(shares, np.broadcast_to(rated, shares.shape))  # pi_c
    chance = (shares * (1 - shares)).sum(axis=-1)
    value_count_minus_one = np.full(chance.shape, float(len(tally.values) - 1))
    return chance_corrected_agreement(
        ratio_or_nan(pool_sums_per_draw(weights, tally.agreeing), pool_sums_per_draw(weights, tally.pairable)),
        ratio_or_nan(chance, value_count_minus_one),
    )
