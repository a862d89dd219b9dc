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
    _permute_groups,
    adjust_p_values,
    difference_test,
    max_t_adjustment,
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
    seen = welch(first, second)
    hits = total = 0
    for chosen in itertools.combinations(range(len(both)), len(first)):
        inside = [both[i] for i in chosen]
        outside = [both[i] for i in range(len(both)) if i not in chosen]
        hits += bool(welch(inside, outside) >= seen * (1 - 1e-9))
        total += 1
    return hits / total


def welch(first: list[float], second: list[float]) -> float:
    """Return the size of the difference in standard errors; infinite for a difference without variation."""
    difference = abs(float(np.mean(first) - np.mean(second)))
    error = math.sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second))
    return difference / error if error > 1e-9 else math.inf if difference > 1e-9 else 0.0


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=6))
def test_paired_p_is_its_definition(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(pair[at]) for pair in pairs] for at in (0, 1))
    difference = paired_permutation_test(np.array(first), np.array(second), 1000, rng())
    assert difference.exact
    assert difference.p == pytest.approx(slow_paired(first, second))


@given(numbers, numbers)
def test_unpaired_p_is_its_definition(first: list[float], second: list[float]) -> None:
    difference = unpaired_permutation_test(np.array(first), np.array(second), 1000, rng())
    assert difference.exact
    assert difference.p == pytest.approx(slow_unpaired(first, second))


def test_unpaired_p_is_that_of_scipy() -> None:
    # groups of one size, since SciPy otherwise doubles a tail
    a, b = rng().normal(0, 1, 5), np.random.default_rng(1).normal(1, 1, 5)
    oracle = stats.permutation_test(
        (a, b), lambda x, y: stats.ttest_ind(x, y, equal_var=False).statistic, n_resamples=10_000
    )
    assert unpaired_permutation_test(a, b, 1000, rng()).p == pytest.approx(oracle.pvalue)


def test_monte_carlo_comes_near_the_exact_p() -> None:
    a, b = rng().normal(0, 1, 14), np.random.default_rng(1).normal(0.8, 1, 14)
    for test, first, second, slow in (
        (paired_permutation_test, a, b, slow_paired),
        (unpaired_permutation_test, a[:9], b[:8], slow_unpaired),
    ):
        drawn = test(first, second, 2000, rng())
        assert not drawn.exact
        assert drawn.p == pytest.approx(slow(first.tolist(), second.tolist()), abs=0.03)


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
    """Return how often p < 0.05, and how often the interval excludes 0, for skewed values without a difference."""
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
    assert left_out == alarms  # the interval inverts the test


@pytest.mark.long
@pytest.mark.parametrize("test", ["paired", "unpaired"])
def test_false_alarms_are_one_in_twenty_in_the_long_run(test: str) -> None:
    runs = 10_000
    low, high = (stats.binom.ppf(end, runs, 0.05) for end in (0.001, 0.999))
    assert low <= _false_alarms(test, runs, 30)[0] <= high


def test_groups_of_unequal_size_and_variance_keep_the_level() -> None:
    # 10 texts with five times the standard deviation of 40 others; an unstudentised test rejects in about 30%
    source, runs = np.random.default_rng(4), 400
    alarms = sum(
        unpaired_permutation_test(source.normal(0, 5, 10), source.normal(0, 1, 40), 199, np.random.default_rng(run)).p
        <= 0.05
        for run in range(runs)
    )
    assert alarms <= stats.binom.ppf(0.999, runs, 0.06)


samples = st.lists(st.integers(-6, 6).map(float), min_size=4, max_size=9)


@settings(max_examples=60, deadline=None)
@given(samples, samples, samples, st.booleans())
def test_the_interval_never_contradicts_the_p_value(
    pairs: list[float], first: list[float], second: list[float], is_paired: bool
) -> None:
    groups = [np.stack([values, np.ones(len(values))], axis=1) for values in (np.array(first), np.array(second))]
    found = difference_test(np.array(pairs if is_paired else []), groups[0], groups[1], 199, rng())
    if not math.isnan(found.low):
        assert (found.low <= 0 <= found.high) == (found.p > 0.05)
        assert found.low <= found.difference <= found.high


@settings(max_examples=30, deadline=None)
@given(samples, samples, st.floats(-3, 3))
def test_a_shifted_group_is_the_test_of_shifted_values(first: list[float], second: list[float], delta: float) -> None:
    sizes = np.arange(1, 1 + len(first)) % 3 + 1.0
    a = np.stack([np.array(first) * sizes, sizes], axis=1)
    b = np.stack([np.array(second), np.ones(len(second))], axis=1)
    arrangement = np.random.default_rng(1).permuted(np.tile(np.arange(len(a) + len(b)) < len(a), (5, 1)), axis=1)
    part = _permute_groups(a, b, 5, np.random.default_rng(1), exact=False)
    own = part.shift(delta)
    shifted = np.concatenate([a - np.outer(sizes, [delta, 0]), b])
    for draw, members in enumerate(arrangement):
        ratios, variances = [], []
        for group in (shifted[members], shifted[~members]):
            ratio = group[:, 0].sum() / group[:, 1].sum()
            residuals = group[:, 0] - ratio * group[:, 1]
            ratios.append(ratio)
            variances.append((residuals**2).sum() / group[:, 1].sum() ** 2 * len(group) / (len(group) - 1))
        assert own.null_estimates[draw] == pytest.approx(ratios[0] - ratios[1], abs=1e-9)
        assert own.null_variances[draw] == pytest.approx(sum(variances), abs=1e-9)


def test_partly_paired_texts_are_combined_by_their_variances() -> None:
    pairs, a, b = rng().normal(1, 1, 12), rng().normal(3, 2, 9), rng().normal(2, 1, 7)
    groups = [np.stack([values, np.ones(len(values))], axis=1) for values in (a, b)]
    found = difference_test(pairs, groups[0], groups[1], 999, rng())
    errors = np.array([np.var(pairs) / 11, np.var(a, ddof=1) / 9 + np.var(b, ddof=1) / 7])
    estimates = np.array([pairs.mean(), a.mean() - b.mean()])
    assert found.difference == pytest.approx((estimates / errors).sum() / (1 / errors).sum())
    assert found.error == pytest.approx((1 / errors).sum() ** -0.5)


def test_one_comparison_needs_no_adjustment_and_many_do() -> None:
    values = rng().normal(0.7, 1, (20, 1))
    centred, t = values - values.mean(), values.mean() / (values.std(ddof=1) / math.sqrt(20))
    one = max_t_adjustment(centred, np.array([t]), 20_000, rng())
    assert one.p[0] == pytest.approx(paired_permutation_test(values[:, 0], np.zeros(20), 20_000, rng()).p, abs=0.01)
    noise = np.concatenate([centred, rng().normal(0, 1, (20, 9))], axis=1)
    many = max_t_adjustment(noise - noise.mean(axis=0), np.array([t, *np.zeros(9)]), 20_000, rng())
    assert one.p[0] < many.p[0] <= 10 * one.p[0] + 0.01
    assert many.critical > one.critical


def test_max_t_keeps_the_family_error() -> None:
    source, runs, alarms = np.random.default_rng(6), 300, 0
    for run in range(runs):
        values = source.normal(0, 1, (20, 1)) + source.normal(0, 1, (20, 6))  # correlated comparisons
        t = values.mean(axis=0) / (values.std(axis=0, ddof=1) / math.sqrt(20))
        found = max_t_adjustment(values - values.mean(axis=0), t, 299, np.random.default_rng(run))
        assert bool((found.p <= 0.05).any()) == bool((np.abs(t) >= found.critical).any())
        alarms += bool((found.p <= 0.05).any())
    assert stats.binom.ppf(0.001, runs, 0.03) <= alarms <= stats.binom.ppf(0.999, runs, 0.06)


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
