"""How many texts people must still read for an interval of a given width, alone, in fixed shares, and with judges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval
from finecomb.statistics.judges.estimates import FIXED_SHARES, PEOPLE_ALONE, WITH_JUDGES, pilot_text_values
from finecomb.statistics.judges.ppi import PpiEstimate, ppi_mean
from finecomb.statistics.selection.view import Filters

MIN_TEXTS, MAX_TEXTS = 3, 1_000_000


def projected_half_width(mean: PpiEstimate, read: int, texts: int) -> float:
    """Half the width of the interval if people had read `texts` texts like the `read` of the pilot."""
    share = read / texts
    scaled = (mean.spread.variance - mean.fixed.variance) * share, (mean.spread.third - mean.fixed.third) * share**2
    spread = ErrorMoments(*scaled, max(texts - 1, 1)) + mean.fixed
    low, high = hall_interval(0.0, spread)
    return (high - low) / 2


def required_text_count(mean: PpiEstimate, read: int, wanted: float) -> int | None:
    """Fewest human texts whose interval is at most `wanted` to each side; None where no number is enough."""
    high = MIN_TEXTS
    while projected_half_width(mean, read, high) > wanted:
        high *= 2
        if high > MAX_TEXTS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if projected_half_width(mean, read, middle) <= wanted else (middle, high)
    return high


def plan_sample_size(
    study: Study, judges: Sequence[str], wanted: float, measure: str = "count", filters: Filters | None = None
) -> list[Finding]:
    """Human texts needed for a half-width, from a pilot that people and judges have read: people alone, and helped."""
    if not wanted > 0:
        raise FinecombError(f"a half-width is more than 0, not {wanted:g}")
    values = pilot_text_values(study, judges, measure, filters=filters)
    read = len(values.human)
    if read < MIN_TEXTS or not values.human.std() > 0:
        raise FinecombError(f"{read} human texts without any variation are no pilot; let people read more")
    parts = [
        (PEOPLE_ALONE, values.without_judges_or_strata()),
        *([(FIXED_SHARES, values.without_judges())] if values.strata is not None else []),
        (WITH_JUDGES, values),
    ]
    return [
        _required_texts_finding(method, ppi_mean(part), read, wanted, measure, judges, values.text_count)
        for method, part in parts
    ]


def _required_texts_finding(
    method: str, mean: PpiEstimate, read: int, wanted: float, measure: str, judges: Sequence[str], texts: int
) -> Finding:
    signature = Signature.from_fields(
        statistic="human texts needed", measure=measure, method=method, half_width=wanted, judges="+".join(judges),
        pilot=read, texts=texts,
    )  # fmt: skip
    needed = required_text_count(mean, read, wanted)
    columns = {"measure": "human texts needed", "of": measure, "method": method, "pilot": read, "judged": texts}
    why = f"no number of human texts is enough: judges have read {texts} texts only"
    value = math.nan if needed is None else float(needed)
    return Finding(columns, Estimate(value, math.nan, math.nan, signature, why if needed is None else ""))
