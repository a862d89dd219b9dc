"""Number of human texts required for an interval of a given width: people alone, in fixed shares, with judges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from finecomb.core.errors import FinecombError
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval
from finecomb.statistics.judges.estimates import FIXED_SHARES, PEOPLE_ALONE, WITH_JUDGES, pilot_text_values
from finecomb.statistics.judges.ppi import PpiEstimate, ppi_mean
from finecomb.statistics.selection.view import Filters

MIN_TEXTS, MAX_TEXTS = 3, 1_000_000


def projected_half_width(mean: PpiEstimate, read: int, texts: int) -> float:
    """Project the half-width of the interval from a pilot of `read` human texts to `texts` human texts."""
    share = read / texts
    # With n texts, the variance of a mean falls as 1/n and its third moment as 1/n^2.
    scaled = (mean.spread.variance - mean.fixed.variance) * share, (mean.spread.third - mean.fixed.third) * share**2
    spread = ErrorMoments(*scaled, max(texts - 1, 1)) + mean.fixed
    low, high = hall_interval(0.0, spread)
    return (high - low) / 2


def required_text_count(mean: PpiEstimate, read: int, wanted: float) -> int | None:
    """Return the smallest number of human texts for a half-width of at most `wanted`, or None above `MAX_TEXTS`."""
    high = MIN_TEXTS
    while projected_half_width(mean, read, high) > wanted:
        if high == MAX_TEXTS:
            return None
        high = min(2 * high, MAX_TEXTS)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if projected_half_width(mean, read, middle) <= wanted else (middle, high)
    return high


def plan_sample_size(
    study: Study, judges: Sequence[str], wanted: float, measure: str = "count", filters: Filters | None = None
) -> list[Finding]:
    """Plan the number of human texts for a given half-width, from a pilot annotated by people and judges.

    There is one row per method: people alone, fixed shares of strata, and with judges.
    """
    if not wanted > 0:
        raise FinecombError(f"the half-width must be more than 0, found {wanted:g}")
    values = pilot_text_values(study, judges, measure, filters=filters)
    read, texts = len(values.human), values.text_count
    if read < MIN_TEXTS:
        raise FinecombError(f"at least {MIN_TEXTS} human texts are needed, found {read}")
    if not values.human.std() > 0:
        raise FinecombError(f"all {read} human texts have the same value; have people annotate more texts")
    parts = [
        (PEOPLE_ALONE, values.without_judges_or_strata()),
        *([(FIXED_SHARES, values.without_judges())] if values.strata is not None else []),
        (WITH_JUDGES, values),
    ]
    findings = []
    for method, part in parts:
        mean = ppi_mean(part)
        signature = Signature.from_fields(
            statistic="human texts needed", measure=measure, method=method, half_width=wanted, judges="+".join(judges),
            pilot=read, texts=texts,
        )  # fmt: skip
        needed = required_text_count(mean, read, wanted)
        columns = {"measure": "human texts needed", "of": measure, "method": method, "pilot": read, "judged": texts}
        limit = f"; judges annotated only {texts} texts" if mean.fixed.variance > 0 else ""
        why = "" if needed is not None else f"more than {MAX_TEXTS:,} human texts would be needed{limit}"
        value = math.nan if needed is None else float(needed)
        findings.append(Finding(columns, Estimate(value, math.nan, math.nan, signature, why)))
    return findings
