"""Sizes of texts in words, sentences and segments, and annotation effort in votes and seconds."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finecomb.core.frames import meta_entry, sort_by_groups
from finecomb.core.study import Study, annotation_rows_with_groups, document_meta_names
from finecomb.statistics.measures.unit_grid import units_per_document, words_per_document


def text_size_summary(study: Study, by: Sequence[str] = (), tokens: str = "words") -> pl.DataFrame:
    """Summarise documents by meta: number of documents, words (total, mean, minimum, maximum), sentences, segments.

    As in Goyal et al. (2022), Table 2, and Thomson and Reiter (2020), section 4.1. Punctuation is not a word. Segments
    are those stored with the documents. Documents without segments are divided into groups of as many sentences as the
    protocol specifies.
    """
    names = [name for name in by if name in document_meta_names(study)]
    sizes = study.documents.select("id", *[meta_entry(name) for name in names]).with_columns(
        words=pl.Series(words_per_document(study, tokens), dtype=pl.Int64),
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


def annotation_work_summary(study: Study, by: Sequence[str] = ()) -> pl.DataFrame:
    """Summarise annotations, annotators, marks, votes and median seconds by the `by` columns.

    A mark has one vote, and a pooled mark has one vote per annotator that it represents. Seconds are active time if it
    was recorded, otherwise the time from opening to submission.
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
    """Count the annotations that statistics ignore: exercises, drafts and excluded annotations."""
    exercises = study.annotations.filter(pl.col("phase") != "work")
    work = study.annotations.filter(pl.col("phase") == "work")
    drafts = work.filter(pl.col("status") == "draft")
    counts = {"exercises": len(exercises), "drafts": len(drafts)}
    return counts | {"excluded annotations": len(work) - len(drafts) - len(study.submitted_work().annotations)}
