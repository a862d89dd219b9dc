"""What one text does to the numbers of its report: each number with it, and without it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from finecomb.core.estimate import Estimate
from finecomb.reporting.figures.figure_model import Axis, build_axis

_MIN_RELATIVE_CHANGE = 0.1  # of the interval: below it there is no change to speak of


@dataclass(frozen=True, slots=True)
class TextInfluence:
    """One number of a report with and without a text."""

    name: str
    without: float
    value: float
    """With the text."""
    axis: Axis
    """The report's own interval, wide enough for both."""
    words: str
    """The change in words."""


def compute_influences(
    rates: pl.DataFrame, systems: Mapping[str, Estimate], pair: tuple[str, str] | None, unit: str
) -> dict[str, tuple[TextInfluence, ...]]:
    """By document: its system's mean with and without it, and the difference of the two systems that are compared.

    `rates` has the columns document, system and value, one row for each text. A text that is alone in its system has
    no number without it and is left out.
    """
    means = {name: _system_rates(rates, name) for name in systems}
    gap = _gap_interval(means, pair) if pair else None
    result: dict[str, tuple[TextInfluence, ...]] = {}
    for document, system, value in rates.select("document", "system", "value").iter_rows():
        if system in means and len(means[system]) > 1:
            result[document] = tuple(_text_influences(value, system, means, systems, pair, gap, unit))
    return result


def _system_rates(rates: pl.DataFrame, system: str) -> np.ndarray:
    return rates.filter(pl.col("system") == system)["value"].to_numpy()


def _gap_interval(means: Mapping[str, np.ndarray], pair: tuple[str, str]) -> tuple[float, float]:
    """About the interval of the difference: two standard errors to each side."""
    first, second = (means[name] for name in pair)
    if min(len(first), len(second)) < 2:
        return math.nan, math.nan
    error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    gap = float(second.mean() - first.mean())
    return gap - 2 * error, gap + 2 * error


def _text_influences(
    value: float, system: str, means: Mapping[str, np.ndarray], systems: Mapping[str, Estimate],
    pair: tuple[str, str] | None, gap: tuple[float, float] | None, unit: str,
) -> Iterator[TextInfluence]:  # fmt: skip
    values = means[system]
    whole, rest = float(values.mean()), float((values.sum() - value) / (len(values) - 1))
    yield _build_influence(f"{system}, {unit}", rest, whole, systems[system].low, systems[system].high)
    if pair and gap and system in pair:
        other = pair[1 - pair.index(system)]
        sign, fixed = (1 if pair.index(system) else -1), float(means[other].mean())
        yield _build_influence(f"Difference to {other}", sign * (rest - fixed), sign * (whole - fixed), *gap)


def _build_influence(name: str, without: float, value: float, low: float, high: float) -> TextInfluence:
    ends = [end for end in (low, high, without, value) if math.isfinite(end)]
    base = build_axis([], zero=False, bounds=(min(ends), max(ends)))
    scale = Axis(min(ends), max(ends), (), max(1, base.digits))
    change, width = value - without, high - low
    little = math.isfinite(width) and abs(change) < _MIN_RELATIVE_CHANGE * width
    words = "no change to speak of" if little or not change else f"{'up' if change > 0 else 'down'} {abs(change):.2f}"
    return TextInfluence(name, without, value, scale, words)
