from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.permutation_tests import (
    Correction,
    MeanDifference,
    adjust_p_values,
    paired_permutation_test,
    unpaired_permutation_test,
)

numbers = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=5)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def slow_paired(first: list[float], second: list[float]) -> float:
    d = [a - b for a, b in zip(first, second, strict=True)]
    flips = list(itertools.product([1, -1], repeat=len(d)))
    hits = sum(abs(sum(s * x for s, x in zip(signs, d, strict=True))) >= abs(sum(d)) - 1e-9 for signs in flips)
    return hits / len(flips)


def slow_unpaired(first: list[float], second: list[float]) -> float:
    both = [*first, *second]
    seen = abs(np.mean(first) - np.mean(second))
    hits = total = 0
    for chosen in itertools.combinations(range(len(both)), len(first)):
        inside = [both[i] for i in chosen]
        outside = [both[i] for i in range(len(both)) if i not in chosen]
        hits += bool(abs(np.mean(inside) - np.mean(outside)) >= seen - 1e-9)
        total += 1
    return hits / total


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=6))
def test_paired_p_is_its_definition(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(pair[at]) for pair in pairs] for at in (0, 1))
    found = paired_permutation_test(np.array(first), np.array(second), 1000, rng())
    assert found.exact
    assert found.p == pytest.approx(slow_paired(first, second))


@given(numbers, numbers)
def test_unpaired_p_is_its_definition(first: list[float], second: list[float]) -> None:
    found = unpaired_permutation_test(np.array(first), np.array(second), 1000, rng())
    assert found.exact
    assert found.p == pytest.approx(slow_unpaired(first, second))


def test_unpaired_p_is_that_of_scipy() -> None:
    a, b = rng().normal(0, 1, 5), np.random.default_rng(1).normal(1, 1, 5)  # of one size: else scipy doubles a tail
    oracle = stats.permutation_test((a, b), lambda x, y: np.mean(x) - np.mean(y), n_resamples=10_000)
    assert unpaired_permutation_test(a, b, 1000, rng()).p == pytest.approx(oracle.pvalue)


def test_monte_carlo_comes_near_the_exact_p() -> None:
    a, b = rng().normal(0, 1, 14), np.random.default_rng(1).normal(0.8, 1, 14)
    for test, first, second in ((paired_permutation_test, a, b), (unpaired_permutation_test, a[:9], b[:8])):
        exact, drawn = test(first, second, 30_000, rng()), test(first, second, 200, rng())
        assert exact.exact
        assert not drawn.exact
        assert drawn.p == pytest.approx(exact.p, abs=0.08)


def test_few_arrangements_are_all_looked_at_however_few_draws_are_asked_for() -> None:
    a, b = rng().normal(0, 1, 4), np.random.default_rng(1).normal(0.8, 1, 4)
    for test in (paired_permutation_test, unpaired_permutation_test):
        assert test(a, b, 0, rng()).p == test(a, b, 20_000, rng()).p


def test_without_draws_there_is_no_monte_carlo_p() -> None:
    a, b = np.arange(30.0), 100 + np.arange(30.0)
    assert math.isnan(unpaired_permutation_test(a, b, 0, rng()).p)


def test_monte_carlo_never_says_p_is_0() -> None:
    a, b = np.arange(30.0), 100 + np.arange(30.0)
    assert unpaired_permutation_test(a, b, 99, rng()).p == pytest.approx(0.01)
    assert paired_permutation_test(a, b + rng().random(30), 99, rng()).p == pytest.approx(0.01)


def test_the_same_seed_gives_the_same_p() -> None:
    a, b = rng().normal(0, 1, 40), np.random.default_rng(1).normal(0.3, 1, 40)
    assert unpaired_permutation_test(a, b, 500, rng()) == unpaired_permutation_test(a, b, 500, rng())


def test_equal_systems_have_p_1() -> None:
    same = np.array([0.2, 0.4, 0.1])
    assert paired_permutation_test(same, same, 100, rng()).p == 1
    assert unpaired_permutation_test(np.full(4, 0.5), np.full(3, 0.5), 100, rng()).p == 1


@pytest.mark.parametrize("sizes", [(0, 0), (1, 1), (1, 5)])
def test_one_value_is_no_comparison(sizes: tuple[int, int]) -> None:
    a, b = (np.ones(size) for size in sizes)
    assert math.isnan(unpaired_permutation_test(a, b, 100, rng()).p)
    assert math.isnan(paired_permutation_test(b[: sizes[0]], a, 100, rng()).p)


def _false_alarms(test: str, runs: int, n: int) -> tuple[int, int]:
    """How often p < .05, and how often the interval leaves out 0, when there is no difference; skewed values."""
    source, alarms, left_out = np.random.default_rng(3), 0, 0
    for run in range(runs):
        prompt = source.exponential(1, n) if test == "paired" else np.zeros(n)
        a, b = prompt + source.exponential(1, n), prompt + source.exponential(1, n)
        draw = np.random.default_rng(run)
        found: MeanDifference = (
            paired_permutation_test(a, b, 199, draw) if test == "paired" else unpaired_permutation_test(a, b, 199, draw)
        )
        alarms += found.p <= 0.05
        left_out += not found.low <= 0 <= found.high
    return alarms, left_out


@pytest.mark.parametrize("test", ["paired", "unpaired"])
def test_without_a_difference_one_test_in_twenty_is_a_false_alarm(test: str) -> None:
    runs = 500
    low, high = (stats.binom.ppf(end, runs, 0.05) for end in (0.001, 0.999))
    alarms, left_out = _false_alarms(test, runs, 30)
    assert low <= alarms <= high
    assert left_out <= stats.binom.ppf(0.999, runs, 0.08)  # percentile intervals of 30 texts are a little short


@pytest.mark.long
@pytest.mark.parametrize("test", ["paired", "unpaired"])
def test_false_alarms_are_one_in_twenty_in_the_long_run(test: str) -> None:
    runs = 10_000
    low, high = (stats.binom.ppf(end, runs, 0.05) for end in (0.001, 0.999))
    assert low <= _false_alarms(test, runs, 30)[0] <= high


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from(["holm", "bonferroni"]))
def test_corrections_are_those_of_statsmodels(p: list[float], correction: Correction) -> None:
    assert adjust_p_values(np.array(p), correction) == pytest.approx(multipletests(p, method=correction)[1])


def test_a_missing_p_is_no_test() -> None:
    assert adjust_p_values(np.array([0.01, math.nan, 0.04]), "bonferroni") == pytest.approx(
        [0.02, math.nan, 0.08], nan_ok=True
    )
    assert adjust_p_values(np.array([]), "holm").tolist() == []
    assert adjust_p_values(np.array([0.5]), "none").tolist() == [0.5]


def test_an_unknown_correction_is_refused() -> None:
    with pytest.raises(FinecombError, match="holm, bonferroni or none"):
        adjust_p_values(np.array([0.1]), "sidak")  # type: ignore[arg-type]
