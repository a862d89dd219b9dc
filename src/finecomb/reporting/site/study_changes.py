"""What changed between two studies, rounds or versions: every system and kind of error, with corrected p-values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.reporting.figures.figure_model import DotFigure, DotRow, build_axis
from finecomb.reporting.site.report_content import RATE_UNIT, ReportSource, text_rates
from finecomb.statistics.inference.permutation_tests import (
    MeanDifference,
    adjust_p_values,
    paired_permutation_test,
    unpaired_permutation_test,
)
from finecomb.statistics.selection.view import ANY


def estimate_changes(before: ReportSource, after: ReportSource) -> list[Finding]:
    """Marks per 100 words after minus before, for all texts, each system and each label; paired where texts are shared.

    Columns: system, label, before, after, p, p_adjusted (Holm over all rows) and texts.
    """
    if before.view.study.annotations.is_empty() or after.view.study.annotations.is_empty():
        raise FinecombError(f"{param('compare')}: one of the two studies has no annotations to compare")
    rng = np.random.default_rng(after.seed)
    rows = list(_before_after_rate_rows(before, after, rng))
    corrected = adjust_p_values(np.array([difference.p for _, difference in rows]))
    return [
        Finding({**columns, "p": difference.p, "p_adjusted": float(p)}, _difference_estimate(difference, after))
        for (columns, difference), p in zip(rows, corrected, strict=True)
    ]


def _before_after_rate_rows(
    before: ReportSource, after: ReportSource, rng: np.random.Generator
) -> Iterator[tuple[dict[str, object], MeanDifference]]:
    labels = [label.name for label in after.view.protocol.labels] if after.view.protocol else []
    for label in [ANY, *labels]:
        first, second = (text_rates(_filter_by_label(part, label)) for part in (before, after))
        systems = [name for name in dict.fromkeys(second["system"]) if name in set(first["system"])]
        for system in ["", *(systems if len(systems) > 1 else [])]:
            values = [_filter_by_system(frame, system) for frame in (first, second)]
            columns = {"system": system or "all texts", "label": label}
            means: dict[str, object] = {
                name: _mean_rate(frame) for name, frame in zip(("before", "after"), values, strict=True)
            }
            yield (
                {**columns, **means, "texts": len(values[1])},
                _test_difference(values[0], values[1], after.draws, rng),
            )


def _filter_by_label(part: ReportSource, label: str) -> ReportSource:
    if label == ANY:
        return part
    study = part.view.study
    marks = study.marks.filter(pl.col("label") == label)
    return replace(part, view=replace(part.view, study=replace(study, marks=marks)))


def _filter_by_system(frame: pl.DataFrame, system: str) -> pl.DataFrame:
    return frame.filter(pl.col("system") == system) if system else frame


def _mean_rate(frame: pl.DataFrame) -> float:
    return float(frame["value"].to_numpy().mean()) if len(frame) else math.nan


def _test_difference(first: pl.DataFrame, second: pl.DataFrame, draws: int, rng: np.random.Generator) -> MeanDifference:
    """Paired by document where both studies have the same texts, else two groups."""
    both = second.join(first, on="document", suffix="_before")
    if len(both) == len(first) == len(second):
        return paired_permutation_test(both["value"].to_numpy(), both["value_before"].to_numpy(), draws, rng)
    return unpaired_permutation_test(second["value"].to_numpy(), first["value"].to_numpy(), draws, rng)


def _difference_estimate(difference: MeanDifference, after: ReportSource) -> Estimate:
    signature = Signature.from_fields(
        statistic=f"change in {RATE_UNIT}", correction="holm", draws=after.draws, seed=after.seed
    )
    why = "fewer than two texts in a study" if math.isnan(difference.difference) else ""
    return Estimate(difference.difference, difference.low, difference.high, signature, why)


def change_figure(findings: list[Finding], names: tuple[str, str]) -> DotFigure:
    """The changes as dots against "no change", all kinds together first."""
    rows = tuple(
        DotRow(f"{finding.columns['system']}, {finding.columns['label']}", finding.estimate, _format_p_value(finding))
        for finding in findings
        if not math.isnan(finding.estimate.value)
    )
    scale = replace(build_axis([row.estimate for row in rows]), reference=0.0, reference_name="no change")
    table = tuple(
        {**f.columns, "change": f.estimate.value, "low": f.estimate.low, "high": f.estimate.high} for f in findings
    )
    caption = (
        f"{RATE_UNIT.capitalize()} in {names[1]} minus {names[0]}, 95% interval; p corrected over all rows (Holm)."
    )
    signature = str(findings[0].estimate.signature)
    return DotFigure("changes", "What changed", caption, table, signature, rows=rows, axis=scale)


def _format_p_value(finding: Finding) -> str:
    p = float(str(finding.columns["p_adjusted"]))
    return "p unknown" if math.isnan(p) else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
