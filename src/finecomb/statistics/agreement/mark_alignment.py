"""Alignment of marks: clusters of marks by different annotators that refer to the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.study import Study
from finecomb.statistics.agreement.alternative_marks import add_null_reading_of_column, merge_alternative_marks
from finecomb.statistics.agreement.gamma.best_alignment import best_alignment
from finecomb.statistics.agreement.gamma.continuum import build_document_continua
from finecomb.statistics.inference.resampling import Floats, Ints
from finecomb.statistics.measures.span_pairs import (
    OverlapPairs,
    SpanArrays,
    mark_pairs_from_span_pairs,
    overlapping_span_pairs,
)
from finecomb.statistics.selection.view import View

Alignment = Literal["item", "overlap", "overlap-label", "gamma"]
ALIGNMENT_COLUMNS = ["cluster", "document", "annotation", "annotator", "mark", "label", "start", "end", "reading_of"]


def align_marks(view: View, by: Alignment | str = "item") -> pl.DataFrame:
    """Cluster the marks that refer to the same error, and return one row per mark with `ALIGNMENT_COLUMNS`.

    Rows are in text order, and clusters are numbered from 0 in the order of their first marks. `start` and `end`
    enclose the mark's spans on the text and are null if it has none. Marks on a prompt or source are aligned in the
    same way. `reading_of` names the mark that lists this mark as part of an alternative. The two marks share a cluster
    and a label.

    - `item`: by the marks' `item`, as given in the source; a mark without one is a cluster of its own.
    - `overlap`: pairs of marks by different annotators that share a character, most similar first. Every two marks of a
      cluster share a character, so a long mark does not connect two short ones.
    - `overlap-label`: by overlap, but only between marks with the same label.
    - `gamma`: the alignment of lowest disorder, see `finecomb.statistics.agreement.gamma`. Marks on a prompt or source
      are aligned by overlap, and marks without a span are clusters of their own.
    """
    if by not in CLUSTER_FUNCTION_BY_ALIGNMENT:
        raise FinecombError(f"unknown alignment {by!r}{did_you_mean(by, CLUSTER_FUNCTION_BY_ALIGNMENT)}")
    rows = _marks_in_text_order(view.study)
    rows = rows.with_columns(cluster=pl.Series(CLUSTER_FUNCTION_BY_ALIGNMENT[by](rows, view.study), dtype=pl.Int64))
    rows = merge_alternative_marks(rows, view.study) if by != "item" else add_null_reading_of_column(rows)
    first = rows["cluster"].unique(maintain_order=True)
    number = pl.col("cluster").replace_strict(first, pl.int_range(len(first), eager=True), return_dtype=pl.Int64)
    return rows.with_columns(number if len(first) else pl.col("cluster")).select(ALIGNMENT_COLUMNS)


def _marks_in_text_order(study: Study) -> pl.DataFrame:
    """Return one row per mark in text order; marks without a location come last in their document."""
    edges = (
        study.spans.filter(pl.col("part") == "text").group_by("mark").agg(pl.col("start").min(), pl.col("end").max())
    )
    order = study.documents.select(document="id").with_row_index("place")
    rows = study.marks.select("document", "annotation", "annotator", "label", "item", mark="id")
    rows = rows.join(edges, on="mark", how="left").join(order, on="document", how="left")
    return rows.sort("place", "start", "end", "annotator", "mark", nulls_last=True)


def _cluster_by_item(rows: pl.DataFrame, study: Study) -> Ints:
    if len(rows) and rows["item"].null_count() == len(rows):
        fix = param("align", "overlap")
        raise ParameterError(f"no mark has an `item` to align by; use {fix}", parameter="align")
    own_key = pl.concat_str(pl.lit("\0"), "mark")
    keys = rows.select(key=pl.concat_str("document", pl.lit("\0"), pl.coalesce("item", own_key)))["key"]
    return keys.rank("dense").to_numpy().astype(np.int64)


def _cluster_by_gamma(rows: pl.DataFrame, study: Study) -> Ints:
    """Cluster marks by their gamma alignment, or by the best alignment found if the work limit is reached."""
    cluster = np.arange(len(rows))
    position_by_mark = {mark: positions for positions, mark in enumerate(rows["mark"])}
    for text in build_document_continua(study, tuple(rows["label"].drop_nulls().unique().sort())):
        if text.continuum.annotators > 1 and len(text.marks):
            positions = np.array([position_by_mark[mark] for mark in text.marks])
            cluster[positions] = positions[best_alignment(text.continuum).cluster_first_marks]
    off_text = rows["start"].is_null().to_numpy()
    if off_text.any():
        first, second, likeness = overlapping_mark_pairs(rows, study)
        is_pair = off_text[first] & off_text[second]
        linked = cluster_pairs_by_complete_linkage(rows, first[is_pair], second[is_pair], likeness[is_pair])
        cluster[off_text] = linked[off_text]
    return cluster


def _cluster_greedily_by_label_overlap(rows: pl.DataFrame, study: Study) -> Ints:
    first, second, likeness = overlapping_mark_pairs(rows, study)
    labels = rows["label"].rank("dense").fill_null(0).to_numpy()
    same_label = labels[first] == labels[second]
    return cluster_pairs_by_complete_linkage(rows, first[same_label], second[same_label], likeness[same_label])


CLUSTER_FUNCTION_BY_ALIGNMENT: dict[str, Callable[[pl.DataFrame, Study], Ints]] = {
    "item": _cluster_by_item,
    "overlap": lambda rows, study: cluster_pairs_by_complete_linkage(rows, *overlapping_mark_pairs(rows, study)),
    "overlap-label": _cluster_greedily_by_label_overlap,
    "gamma": _cluster_by_gamma,
}


def overlapping_mark_pairs(rows: pl.DataFrame, study: Study) -> tuple[Ints, Ints, Floats]:
    """Return overlapping pairs of marks by different annotators, as positions in `rows`, with their similarity.

    The similarity is 2 x shared / (length + length), with shared characters summed over pairs of spans. Omissions at
    the same position have similarity 1.
    """
    spans = study.spans.join(rows.select("mark").with_row_index("at"), on="mark")
    # Spans get offsets in the concatenated texts and contexts, so that all documents are compared at once.
    parts = spans.group_by("document", "part").agg(length=pl.col("end").max() + 1)
    order = study.documents.select(document="id").with_row_index("place")
    parts = parts.join(order, on="document").sort("place", "part")
    origins = parts.select("document", "part", origin=pl.col("length").cum_sum() - pl.col("length"))
    spans = spans.join(origins, on=["document", "part"])
    columns = spans.select(pl.col("start") + pl.col("origin"), pl.col("end") + pl.col("origin"), "at")
    line = SpanArrays(*(column.to_numpy().astype(np.int64) for column in columns))
    pairs = overlapping_span_pairs(line, line)
    people = rows["annotator"].rank("dense").to_numpy()
    empty = line.start == line.end
    marks = line.owner[pairs.one], line.owner[pairs.other]
    candidates = (marks[0] < marks[1]) & (people[marks[0]] != people[marks[1]])
    candidates &= empty[pairs.one] == empty[pairs.other]  # an omission is similar only to another omission
    low, high, shared = mark_pairs_from_span_pairs(OverlapPairs(*(column[candidates] for column in pairs)), line, line)
    lengths = np.bincount(line.owner, line.end - line.start, len(rows))
    total_lengths = lengths[low] + lengths[high]
    return low, high, np.where(total_lengths > 0, 2 * shared / np.where(total_lengths > 0, total_lengths, 1.0), 1.0)


def cluster_pairs_by_complete_linkage(rows: pl.DataFrame, one: Ints, other: Ints, likeness: Floats) -> Ints:
    """Cluster marks by merging the most similar pairs first, such that any two marks of a cluster form a pair.

    Ties are resolved in text order. As a result, no cluster has two marks of one annotator, and no mark connects two
    others that share no character. The loop over pairs is sequential, since each step depends on the steps before it.
    """
    size = len(rows)
    pairs = set((one * size + other).tolist())
    cluster = list(range(size))
    members = [[mark] for mark in cluster]
    order = np.lexsort((other, one, -likeness))
    for a, b in zip(one[order].tolist(), other[order].tolist(), strict=True):
        into, absorbed = cluster[a], cluster[b]
        links = (min(c, d) * size + max(c, d) for c in members[into] for d in members[absorbed])
        if into == absorbed or not all(link in pairs for link in links):
            continue
        for mark in members[absorbed]:
            cluster[mark] = into
        members[into] += members[absorbed]
    return np.array(cluster, dtype=np.int64)
