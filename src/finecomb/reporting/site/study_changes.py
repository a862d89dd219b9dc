"""Changes in error rates between two studies, rounds or versions, by system and label, with corrected p-values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.reporting.figures.figure_model import DotFigure, DotRow, build_axis
from finecomb.reporting.site.report_content import RATE_UNIT, ReportSource, text_rates
from finecomb.statistics.inference.permutation_tests import (
    MeanDifference,
    adjust_p_values,
    paired_permutation_test,
    unpaired_permutation_test,
)
from finecomb.statistics.selection.view import ANY_LABEL


def estimate_changes(before: ReportSource, after: ReportSource) -> list[Finding]:
    """Estimate the change in marks per 100 words for all texts, each system and each label.

    Tests are paired if both studies have the same texts. Columns: system, label, before, after, p, p_adjusted (Holm
    over all rows) and texts.
    """
    if before.view.study.annotations.is_empty() or after.view.study.annotations.is_empty():
        raise FinecombError(f"{param('compare')} requires submitted annotations in both studies")
    rng = np.random.default_rng(after.seed)
    labels = [label.name for label in after.view.protocol.labels] if after.view.protocol else []
    rows: list[tuple[dict[str, object], MeanDifference]] = []
    for label in [ANY_LABEL, *labels]:
        parts = (before, after) if label == ANY_LABEL else (before.filter_label(label), after.filter_label(label))
        first, second = map(text_rates, parts)
        systems = [name for name in dict.fromkeys(second["system"]) if name in set(first["system"])]
        for system in ["", *(systems if len(systems) > 1 else [])]:
            old, new = ((frame.filter(pl.col("system") == system) if system else frame) for frame in (first, second))
            means = [float(frame["value"].to_numpy().mean()) if len(frame) else math.nan for frame in (old, new)]
            both = new.join(old, on="document", suffix="_before")
            if len(both) == len(old) == len(new):
                values = both["value"].to_numpy(), both["value_before"].to_numpy()
                difference = paired_permutation_test(*values, after.draws, rng)
            else:
                values = new["value"].to_numpy(), old["value"].to_numpy()
                difference = unpaired_permutation_test(*values, after.draws, rng)
            columns = {"system": system or "all texts", "label": label, "before": means[0], "after": means[1]}
            rows.append(({**columns, "texts": len(new)}, difference))
    signature = Signature.from_fields(
        statistic=f"change in {RATE_UNIT}", correction="holm", draws=after.draws, seed=after.seed
    )
    why = "a study has fewer than 2 texts"
    return [
        Finding(
            {**columns, "p": test.p, "p_adjusted": float(p)},
            Estimate(test.difference, test.low, test.high, signature, why if math.isnan(test.difference) else ""),
        )
        for (columns, test), p in zip(rows, adjust_p_values(np.array([test.p for _, test in rows])), strict=True)
    ]


def change_figure(findings: list[Finding], names: tuple[str, str]) -> DotFigure:
    """Draw the changes as dots with a line at "no change", all labels together first."""
    rows = []
    for finding in findings:
        if not math.isnan(finding.estimate.value):
            p = float(str(finding.columns["p_adjusted"]))
            note = "p unknown" if math.isnan(p) else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
            rows.append(DotRow(f"{finding.columns['system']}, {finding.columns['label']}", finding.estimate, note))
    scale = replace(build_axis([row.estimate for row in rows]), reference=0.0, reference_name="no change")
    table = tuple(
        {**f.columns, "change": f.estimate.value, "low": f.estimate.low, "high": f.estimate.high} for f in findings
    )
    caption = (
        f"{RATE_UNIT.capitalize()} in {names[1]} minus those in {names[0]}, with 95% intervals. "
        "P-values are Holm-corrected over all rows."
    )
    signature = str(findings[0].estimate.signature)
    return DotFigure("changes", "Changes between studies", caption, table, signature, rows=tuple(rows), axis=scale)
