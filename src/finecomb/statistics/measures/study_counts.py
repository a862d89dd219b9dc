"""Counts of documents, annotations, annotators and marks in a study, by label, annotator and document meta."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finecomb.core.frames import sort_by_groups
from finecomb.core.study import Study, annotation_rows_with_groups


def counts_by_group(study: Study, by: Sequence[str] = ("model",)) -> pl.DataFrame:
    """Count documents, annotations, marks and marks per annotation by the `by` columns, as in Scarecrow's Table 6."""
    rows = annotation_rows_with_groups(study, by)
    per = study.scan_marks().group_by("annotation").agg(marks=pl.len()).collect(engine="streaming")
    joined = rows.join(per, on="annotation", how="left").with_columns(pl.col("marks").fill_null(0))
    table = joined.group_by(list(by), maintain_order=True).agg(
        pl.col("document").n_unique().alias("documents"),
        pl.len().alias("annotations"),
        pl.col("marks").sum(),
        pl.col("marks").mean().alias("marks per annotation"),
    )
    return sort_by_groups(table, list(by))


def mark_counts_by_label(study: Study, by: Sequence[str] = ()) -> pl.DataFrame:
    """Count marks by label (rows, in protocol order) and by the `by` columns; unused labels count 0."""
    order = [label.name for protocol in study.protocols.values() for label in protocol.labels]
    groups = annotation_rows_with_groups(study, by).select("annotation", *by)
    rows = study.scan_marks().select("annotation", "label").join(groups.lazy(), on="annotation", how="left")
    counts = rows.group_by("label", *by).agg(n=pl.len()).collect(engine="streaming")
    used_labels = set(counts["label"])
    order += sorted(label for label in used_labels if label is not None and label not in order)
    counts = counts.with_columns(pl.col("label").fill_null("no type"))
    table = pl.DataFrame(
        {"label": [*dict.fromkeys(order), *(["no type"] if None in used_labels else [])]}, schema={"label": pl.String}
    )
    table = table.join(
        counts.group_by("label").agg(pl.col("n").sum().alias("marks")), on="label", how="left", maintain_order="left"
    )
    for column in by:
        wide = counts.group_by("label", column).agg(pl.col("n").sum().alias("len"))
        unmarked = groups.select(column).join(wide, on=column, how="anti", nulls_equal=True).unique()
        wide = pl.concat([wide, unmarked], how="diagonal")  # a group without marks has a column of zeros
        wide = sort_by_groups(wide, [column]).pivot(column, index="label", values="len")
        table = table.join(wide, on="label", how="left", maintain_order="left")
    return table.with_columns(pl.exclude("label").fill_null(0))
