from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from statsmodels.stats import inter_rater

from finecomb.statistics.agreement.alpha import Ratings, alpha
from finecomb.statistics.agreement.kappa import ac1, cohen, fleiss, fleiss_variable_raters
from tests.golden.agreement import FLEISS_COUNTS
from tests.statistics.agreement.agreement_studies import ratings


def matrix(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Ratings:
    """Build ratings with the given counts, (raters, units)."""
    return np.array([np.repeat(np.arange(len(row)), row) for row in counts], dtype=np.float64).T


def test_fleiss_reproduces_the_worked_example() -> None:
    table = matrix(FLEISS_COUNTS)
    assert fleiss(table) == pytest.approx(0.210, abs=5e-4)
    assert fleiss(table) == pytest.approx(inter_rater.fleiss_kappa(FLEISS_COUNTS))
    assert fleiss_variable_raters(table) == pytest.approx(fleiss(table))


def slow_cohen(first: list[float], second: list[float]) -> float:
    both = [(a, b) for a, b in zip(first, second, strict=True) if not math.isnan(a) and not math.isnan(b)]
    if not both:
        return math.nan
    observed = np.mean([a == b for a, b in both])
    expected = np.mean([a == b for (a, _), (_, b) in itertools.product(both, both)])
    return float((observed - expected) / (1 - expected)) if expected < 1 else math.nan


@given(ratings())
def test_cohen_equals_its_definition_and_another_package(table: Ratings) -> None:
    expected = slow_cohen(table[0].tolist(), table[1].tolist())
    assert cohen(table[0], table[1]) == pytest.approx(expected, nan_ok=True)
    if not math.isnan(expected):
        kept = ~np.isnan(table[:2]).any(axis=0)
        confusion = np.zeros((4, 4))
        np.add.at(confusion, (table[0, kept].astype(int), table[1, kept].astype(int)), 1)
        assert inter_rater.cohens_kappa(confusion, return_results=False) == pytest.approx(expected)


def given_values(table: Ratings, least: int) -> list[list[float]]:
    units = [[value for value in column if not math.isnan(value)] for column in table.T.tolist()]
    return [unit for unit in units if len(unit) >= least]


def agreeing(unit: list[float]) -> float:
    return float(np.mean([one == other for one, other in itertools.permutations(unit, 2)]))


@given(ratings())
def test_fleiss_with_varying_raters_equals_its_definition(table: Ratings) -> None:
    units = given_values(table, 2)
    values = [value for unit in units for value in unit]
    expected = sum((values.count(value) / len(values)) ** 2 for value in set(values))
    wanted = (
        (np.mean([agreeing(unit) for unit in units]) - expected) / (1 - expected)
        if expected < 1 and units
        else math.nan
    )
    assert fleiss_variable_raters(table) == pytest.approx(wanted, nan_ok=True)


@given(ratings())
def test_fleiss_is_that_of_the_units_with_the_most_ratings(table: Ratings) -> None:
    counts = (~np.isnan(table)).sum(axis=0)
    full = table[:, counts == counts.max()]
    assert fleiss(table) == pytest.approx(fleiss_variable_raters(full), nan_ok=True)


@given(ratings())
def test_ac1_equals_its_definition(table: Ratings) -> None:
    rated, units = given_values(table, 1), given_values(table, 2)
    values = sorted({value for unit in rated for value in unit})
    if not units or len(values) < 2:
        assert math.isnan(ac1(table))
        return
    shares = [np.mean([unit.count(value) / len(unit) for unit in rated]) for value in values]
    expected = sum(share * (1 - share) for share in shares) / (len(values) - 1)
    observed = np.mean([agreeing(unit) for unit in units])
    assert ac1(table) == pytest.approx((observed - expected) / (1 - expected))


def test_ac1_does_not_collapse_where_one_value_is_rare() -> None:
    first, second = np.zeros(100), np.zeros(100)
    first[0] = second[1] = 1
    table = np.array([first, second])
    assert alpha(table) < 0 < 0.97 < ac1(table)


@pytest.mark.parametrize("statistic", [alpha, fleiss, fleiss_variable_raters, ac1])
@pytest.mark.parametrize("table", [[[1.0, 1], [1, 1]], [[1.0, np.nan], [np.nan, 2]], [[np.nan], [np.nan]]])
def test_one_value_or_no_pair_is_undefined(statistic: object, table: list[list[float]]) -> None:
    assert callable(statistic)
    assert math.isnan(statistic(np.array(table)))
