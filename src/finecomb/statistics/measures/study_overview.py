"""Overview of a study: totals, and counts by label, group and annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from finecomb.core.study import Study, document_meta_names
from finecomb.statistics.measures.study_counts import counts_by_group, mark_counts_by_label
from finecomb.statistics.measures.text_sizes import (
    annotation_work_summary,
    text_size_summary,
    uncounted_annotation_counts,
)


@dataclass(frozen=True, slots=True)
class OverviewTable:
    """Table of counts in the overview."""

    name: str
    """Identifier, e.g. `labels`."""
    title: str
    """Heading."""
    frame: pl.DataFrame


@dataclass(frozen=True, slots=True)
class StudyOverview:
    """Totals of a study, with tables of counts."""

    totals: dict[str, int]
    tables: tuple[OverviewTable, ...]


def study_overview(study: Study, by: Sequence[str] = ()) -> StudyOverview:
    """Return totals and counts of submitted work, split by `by`. If `by` is empty, split by model if texts have one.

    The single name `none` turns splitting off.
    """
    columns = list(by) or (["model"] if "model" in document_meta_names(study) else [])
    columns = [] if columns == ["none"] else columns
    work, nothing = study.submitted_work(), pl.DataFrame()
    marks = work.scan_marks().group_by("annotation").agg(count=pl.len(), lost=(pl.col("spans").list.len() == 0).sum())
    sums = marks.select(pl.len().alias("annotations"), pl.col("count", "lost").sum())
    marked = sums.collect(engine="streaming").row(0, named=True)
    totals = {
        "documents": len(work.documents),
        "annotators": len(work.annotators),
        "annotations": len(work.annotations),
        "annotations without marks": len(work.annotations) - marked["annotations"],
        "marks": marked["count"],
        "marks not placed in the text": marked["lost"],
        "units": len(work.units),
    } | {name: count for name, count in uncounted_annotation_counts(study).items() if count}
    tables = (
        OverviewTable("labels", "Marks by label", mark_counts_by_label(work, columns[:1])),
        OverviewTable("groups", f"By {', '.join(columns)}", counts_by_group(work, columns) if columns else nothing),
        OverviewTable("texts", "Texts", text_size_summary(work, columns)),
        OverviewTable("work", "Work", annotation_work_summary(work, columns) if len(work.annotations) else nothing),
        OverviewTable(
            "annotators",
            "By annotator",
            nothing if "annotator" in columns else counts_by_group(work, ["annotator", "kind"]),
        ),
    )
    return StudyOverview(totals, tables)
