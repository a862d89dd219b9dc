"""Alpha of ratings on any scale; `test_alpha` covers the closed form for marks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import krippendorff
import numpy as np
import pytest
from hypothesis import given

from finecomb.core.errors import FinecombError
from finecomb.statistics.agreement.alpha import (
    DISTANCE_BY_SCALE,
    Ratings,
    alpha,
    build_masi_distance,
    nominal_distance,
    observed_agreement,
    tally_value_counts,
    value_counts_per_unit,
)
from tests.golden.agreement import KRIPPENDORFF_2011, KRIPPENDORFF_2011_ALPHAS
from tests.statistics.agreement.agreement_studies import ratings


@pytest.mark.parametrize(("scale", "published"), KRIPPENDORFF_2011_ALPHAS.items())
def test_alpha_reproduces_krippendorff_2011(scale: str, published: float) -> None:
    assert alpha(KRIPPENDORFF_2011, scale) == pytest.approx(published, abs=5e-4)


def ordinal_difference(one: float, other: float, values: list[float]) -> float:
    low, high = min(one, other), max(one, other)
    between = sum(low <= value <= high for value in values)
    return (between - (values.count(low) + values.count(high)) / 2) ** 2 if low != high else 0.0


DIFFERENCES: dict[str, Callable[[float, float, list[float]], float]] = {
    "nominal": lambda one, other, values: float(one != other),
    "ordinal": ordinal_difference,
    "interval": lambda one, other, values: (one - other) ** 2,
    "ratio": lambda one, other, values: ((one - other) / (one + other)) ** 2 if one != other else 0.0,
}


def slow_alpha(table: Ratings, scale: str) -> float:
    """Compute 1 - D_o / D_e from pairs of values, one by one."""
    units = [[float(value) for value in column if not math.isnan(value)] for column in table.T]
    units = [unit for unit in units if len(unit) >= 2]
    values = [value for unit in units for value in unit]
    difference = DIFFERENCES[scale]
    observed = sum(
        sum(difference(one, other, values) for one, other in itertools.permutations(unit, 2)) / (len(unit) - 1)
        for unit in units
    )
    expected = sum(difference(one, other, values) for one, other in itertools.permutations(values, 2))
    return 1 - (len(values) - 1) * observed / expected if expected else math.nan


def oracle(table: Ratings, scale: str) -> float:
    return float(krippendorff.alpha(table, level_of_measurement=scale))  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", DISTANCE_BY_SCALE)
@given(table=ratings())
def test_alpha_equals_its_definition_and_another_package(scale: str, table: Ratings) -> None:
    slow = slow_alpha(table, scale)
    assert alpha(table, scale) == pytest.approx(slow, nan_ok=True)
    if not math.isnan(slow):
        assert alpha(table, scale) == pytest.approx(oracle(table, scale), abs=1e-9)


@given(ratings())
def test_observed_agreement_is_the_share_of_pairs_that_agree(table: Ratings) -> None:
    units = [[value for value in column if not math.isnan(value)] for column in table.T]
    pairs = [
        (one == other, 1 / (len(unit) - 1)) for unit in units for one, other in itertools.permutations(unit, 2)
    ]  # a unit is weighted by its number of ratings
    expected = sum(same * weight for same, weight in pairs) / sum(weight for _, weight in pairs) if pairs else math.nan
    values, counts = value_counts_per_unit(table)
    one = tally_value_counts("any", values, counts, np.array([0, len(counts)]))
    assert float(observed_agreement(one.coincidences)[0, 0]) == pytest.approx(expected, nan_ok=True)


def test_a_scale_that_does_not_exist_is_refused() -> None:
    with pytest.raises(FinecombError, match="did you mean 'ordinal'"):
        alpha(KRIPPENDORFF_2011, "ordinl")


def test_proportions_of_negative_numbers_are_refused() -> None:
    with pytest.raises(FinecombError, match="use alpha-interval"):
        alpha(np.array([[-1.0, 1], [1, 1]]), "ratio")


def test_masi_is_that_of_passonneau_2006() -> None:
    sets = [frozenset(each) for each in ("", "a", "ab", "bc", "c")]
    table = build_masi_distance(sets)(np.arange(5.0), np.ones(5))
    assert table[0].tolist() == [0, 1, 1, 1, 1]
    assert table[1, 2] == pytest.approx(1 - 1 / 2 * 2 / 3)  # a subset
    assert table[2, 3] == pytest.approx(1 - 1 / 3 * 1 / 3)  # an overlap
    assert table[1, 4] == 1
    assert (table == table.T).all()


def test_masi_of_single_labels_is_nominal() -> None:
    sets = [frozenset("a"), frozenset("b"), frozenset("c")]
    codes = np.array([[0.0, 1, 2, 1], [0, 2, 2, 1]])
    assert alpha(codes, build_masi_distance(sets)) == pytest.approx(alpha(codes, nominal_distance))
