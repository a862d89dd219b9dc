"""Widening of overlapping spans to their union, so that small boundary differences do not count as disagreement."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from finecomb.statistics.selection.view import View


def widen_overlapping_spans(view: View) -> View:
    """Widen every span to the union of the spans of its category that overlap it, directly or through other spans.

    Goyal et al. (2022), section 4.4. Spans that only touch are not merged, and omissions do not change. Use the result
    for statistics only: the marks keep their quotes, which no longer match the spans.
    """
    keys = ["document", "part", "label"]
    ordered = view.study.spans.with_row_index("at").sort(*keys, "start", "end", "at")
    reach = pl.col("end").cum_max().shift(1).over(*keys)
    chained = ordered.with_columns(chain=(pl.col("start") >= reach).fill_null(value=True).cum_sum())
    has_length = pl.col("end") > pl.col("start")
    first, last = pl.col("start").min().over("chain"), pl.col("end").max().over("chain")
    wide = chained.with_columns(
        start=pl.when(has_length).then(first).otherwise("start"), end=pl.when(has_length).then(last).otherwise("end")
    )
    spans = wide.sort("at").group_by("mark", maintain_order=True).agg(wide=pl.struct("part", "start", "end"))
    joined = view.study.marks.join(spans, left_on="id", right_on="mark", how="left", maintain_order="left")
    marks = joined.with_columns(spans=pl.coalesce("wide", "spans")).drop("wide")
    return replace(view, study=replace(view.study, marks=marks), fields={**view.fields, "boundaries": "union"})
