"""Spans of one category that overlap, widened to their union: so that small differences at the edges do not count."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from finecomb.statistics.selection.view import View


def widen_overlapping_spans(view: View) -> View:
    """A view in which every span reaches as far as the spans of its category that overlap it, directly or in a chain.

    Goyal et al. (2022), section 4.4. Spans that only touch stay apart, and omissions stay as they are. For statistics
    only: the quotes of the marks do not change.
    """
    apart = ["document", "part", "label"]
    ordered = view.study.spans.with_row_index("at").sort(*apart, "start", "end", "at")
    reach = pl.col("end").cum_max().shift(1).over(*apart)
    chained = ordered.with_columns(chain=(pl.col("start") >= reach).fill_null(value=True).cum_sum())
    solid = pl.col("end") > pl.col("start")
    first, last = pl.col("start").min().over("chain"), pl.col("end").max().over("chain")
    wide = chained.with_columns(
        start=pl.when(solid).then(first).otherwise("start"), end=pl.when(solid).then(last).otherwise("end")
    )
    spans = wide.sort("at").group_by("mark", maintain_order=True).agg(wide=pl.struct("part", "start", "end"))
    joined = view.study.marks.join(spans, left_on="id", right_on="mark", how="left", maintain_order="left")
    marks = joined.with_columns(spans=pl.coalesce("wide", "spans")).drop("wide")
    return replace(view, study=replace(view.study, marks=marks), fields={**view.fields, "boundaries": "union"})
