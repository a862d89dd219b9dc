from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multicomp import pairwise_tukeyhsd
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from finecomb.core.results import Finding
from finecomb.statistics.inference.classical_tests import (
    chi_square_test,
    cohen_d,
    one_sample_t_test,
    one_way_anova,
    tukey_hsd,
    two_sample_t_test,
)

RNG = np.random.default_rng(7)
A, B, C = RNG.normal(0, 1, 21), RNG.normal(0.6, 1.2, 34), RNG.normal(0.2, 0.8, 28)
GROUPS = {"a": A, "b": B, "c": C}


def results(finding: Finding) -> tuple[Any, Any, Any]:
    return finding.columns["statistic"], finding.columns["df"], finding.columns["p"]


def test_one_sample_t_is_that_of_statsmodels() -> None:
    finding = one_sample_t_test(A, 0.1)
    described = DescrStatsW(A)
    t, p, df = described.ttest_mean(0.1)
    assert results(finding) == pytest.approx((t, df, p))
    assert (finding.estimate.low, finding.estimate.high) == pytest.approx(described.tconfint_mean())


def test_two_sample_t_is_that_of_statsmodels() -> None:
    finding = two_sample_t_test(A, B)
    means = CompareMeans.from_data(A, B)
    t, p, df = means.ttest_ind()
    assert results(finding) == pytest.approx((t, df, p))
    assert (finding.estimate.low, finding.estimate.high) == pytest.approx(means.tconfint_diff())


def test_anova_is_that_of_statsmodels() -> None:
    import pandas as pd
    from statsmodels.formula.api import ols

    frame = pd.DataFrame({"y": np.concatenate([A, B, C]), "g": ["a"] * 21 + ["b"] * 34 + ["c"] * 28})
    table = anova_lm(ols("y ~ g", frame).fit())
    finding = one_way_anova(GROUPS)
    assert finding.columns["statistic"] == pytest.approx(table["F"].iloc[0])
    assert finding.columns["p"] == pytest.approx(table["PR(>F)"].iloc[0])
    assert finding.columns["df"] == "2, 80"
    assert finding.estimate.value == pytest.approx(table["sum_sq"].iloc[0] / table["sum_sq"].sum())


def test_clarks_design_has_387_degrees_of_freedom() -> None:
    scores = {name: RNG.binomial(5, 0.5, 130) / 5 for name in ("stories", "news", "recipes")}
    assert one_way_anova(scores).columns["df"] == "2, 387"  # the paper prints 2, 390
    assert one_sample_t_test(np.concatenate(list(scores.values()))).columns["df"] == 389  # and 388


def test_tukey_is_that_of_statsmodels() -> None:
    values = np.concatenate([A, B, C])
    oracle = pairwise_tukeyhsd(values, ["a"] * 21 + ["b"] * 34 + ["c"] * 28)
    findings = tukey_hsd(GROUPS)
    assert [(row.columns["a"], row.columns["b"]) for row in findings] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [row.estimate.value for row in findings] == pytest.approx(-oracle.meandiffs)
    assert [row.columns["p"] for row in findings] == pytest.approx(oracle.pvalues, abs=1e-4)
    ends = [(row.estimate.low, row.estimate.high) for row in findings]
    assert np.array(ends) == pytest.approx(-oracle.confint[:, ::-1], abs=1e-3)


def test_cohens_d_is_the_difference_in_pooled_standard_deviations() -> None:
    pooled = math.sqrt(((len(A) - 1) * A.var(ddof=1) + (len(B) - 1) * B.var(ddof=1)) / (len(A) + len(B) - 2))
    assert cohen_d(A, B).estimate.value == pytest.approx((A.mean() - B.mean()) / pooled)


def test_the_ends_of_an_interval_of_d_are_just_not_surprising() -> None:
    finding = cohen_d(A, B)
    t, df, _ = results(finding)
    scale = math.sqrt(1 / len(A) + 1 / len(B))
    assert stats.nct.cdf(t, df, finding.estimate.low / scale) == pytest.approx(0.975, abs=1e-6)
    assert stats.nct.cdf(t, df, finding.estimate.high / scale) == pytest.approx(0.025, abs=1e-6)


@pytest.mark.long
def test_intervals_of_d_and_eta_squared_cover() -> None:
    rng, hits = np.random.default_rng(1), np.zeros(2)
    between = np.array([0.0, 0.4])  # for two groups, population eta squared is s_b / (s_b + 1)
    share = between.var() / (between.var() + 1)
    for _ in range(200):
        first, second = (rng.normal(mean, 1, 25) for mean in between)
        d = cohen_d(second, first).estimate
        eta = one_way_anova({"a": first, "b": second}).estimate
        hits += [d.low <= 0.4 <= d.high, eta.low <= share <= eta.high]
    low, high = (stats.binom.ppf(end, 200, 0.95) for end in (0.001, 0.999))
    assert low <= hits[0] <= high
    assert low <= hits[1] <= high


@pytest.mark.parametrize("correct", [False, True])
def test_chi_square_is_that_of_scipy(correct: bool) -> None:
    table = [[12, 30], [25, 11]]
    oracle = stats.chi2_contingency(table, correction=correct)
    finding = chi_square_test(table, correct)
    assert results(finding) == pytest.approx((oracle.statistic, oracle.dof, oracle.pvalue))
    assert finding.estimate.value == pytest.approx(stats.contingency.association(table, "cramer", correction=correct))
    assert finding.estimate.low < finding.estimate.value < finding.estimate.high


def test_empty_rows_and_columns_of_a_table_do_not_count() -> None:
    assert results(chi_square_test([[12, 0, 30], [0, 0, 0], [25, 0, 11]])) == results(
        chi_square_test([[12, 30], [25, 11]])
    )


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        (one_sample_t_test([]), "no values"),
        (two_sample_t_test([1], [2, 3]), "a group has fewer than two values"),
        (cohen_d([1], [2, 3]), "a group has fewer than two values"),
        (cohen_d([1, 1], [2, 2]), "all values are equal within each group"),
        (one_way_anova({"a": [1, 2]}), "fewer than two groups"),
        (one_way_anova({"a": [1, 2], "b": [3]}), "a group has fewer than two values"),
        (one_way_anova({"a": [1, 1], "b": [3, 3]}), "all values are equal within each group"),
        (tukey_hsd({"a": [1, 1], "b": [3, 3]})[0], "all values are equal within each group"),
        (chi_square_test([[3, 4]]), "fewer than two rows or columns have counts"),
        (chi_square_test([]), "fewer than two rows or columns have counts"),
    ],
)
def test_undefined_is_nan_with_a_reason(finding: Finding, why: str) -> None:
    assert math.isnan(finding.estimate.value)
    assert finding.estimate.why == why
    assert math.isnan(results(finding)[2])


@pytest.mark.parametrize("values", [[0.6], [0.6, 0.6, 0.6]])
def test_equal_values_have_a_mean_but_no_p(values: list[float]) -> None:
    finding = one_sample_t_test(values)
    assert finding.estimate.value == pytest.approx(0.6)
    assert math.isnan(results(finding)[2])
    one_value = "a p-value requires at least two values, found 1"
    assert finding.estimate.why == (one_value if len(values) == 1 else "all values are equal, so there is no p-value")


def test_missing_values_are_left_out() -> None:
    assert results(one_sample_t_test([*A, math.nan], 0.1)) == results(one_sample_t_test(A, 0.1))
