"""Cohen's and Fleiss's kappa, the latter also for varying numbers of raters, and Gwet's AC1."""

from __future__ import annotations

import numpy as np

from finecomb.statistics.agreement.alpha import Ratings, value_counts_per_unit
from finecomb.statistics.agreement.coincidences import Floats, Tally, Weights, pool_sums_per_draw, tally_value_counts
from finecomb.statistics.inference.resampling import ratio_or_nan


def cohen(first: Floats, second: Floats) -> float:
    r"""Cohen's kappa of two annotators over the units that both rated: $(p_o - p_e) / (1 - p_e)$.

    Cohen (1960). NaN where one did not rate a unit; the result is NaN when they share no unit, or both gave one and the
    same value to all of them.

    >>> round(cohen(np.array([0.0, 1, 1, 0]), np.array([0.0, 1, 0, 0])), 3)
    0.5
    """
    both = ~(np.isnan(first) | np.isnan(second))
    values, codes = np.unique(np.concatenate([first[both], second[both]]), return_inverse=True)
    size, half = len(values), int(both.sum())
    cells = np.bincount(codes[:half] * size + codes[half:], minlength=size * size)
    return float(cohen_from_confusion(cells.reshape(size, size).astype(np.float64)))


def cohen_from_confusion(confusion: Floats) -> Floats:
    """Cohen's kappa from how often each pair of values was given, (..., V, V)."""
    total = confusion.sum(axis=(-2, -1))
    observed = ratio_or_nan(np.trace(confusion, axis1=-2, axis2=-1), total)
    expected = ratio_or_nan((confusion.sum(axis=-1) * confusion.sum(axis=-2)).sum(axis=-1), np.square(total))
    return chance_corrected_agreement(observed, expected)


def chance_corrected_agreement(observed: Floats, expected: Floats) -> Floats:
    """(observed - expected) / (1 - expected), NaN where chance alone gives full agreement."""
    room = np.asarray(1 - expected)
    return ratio_or_nan(np.asarray(observed - expected), np.where(room > 1e-12, room, 0.0))


def fleiss(ratings: Ratings) -> float:
    """Fleiss's kappa over the units with the most ratings (usually: that everybody rated); others are left out.

    Fleiss (1971) is for a fixed number of raters. NaN when no unit has two ratings, or only one value occurs.

    >>> round(fleiss(np.array([[0.0, 1, 1, 2], [0, 1, 0, 2], [0, 1, 0, np.nan]])), 3)
    0.55
    """
    return float(pooled_fleiss(_tally_ratings(ratings), np.ones((1, 1)))[0, 0])


def fleiss_variable_raters(ratings: Ratings) -> float:
    """Fleiss's kappa where units have different numbers of ratings: the mean of P_u over units with two or more.

    Each unit counts once, however many rated it; the chance of each value is its share of all their ratings.

    >>> round(fleiss_variable_raters(np.array([[0.0, 1, 1, 2], [0, 1, 0, 2], [0, 1, 0, np.nan]])), 3)
    0.735
    """
    return float(pooled_fleiss_variable_raters(_tally_ratings(ratings), np.ones((1, 1)))[0, 0])


def ac1(ratings: Ratings) -> float:
    """Gwet's AC1, any number of ratings a unit: chance is the sum of pi_c (1 - pi_c) over the number of values less 1.

    Gwet (2008), with missing ratings as in Gwet (2014). NaN when no unit has two ratings, or only one value occurs.

    >>> round(ac1(np.array([[0.0, 1, 1, 2], [0, 1, 0, 2], [0, 1, 0, np.nan]])), 3)
    0.753
    """
    return float(pooled_ac1(_tally_ratings(ratings), np.ones((1, 1)))[0, 0])


def _tally_ratings(ratings: Ratings) -> Tally:
    values, counts = value_counts_per_unit(ratings)
    return tally_value_counts("any", values, counts, np.array([0, len(counts)]))


# --- over documents ----------------------------------------------------------------------------------------------


def _fleiss_from_sums(agreeing: Floats, units: Floats, totals: Floats) -> Floats:
    """From the sum of P_u, the units, and n_c, (..., V)."""
    shares = ratio_or_nan(totals, np.broadcast_to(totals.sum(axis=-1, keepdims=True), totals.shape))  # p_c
    return chance_corrected_agreement(ratio_or_nan(agreeing, units), np.square(shares).sum(axis=-1))


def pooled_fleiss(tally: Tally, weights: Weights) -> Floats:
    """Fleiss's kappa over the units with the most ratings, (draws, R)."""
    sums = pool_sums_per_draw(weights, tally.full)
    return _fleiss_from_sums(sums[..., 0], sums[..., 1], sums[..., 2:])


def pooled_fleiss_variable_raters(tally: Tally, weights: Weights) -> Floats:
    """Fleiss's kappa over all units with two or more ratings, (draws, R)."""
    totals = pool_sums_per_draw(weights, tally.coincidences.sum(axis=-1))  # n_c of pairable units
    return _fleiss_from_sums(
        pool_sums_per_draw(weights, tally.agreeing), pool_sums_per_draw(weights, tally.pairable), totals
    )


def pooled_ac1(tally: Tally, weights: Weights) -> Floats:
    """Gwet's AC1, (draws, R)."""
    rated = pool_sums_per_draw(weights, tally.rated)[..., None]
    shares = pool_sums_per_draw(weights, tally.shares)
    shares = ratio_or_nan(shares, np.broadcast_to(rated, shares.shape))  # pi_c
    chance = (shares * (1 - shares)).sum(axis=-1)
    others = np.full(chance.shape, float(len(tally.values) - 1))
    return chance_corrected_agreement(
        ratio_or_nan(pool_sums_per_draw(weights, tally.agreeing), pool_sums_per_draw(weights, tally.pairable)),
        ratio_or_nan(chance, others),
    )
