"""A quick version of `benchmarks/coverage.py` with fixed seeds."""

from __future__ import annotations

import math

import pytest
from benchmarks.coverage import (
    TEST_DESIGNS,
    Population,
    measure_coverage,
    measure_family_error,
    measure_size,
    simulated_populations,
)

REPLICATIONS = 400
POPULATIONS = {population.statistic: population for population in simulated_populations(3000)}


@pytest.mark.parametrize("clusters", [10, 20])
@pytest.mark.parametrize("population", POPULATIONS.values(), ids=list(POPULATIONS))
def test_intervals_cover_the_true_value(population: Population, clusters: int) -> None:
    cell = measure_coverage(population, clusters, REPLICATIONS, draws=300)
    required = 0.93 if clusters >= 20 else 0.92
    assert cell.coverage >= required - 3 * math.sqrt(required * (1 - required) / REPLICATIONS)
    assert cell.defined > 0.95


def test_tests_keep_their_size() -> None:
    limit = 0.06 + 3 * math.sqrt(0.06 * 0.94 / 200)
    for design in TEST_DESIGNS[:1] + TEST_DESIGNS[4:5] + TEST_DESIGNS[7:]:
        assert measure_size(design, 200) <= limit
    assert measure_family_error(200) <= limit
