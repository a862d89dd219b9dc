"""The statistic `late-marks`: share of marks that start in the second half of their text, as a mean over texts."""

import numpy as np
import polars as pl

from finecomb import View
from finecomb.core.results import Finding, Signature
from finecomb.statistics.inference.resampling import estimate_from_sums, ratio_or_nan
from finecomb.statistics.measures.annotation_measures import IntervalOptions
from finecomb.statistics.registry import RegisteredStatistic


def late_marks(view: View, options: IntervalOptions) -> list[Finding]:
    """Estimate the mean share of late marks per text; texts without marks have no share."""
    findings = []
    for group, part in view.split_by_columns(options.by):
        middle = part.study.documents.select(document="id", middle=pl.col("text").str.len_chars() / 2)
        spans = part.study.spans.filter(pl.col("part") == "text")
        starts = spans.group_by("document", "mark").agg(pl.col("start").min()).join(middle, on="document")
        late = starts.group_by("document").agg(share=(pl.col("start") >= pl.col("middle")).mean()).sort("document")
        sums = np.column_stack([late["share"].to_numpy(), np.ones(len(late))])
        signature = Signature.from_fields(
            statistic="late-marks", **part.fields, documents=len(late), draws=options.draws, seed=options.seed
        )
        estimate = estimate_from_sums(
            sums,
            lambda sums: ratio_or_nan(sums[:, 0], sums[:, 1]),
            options.draws,
            options.seed,
            signature,
            why="no text has a mark",
        )
        findings.append(Finding({"measure": "late-marks", "label": "any", **group}, estimate))
    return findings


LATE_MARKS = RegisteredStatistic(
    late_marks, IntervalOptions, "share of marks in the second half of a text", "https://example.org/late-marks"
)
