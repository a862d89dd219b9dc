"""Overview of a study: its totals, and counts by label, group and annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from finecomb.core.study import Study
from finecomb.statistics.measures.study_counts import (
    counts_by_group,
    document_meta_names,
    mark_counts_by_label,
    study_totals,
)
from finecomb.statistics.measures.text_sizes import text_size_summary, uncounted_annotation_counts, work_summary


@dataclass(frozen=True, slots=True)
class OverviewTable:
    """One table of an overview."""

    name: str
    """For programs, e.g. `labels`."""
    title: str
    """For people."""
    frame: pl.DataFrame


@dataclass(frozen=True, slots=True)
class StudyOverview:
    """Totals of a study, and tables of counts."""

    totals: dict[str, int]
    tables: tuple[OverviewTable, ...]


def study_overview(study: Study, by: Sequence[str] = ()) -> StudyOverview:
    """Return totals and counts of the submitted work; `by` splits it, by model where texts have one and `by` is empty.

    `none` as the only name splits nothing.
    """
    columns = list(by) or (["model"] if "model" in document_meta_names(study) else [])
    columns = [] if columns == ["none"] else columns
    work, nothing = study.submitted_work(), pl.DataFrame()
    totals = study_totals(work) | {name: count for name, count in uncounted_annotation_counts(study).items() if count}
    tables = (
        OverviewTable("labels", "Marks by label", mark_counts_by_label(work, columns[:1])),
        OverviewTable("groups", f"By {', '.join(columns)}", counts_by_group(work, columns) if columns else nothing),
        OverviewTable("texts", "Texts", text_size_summary(work, columns)),
        OverviewTable("work", "Work", work_summary(work, columns) if len(work.annotations) else nothing),
        OverviewTable(
            "annotators",
            "By annotator",
            nothing if "annotator" in columns else counts_by_group(work, ["annotator", "kind"]),
        ),
    )
    return StudyOverview(totals, tables)
