"""Span coverage: the share of a text's tokens that its marks cover."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from finecomb.core.estimate import Estimate, Signature
from finecomb.core.study import Study
from finecomb.measure.bootstrap import Sums, interval, ratio
from finecomb.measure.grid import Grid, lay, merged, placed
from finecomb.measure.view import View, view

Overlap = Literal["add", "union"]


def covered(study: Study, grid: Grid, overlap: Overlap = "add") -> pl.DataFrame:
    """One row per annotation: annotation, document, covered, units. Annotations without marks count 0.

    `add` counts a unit once per mark (Scarecrow), `union` once; the spans of one mark never count a unit twice.
    """
    owner = ["annotation", "mark"] if overlap == "add" else ["annotation"]
    sums = (
        merged(placed(study, grid), owner).group_by("annotation").agg(covered=(pl.col("last") - pl.col("first")).sum())
    )
    units = pl.DataFrame(
        {"document": grid.documents, "units": grid.sizes}, schema={"document": pl.String, "units": pl.Int64}
    )
    read = study.annotations.select(annotation="id", document="document")
    joined = read.join(sums, on="annotation", how="left", maintain_order="left")
    return joined.join(units, on="document", how="left", maintain_order="left").with_columns(
        pl.col("covered").fill_null(0)
    )


def coverage(
    study: Study | View,
    label: str | None = None,
    tokens: str = "words",
    overlap: Overlap = "add",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Tokens covered / tokens of each annotation, averaged over annotations, with an interval over documents.

    Dou et al. (2022), section 6. Texts without tokens are left out. NaN when nobody has read anything.
    """
    seen = study if isinstance(study, View) else view(study)
    chosen = seen if label is None else _only(seen, label)
    rows = covered(chosen.study, lay(chosen.study, "token", tokens), overlap).filter(pl.col("units") > 0)
    per = rows.group_by("document", maintain_order=True).agg((pl.col("covered") / pl.col("units")).sum(), n=pl.len())
    signature = Signature.of(
        statistic="coverage",
        label=label or "any",
        overlap=overlap,
        tokens=tokens,
        **seen.fields,
        annotations=len(rows),
        documents=len(per),
        draws=draws,
        seed=seed,
    )
    if rows.is_empty():
        return Estimate(math.nan, math.nan, math.nan, signature, "no annotations")
    sums = per.select("covered", pl.col("n").cast(pl.Float64)).to_numpy()
    low, high = interval(sums, _mean, draws, np.random.default_rng(seed))
    return Estimate(float(_mean(sums.sum(axis=0)[None])[0]), low, high, signature)


def _only(seen: View, label: str) -> View:
    """The same annotations with only the marks of one category."""
    return replace(seen, study=replace(seen.study, marks=seen.study.marks.filter(pl.col("label") == label)))


def _mean(sums: Sums) -> Sums:
    return ratio(sums[:, 0], sums[:, 1])
