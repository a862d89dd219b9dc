"""Effect of single texts on the numbers of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from finecomb.core.results import Estimate
from finecomb.reporting.figures.figure_model import Axis, build_axis

_MIN_RELATIVE_CHANGE = 0.1  # of the width of the interval; smaller changes are called negligible


@dataclass(frozen=True, slots=True)
class TextInfluence:
    """A report's number without one text and with it (`value`), and a description of the change.

    The axis covers the interval in the report, extended to both values.
    """

    name: str
    without: float
    value: float
    axis: Axis
    words: str


def compute_influences(
    rates: pl.DataFrame, systems: Mapping[str, Estimate], pair: tuple[str, str] | None, unit: str
) -> dict[str, tuple[TextInfluence, ...]]:
    """Return, for each document, its system's mean and the headline difference with and without the document.

    `rates` has the columns document, system and value, one row per text. The only text of a system is omitted, because
    there is no value without it.
    """
    rates_by_system = {name: rates.filter(pl.col("system") == name)["value"].to_numpy() for name in systems}
    gap = (math.nan, math.nan)
    if pair and min(len(rates_by_system[name]) for name in pair) > 1:
        # interval of the difference, approximated by two standard errors on each side
        first, second = (rates_by_system[name] for name in pair)
        error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
        difference = float(second.mean() - first.mean())
        gap = difference - 2 * error, difference + 2 * error
    result: dict[str, tuple[TextInfluence, ...]] = {}
    for document, system, value in rates.select("document", "system", "value").iter_rows():
        if system not in rates_by_system or len(rates_by_system[system]) < 2:
            continue
        values, interval = rates_by_system[system], systems[system]
        mean, mean_without = float(values.mean()), float((values.sum() - value) / (len(values) - 1))
        influences = [_build_influence(f"{system}, {unit}", mean_without, mean, interval.low, interval.high)]
        if pair and system in pair:
            other = pair[1 - pair.index(system)]
            sign, fixed = (1 if pair.index(system) else -1), float(rates_by_system[other].mean())
            ends = sign * (mean_without - fixed), sign * (mean - fixed)
            influences.append(_build_influence(f"Difference from {other}", *ends, *gap))
        result[document] = tuple(influences)
    return result


def _build_influence(name: str, without: float, value: float, low: float, high: float) -> TextInfluence:
    ends = [end for end in (low, high, without, value) if math.isfinite(end)]
    base = build_axis([], zero=False, bounds=(min(ends), max(ends)))
    scale = Axis(min(ends), max(ends), (), max(1, base.digits))
    change, width = value - without, high - low
    is_negligible = math.isfinite(width) and abs(change) < _MIN_RELATIVE_CHANGE * width
    words = "negligible" if is_negligible or not change else f"{'up' if change > 0 else 'down'} {abs(change):.2f}"
    return TextInfluence(name, without, value, scale, words)
