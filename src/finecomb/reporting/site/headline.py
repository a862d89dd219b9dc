"""Headline of a report: the system with the lower error rate, the difference, and its robustness.

Fixed rules write the text from the numbers. A word for a ratio ("half") is used only if the interval of the ratio
allows no other word, and a system "has a lower error rate" only if the interval of the difference excludes 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from finecomb.core.results import Estimate, Signature
from finecomb.reporting.figures.figure_model import (
    Axis,
    DotFigure,
    DotRow,
    HeadlineStatement,
    ReportHeadline,
    build_axis,
    format_count_with_noun,
)
from finecomb.statistics.inference.resampling import Floats, percentile_interval, resampled_positions

HUMAN_SYSTEM = "human"
ALL_TEXTS_GROUP = "all texts"
"""System name for texts that name no system."""
_RATIO_WORDS = (
    (1 / 4, "a quarter of"),
    (1 / 3, "a third of"),
    (1 / 2, "half"),
    (2 / 3, "two thirds of"),
    (3 / 4, "three quarters of"),
)
_AGREEMENT_WORDS = ((0.2, "poor"), (0.4, "fair"), (0.6, "moderate"), (0.8, "good"), (math.inf, "very good"))


def choose_compared_pair(systems: Sequence[str]) -> tuple[str, str] | None:
    """Return the two systems to compare, better first: the two best machines, or human text and the only machine."""
    machines = [name for name in systems if name != HUMAN_SYSTEM]
    if len(machines) >= 2:
        return machines[-1], machines[-2]
    return (HUMAN_SYSTEM, machines[0]) if machines and HUMAN_SYSTEM in systems else None


def estimate_difference(first: Floats, second: Floats, draws: int, seed: int) -> tuple[Estimate, Estimate]:
    """Estimate how much lower the mean of the first system is, and its ratio to the second, by resampling texts."""
    rng = np.random.default_rng(seed)
    signature = Signature.from_fields(statistic="difference of means over texts", draws=draws, seed=seed)
    first_means, second_means = (
        values[resampled_positions(len(values), draws, rng)].mean(axis=1) if len(values) else np.full(draws, math.nan)
        for values in (first, second)
    )
    if len(first) < 2 or len(second) < 2:
        return (Estimate(math.nan, math.nan, math.nan, signature, "a system has fewer than 2 texts"),) * 2
    gap = Estimate(float(second.mean() - first.mean()), *percentile_interval(second_means - first_means), signature)
    if second.mean() == 0 or (second_means == 0).any():
        return gap, Estimate(
            math.nan, math.nan, math.nan, signature, "a system has no errors in a resample of its texts"
        )
    return gap, Estimate(
        float(first.mean() / second.mean()), *percentile_interval(first_means / second_means), signature
    )


def headline_sentence(
    pair: tuple[str, str] | None, systems: Mapping[str, Estimate], gap: Estimate | None, ratio: Estimate | None
) -> str:
    """Write the headline sentence of a report."""
    if pair is None or gap is None or ratio is None:
        known = [name for name, estimate in systems.items() if not math.isnan(estimate.value)]
        if not known:
            return "No error rate is available." if systems else "No annotations yet."
        if known[0] == ALL_TEXTS_GROUP:
            return "The texts name no system, so there is no comparison between systems."
        return f"{_system_title(known[0])} is the only group of texts, so there is no comparison between systems."
    better, worse = (_system_title(name) for name in pair)
    if math.isnan(gap.low):
        return f"There are too few texts to compare {better} and {worse}."
    if gap.low <= 0 <= gap.high:
        return f"{better} and {worse} do not differ significantly in error rate."
    if gap.value < 0:
        better, worse = worse, better
    if math.isnan(ratio.value) or math.isnan(ratio.low):
        word = ""
    else:
        near = [
            min(_RATIO_WORDS, key=lambda known: abs(math.log(known[0] / max(end, 1e-9))))
            for end in (ratio.low, ratio.high)
        ]
        word = near[0][1] if near[0] == near[1] and ratio.low > 0.2 and ratio.high < 0.87 else ""
    return (
        f"{better} has {word} the error rate of {worse}." if word else f"{better} has a lower error rate than {worse}."
    )


def _system_title(name: str) -> str:
    return "Human text" if name == HUMAN_SYSTEM else "All texts" if name == ALL_TEXTS_GROUP else name


def describe_agreement(alpha: Estimate | None) -> str:
    """Describe inter-annotator agreement in one sentence with Krippendorff's alpha."""
    if alpha is None or math.isnan(alpha.value):
        return f"Inter-annotator agreement is not available{f': {alpha.why}' if alpha and alpha.why else ''}."
    word = next(word for bound, word in _AGREEMENT_WORDS if alpha.value < bound)
    return f"Inter-annotator agreement is {word} (Krippendorff’s α = {alpha.short(2).replace('-', '−')})."


def robustness_statement(gap: Estimate, resampled: float, left_out: Sequence[tuple[str, float]]) -> HeadlineStatement:
    """State how robust the difference is to resampling texts and to leaving out each annotator."""
    reversing = [name for name, value in left_out if value * gap.value <= 0]
    if len(left_out) < 2:
        without_one = ""
    elif reversing:
        others = f" (or {format_count_with_noun(len(reversing) - 1, 'other')})" if len(reversing) > 1 else ""
        without_one = f", but not if annotator {reversing[0]}{others} is left out"
    else:
        without_one = ", and without any one annotator"
    return HeadlineStatement(
        "Robustness", f"The difference has the same sign in {resampled:.0%} of resamples of the texts{without_one}."
    )


def exception_statement(by_label: Mapping[str, Estimate], digits: int = 2) -> HeadlineStatement:
    """State for which error types the difference is not significant or reversed."""
    known = {name: gap for name, gap in by_label.items() if not math.isnan(gap.low)}
    exceptions = {name: gap for name, gap in known.items() if gap.low <= 0}
    if not exceptions:
        words = "significant for every error type" if known else "not available by error type"
        return HeadlineStatement("Error types", f"The difference is {words}.")
    name, gap = min(exceptions.items(), key=lambda item: item[1].value)
    shown = f"{gap.value:.{digits}f} [{gap.low:.{digits}f}, {gap.high:.{digits}f}]".replace("-", "−")
    others = format_count_with_noun(len(exceptions) - 1, "other error type") if len(exceptions) > 1 else ""
    if gap.high < 0:
        more = f", and reversed or not significant for {others}" if others else ""
        return HeadlineStatement("Error types", f"The difference is reversed for {name} ({shown}){more}.")
    more = f" and {others}" if others else ""
    return HeadlineStatement("Error types", f"The difference is not significant for {name} ({shown}){more}.")


def build_headline(
    systems: Mapping[str, Estimate], pair: tuple[str, str] | None, gap: Estimate | None, ratio: Estimate | None,
    alpha: Estimate | None, measure: str, statements: Sequence[HeadlineStatement], command: str, scale: Axis,
    with_all: Estimate | None = None,
) -> ReportHeadline:  # fmt: skip
    """Build the headline and its figure: the difference against "no difference".

    `with_all` is the difference with excluded annotations, drawn as an open dot.
    """
    parts, figure = [], None
    if pair and gap:
        better, worse = (scale.format_value(systems[name].value) for name in pair)
        ends = f" [{scale.format_value(gap.low)}, {scale.format_value(gap.high)}]" if not math.isnan(gap.low) else ""
        difference = f"a difference of {scale.format_value(gap.value)}{ends}"
        parts.append(f"{better} compared with {worse} {measure}, {difference}.")
    elif systems:
        name, estimate = next(iter(systems.items()))
        parts.append(f"{_system_title(name)}: {scale.format_value(estimate.value)} {measure}.")
    if HUMAN_SYSTEM in systems and HUMAN_SYSTEM not in (pair or ()):
        human = systems[HUMAN_SYSTEM]
        value, low, high = map(scale.format_value, (human.value, human.low, human.high))
        parts.append(f"Human text has {value} [{low}, {high}].")
    parts.append(describe_agreement(alpha))
    if pair and gap and not math.isnan(gap.value):
        rows = [DotRow(pair[0], gap)]
        caption = f"Reduction in {measure} compared with {_system_title(pair[1])}"
        if with_all is not None and not math.isnan(with_all.value):
            rows.append(DotRow("including excluded annotations", with_all, open=True))
            caption += "; open dot: including excluded annotations"
        axis = replace(build_axis([row.estimate for row in rows]), reference=0.0, reference_name="no difference")
        table = tuple(
            {"better": row.name, "worse": pair[1], "difference": e.value, "low": e.low, "high": e.high}
            for row in rows
            if (e := row.estimate)
        )
        figure = DotFigure(
            "answer", "Difference", caption, table, str(gap.signature), command, rows=tuple(rows), axis=axis
        )
    return ReportHeadline(headline_sentence(pair, systems, gap, ratio), " ".join(parts), figure, tuple(statements))
