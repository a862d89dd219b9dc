"""Classical significance tests from SciPy, reported as findings: effect with interval, test statistic, df and p.

Effects are means and differences in the units of the data, Cohen's d, eta squared and Cramér's V. The intervals of the
last three are inverted from noncentral distributions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy  # submodules load on first use, which keeps start-up fast
from numpy.typing import ArrayLike, NDArray

from finecomb.core.results import Estimate, Finding, Signature

Values = NDArray[np.float64]
NO_SPREAD_REASON = "all values are equal, so there is no p-value"
NO_SPREAD_IN_GROUPS_REASON = "all values are equal within each group, so there is no p-value"
ONE_VALUE_REASON = "a p-value requires at least two values, found 1"
SignatureFields = Mapping[str, object] | None
"""Additional signature fields."""
ValuesByGroup = Mapping[str, ArrayLike]
"""Values by group name; NaN values are ignored."""


def one_sample_t_test(
    values: ArrayLike, chance: float = 0.5, level: float = 0.95, fields: SignatureFields = None
) -> Finding:
    """Run a two-sided one-sample t-test of a mean against `chance`; the estimate is the mean.

    p is NaN with fewer than two values, or if all are equal.

    >>> round(one_sample_t_test([0.4, 0.6, 0.8, 0.6]).columns["p"], 3)
    0.308
    """
    numbers = _drop_nan(values)
    signature = Signature.from_fields(statistic="t-test", chance=chance, values=len(numbers), **(fields or {}))
    columns = {"test": "one-sample t", "n": len(numbers)}
    if not len(numbers):
        return _build_test_finding(columns, math.nan, signature=signature, why="no values")
    mean = float(numbers.mean())
    if _is_constant(numbers):
        why = ONE_VALUE_REASON if len(numbers) == 1 else NO_SPREAD_REASON
        return _build_test_finding(columns, mean, signature=signature, why=why)
    test: Any = scipy.stats.ttest_1samp(numbers, chance)
    bounds = test.confidence_interval(level)
    return _build_test_finding(columns, mean, bounds, signature, test.statistic, test.df, test.pvalue)


def two_sample_t_test(
    first: ArrayLike, second: ArrayLike, level: float = 0.95, fields: SignatureFields = None
) -> Finding:
    """Run a two-sided two-sample t-test with pooled variance; the estimate is the difference of means, first - second.

    The result is NaN if a group has fewer than two values. p is NaN if all values are equal within each group.
    """
    a, b = _drop_nan(first), _drop_nan(second)
    signature = Signature.from_fields(statistic="two-sample-t", values=f"{len(a)}+{len(b)}", **(fields or {}))
    columns = {"test": "two-sample t", "n": len(a) + len(b)}
    if min(len(a), len(b)) < 2:
        return _build_test_finding(columns, math.nan, signature=signature, why="a group has fewer than two values")
    difference = float(a.mean() - b.mean())
    if _is_constant(a) and _is_constant(b):
        return _build_test_finding(columns, difference, signature=signature, why=NO_SPREAD_IN_GROUPS_REASON)
    test: Any = scipy.stats.ttest_ind(a, b)
    bounds = test.confidence_interval(level)
    return _build_test_finding(columns, difference, bounds, signature, test.statistic, test.df, test.pvalue)


def cohen_d(first: ArrayLike, second: ArrayLike, level: float = 0.95, fields: SignatureFields = None) -> Finding:
    r"""Compute Cohen's d, $d = (\bar x_1 - \bar x_2) / s$ with the pooled standard deviation s.

    See Cohen (1988), chapter 2. The interval comes from the noncentral t distribution (Steiger and Fouladi 1997). The
    result is NaN if a group has fewer than two values, or if all values are equal within each group (s = 0).
    """
    a, b = _drop_nan(first), _drop_nan(second)
    signature = Signature.from_fields(statistic="cohen-d", values=f"{len(a)}+{len(b)}", **(fields or {}))
    columns = {"test": "Cohen's d", "n": len(a) + len(b)}
    if min(len(a), len(b)) < 2:
        return _build_test_finding(columns, math.nan, signature=signature, why="a group has fewer than two values")
    if _is_constant(a) and _is_constant(b):
        return _build_test_finding(columns, math.nan, signature=signature, why="all values are equal within each group")
    test: Any = scipy.stats.ttest_ind(a, b)
    scale = math.sqrt(1 / len(a) + 1 / len(b))  # d = t * scale
    low, high = noncentrality_interval(
        lambda nc: float(scipy.stats.nct.cdf(test.statistic, test.df, nc)), test.statistic, level
    )
    interval = (low * scale, high * scale)
    return _build_test_finding(
        columns, test.statistic * scale, interval, signature, test.statistic, test.df, test.pvalue
    )


def one_way_anova(groups: ValuesByGroup, level: float = 0.95, fields: SignatureFields = None) -> Finding:
    r"""Run a one-way analysis of variance; the estimate is $\eta^2$, the share of variance between groups.

    The interval comes from the noncentral F distribution (Steiger 2004). The result is NaN with fewer than two groups,
    with a group of fewer than two values, or without variance within groups.
    """
    samples = [_drop_nan(values) for values in groups.values()]
    signature = Signature.from_fields(
        statistic="anova", values="+".join(str(len(sample)) for sample in samples), **(fields or {})
    )
    total = sum(map(len, samples))
    columns = {"test": "one-way ANOVA", "groups": len(samples), "n": total}
    if why := _undefined_groups_reason(samples):
        return _build_test_finding(columns, math.nan, signature=signature, why=why)
    f, p = scipy.stats.f_oneway(*samples)
    df = (len(samples) - 1, total - len(samples))
    low, high = noncentrality_interval(lambda nc: float(scipy.stats.ncf.cdf(f, *df, nc)), f * df[0], level, minimum=0)
    share = [nc / (nc + sum(df) + 1) for nc in (low, high)]  # population eta squared
    return _build_test_finding(columns, f * df[0] / (f * df[0] + df[1]), (share[0], share[1]), signature, f, df, p)


def tukey_hsd(groups: ValuesByGroup, level: float = 0.95, fields: SignatureFields = None) -> list[Finding]:
    """Run Tukey's HSD test for every pair of groups (Tukey-Kramer for unequal sizes).

    The estimate is the difference of means with its simultaneous interval; p is adjusted for all pairs.
    """
    names, samples = list(groups), [_drop_nan(values) for values in groups.values()]
    signature = Signature.from_fields(
        statistic="tukey-hsd", values="+".join(str(len(sample)) for sample in samples), **(fields or {})
    )
    pairs = list(itertools.combinations(range(len(names)), 2))
    columns = [{"test": "Tukey's HSD", "a": names[i], "b": names[j]} for i, j in pairs]
    if why := _undefined_groups_reason(samples):
        return [_build_test_finding(pair, math.nan, signature=signature, why=why) for pair in columns]
    findings: Any = scipy.stats.tukey_hsd(*samples)
    bounds = findings.confidence_interval(level)
    df = sum(map(len, samples)) - len(samples)
    return [
        _build_test_finding(
            pair,
            float(findings.statistic[i, j]),
            (float(bounds.low[i, j]), float(bounds.high[i, j])),
            signature,
            None,
            df,
            findings.pvalue[i, j],
        )
        for pair, (i, j) in zip(columns, pairs, strict=True)
    ]


def chi_square_test(
    table: ArrayLike, correct: bool = False, level: float = 0.95, fields: SignatureFields = None
) -> Finding:
    r"""Run Pearson's chi-square test of independence on a table of counts; the estimate is Cramér's V.

    $V = \sqrt{\chi^2 / (n \min(r - 1, c - 1))}$, with an interval from the noncentral chi-square distribution. Empty
    rows and columns are removed. `correct` applies Yates' correction to a 2 x 2 table. The result is NaN if fewer than
    two rows or columns remain.
    """
    counts = np.asarray(table, dtype=np.float64)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0] if counts.size else counts.reshape(0, 0)
    signature = Signature.from_fields(statistic="chi-square", yates=correct, values=int(counts.sum()), **(fields or {}))
    columns = {"test": "chi-square", "n": int(counts.sum())}
    if min(counts.shape) < 2:
        why = "fewer than two rows or columns have counts"
        return _build_test_finding(columns, math.nan, signature=signature, why=why)
    test = scipy.stats.chi2_contingency(counts, correction=correct)
    x, df, scale = float(test.statistic), int(test.dof), counts.sum() * (min(counts.shape) - 1)
    low, high = noncentrality_interval(lambda nc: float(scipy.stats.ncx2.cdf(x, df, nc)), x, level, minimum=0)
    bounds = [min(1.0, math.sqrt(nc / scale)) for nc in (low, high)]  # population V
    return _build_test_finding(columns, math.sqrt(x / scale), bounds, signature, x, df, test.pvalue)


def noncentrality_interval(
    cdf: Callable[[float], float], start: float, level: float = 0.95, minimum: float = -math.inf
) -> tuple[float, float]:
    """Return the noncentrality parameters for which the observed statistic is the upper and the lower quantile."""
    tails = ((1 + level) / 2, (1 - level) / 2)
    low, high = (_solve_noncentrality(cdf, tail, start, minimum) for tail in tails)
    return low, high


def _solve_noncentrality(cdf: Callable[[float], float], tail: float, start: float, minimum: float) -> float:
    """Return the parameter at which a decreasing `cdf` equals `tail`, or `minimum` if `cdf` starts below `tail`."""

    def excess(nc: float) -> float:
        return cdf(nc) - tail

    step = 1.0 + abs(start)
    low, high = max(minimum, start - step), start + step
    while excess(low) < 0:
        if low <= minimum:
            return minimum
        step *= 2
        low = max(minimum, low - step)
    while excess(high) > 0:
        step *= 2
        high += step
    return float(scipy.optimize.brentq(excess, low, high))


def _drop_nan(values: ArrayLike) -> Values:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[~np.isnan(array)]


def _is_constant(values: Values) -> bool:
    """Return True if there are fewer than two values, or if all values are equal up to rounding."""
    return len(values) < 2 or bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


def _undefined_groups_reason(groups: Sequence[Values]) -> str:
    if len(groups) < 2:
        return "fewer than two groups"
    if min(map(len, groups)) < 2:
        return "a group has fewer than two values"
    return "all values are equal within each group" if all(map(_is_constant, groups)) else ""


def _build_test_finding(
    columns: Mapping[str, object],
    value: float,
    interval: Sequence[float] = (math.nan, math.nan),
    signature: Signature | None = None,
    statistic: float | None = None,
    df: float | tuple[int, int] | None = None,
    p: Any = math.nan,
    why: str = "",
) -> Finding:
    """Build the finding of a test; the columns statistic, df and p follow the given columns."""
    degrees = ", ".join(map(str, df)) if isinstance(df, tuple) else df if df is None else float(df)
    columns_of_test = {"statistic": None if statistic is None else float(statistic), "df": degrees, "p": float(p)}
    estimate = Estimate(float(value), float(interval[0]), float(interval[1]), signature or Signature(()), why)
    return Finding({**columns, **columns_of_test}, estimate)
