"""How long the texts of a study are, and what the work on them took: words, sentences, segments, votes and seconds."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finecomb.core.frames import meta_entry
from finecomb.core.study import Study
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups, document_meta_names, sort_by_groups
from finecomb.statistics.measures.unit_grid import units_per_document


def text_size_summary(study: Study, by: Sequence[str] = (), tokens: str = "words") -> pl.DataFrame:
    """Documents, words (all, mean, fewest, most), sentences and segments of the texts, by document meta.

    The shape of Goyal et al. (2022), Table 2, and of Thomson and Reiter (2020), section 4.1. Segments are those of the
    documents, else as many sentences together as the protocol asks for.
    """
    names = [name for name in by if name in document_meta_names(study)]
    sizes = study.documents.select("id", *[meta_entry(name) for name in names]).with_columns(
        words=pl.Series(units_per_document(study, "token", tokens), dtype=pl.Int64),
        sentences=pl.Series(units_per_document(study, "sentence"), dtype=pl.Int64),
        segments=pl.Series(units_per_document(study, "segment"), dtype=pl.Int64),
    )
    summary = [
        pl.len().alias("documents"),
        pl.col("words").sum(),
        pl.col("words").mean().alias("words per text"),
        pl.col("words").min().alias("fewest"),
        pl.col("words").max().alias("most"),
        pl.col("sentences").sum(),
        pl.col("segments").sum(),
    ]
    if not names:
        return sizes.select(summary)
    return sort_by_groups(sizes.group_by(names, maintain_order=True).agg(summary), names)


def work_summary(study: Study, by: Sequence[str] = ()) -> pl.DataFrame:
    """Annotations, readers, marks, votes and median seconds of the work on a study, by the `by` columns.

    Votes are how many readers are behind the marks: one for each mark, more for pooled ones. Seconds are time at the
    keyboard where it is known, else from opening to handing in.
    """
    votes = pl.col("votes").fill_null(1).sum()
    marks = study.scan_marks().group_by("annotation").agg(votes, marks=pl.len()).collect(engine="streaming")
    seconds = study.annotations.select(
        annotation="id", seconds=pl.coalesce("active_seconds", "seconds"), readers=pl.col("readers").fill_null(1)
    )
    rows = (
        annotation_rows_with_groups(study, by)
        .join(seconds, on="annotation", how="left")
        .join(marks, on="annotation", how="left")
    )
    summary = [
        pl.len().alias("annotations"),
        pl.col("readers").sum().alias("readings"),
        pl.col("marks").fill_null(0).sum(),
        pl.col("votes").fill_null(0).sum(),
        pl.col("seconds").median().alias("median seconds"),
    ]
    if not by:
        return rows.select(summary)
    return sort_by_groups(rows.group_by(list(by), maintain_order=True).agg(summary), list(by))


def uncounted_annotation_counts(study: Study) -> dict[str, int]:
    """How many annotations are no work that counts: exercises, drafts, and what was excluded."""
    exercises = study.annotations.filter(pl.col("phase") != "work")
    work = study.annotations.filter(pl.col("phase") == "work")
    drafts = work.filter(pl.col("status") == "draft")
    counts = {"exercises": len(exercises), "drafts": len(drafts)}
    return counts | {"excluded annotations": len(work) - len(drafts) - len(study.submitted_work().annotations)}
