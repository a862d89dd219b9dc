"""Spans of one category that overlap, widened to their union: so that small differences at the edges do not count."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from finecomb.measure.view import View


def normalised(view: View) -> View:
    """A view in which every span reaches as far as the spans of its category that overlap it, directly or in a chain.

    Goyal et al. (2022), section 4.4. Spans that only touch stay apart; so do omissions. For statistics only: the
    quotes of the marks stay as they were.
    """
    spans = view.study.spans
    apart = ["document", "part", "label"]
    ordered = spans.with_row_index("at").sort(*apart, "start", "end", "at")
    reach = pl.col("end").cum_max().shift(1).over(*apart)
    ordered = ordered.with_columns(chain=(pl.col("start") >= reach).fill_null(value=True).cum_sum())
    wide = ordered.with_columns(
        start=pl.col("start").min().over("chain"), end=pl.col("end").max().over("chain")
    )
    kept = pl.when(ordered["end"] > ordered["start"])
    wide = wide.with_columns(
        start=kept.then(wide["start"]).otherwise(ordered["start"]), end=kept.then(wide["end"]).otherwise(ordered["end"])
    )
    lists = wide.sort("at").group_by("mark", maintain_order=True).agg(spans=pl.struct("part", "start", "end"))
    marks = view.study.marks.with_columns(row=pl.int_range(pl.len()))
    placed = marks.drop("spans").join(lists, left_on="id", right_on="mark", how="left").sort("row")
    placed = placed.with_columns(spans=pl.coalesce("spans", marks["spans"])).select(view.study.marks.columns)
    return replace(view, study=replace(view.study, marks=placed), fields={**view.fields, "boundaries": "union"})
