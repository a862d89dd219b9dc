"""Which marks of different annotators are the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.study import Study
from finecomb.statistics.agreement.alternative_marks import leave_alternatives_unmerged, merge_alternative_marks
from finecomb.statistics.agreement.coincidences import Floats, Ints
from finecomb.statistics.agreement.gamma.best_alignment import best_alignment
from finecomb.statistics.agreement.gamma.continuum import continua
from finecomb.statistics.measures.span_pairs import (
    OverlapPairs,
    SpanArrays,
    mark_pairs_from_span_pairs,
    overlapping_span_pairs,
)
from finecomb.statistics.selection.view import View

Alignment = Literal["item", "overlap", "overlap-label", "gamma"]
COLUMNS = ["cluster", "document", "annotation", "annotator", "mark", "label", "start", "end", "reading_of"]


def align(view: View, by: Alignment | str = "item") -> pl.DataFrame:
    """Clusters of marks that are one error: one row per mark, with the columns of `PAY_COLUMNS`.

    Rows are in text order; clusters are numbered from 0 in the order of their first marks. `start` and `end`
    enclose the mark's spans on the text and are null when it has none there. Marks on a prompt or a source are aligned
    like those on the text. `reading_of` is the mark whose alternative a mark belongs to: such marks are one error with
    it, and have its label here.

    - `item`: what the source says, by the marks' `item`; a mark without one stands alone.
    - `overlap`: pairs of marks by different annotators that share a character, most alike first, see `greedy`; in a
      cluster every mark shares a character with every other, so a long mark does not tie two short ones.
    - `overlap-label`: the same, but only marks of one label are joined.
    - `gamma`: the alignment of least disorder, see `finecomb.statistics.agreement.gamma`; marks beside the text by
      overlap, and
      marks without a place stand alone.
    """
    if by not in ALIGNMENTS:
        raise FinecombError(f"marks cannot be aligned by {by!r}{did_you_mean(by, ALIGNMENTS)}")
    rows = _marks_in_text_order(view.study)
    rows = rows.with_columns(cluster=pl.Series(ALIGNMENTS[by](rows, view.study), dtype=pl.Int64))
    return _renumber_clusters(
        merge_alternative_marks(rows, view.study) if by != "item" else leave_alternatives_unmerged(rows)
    )


def _marks_in_text_order(study: Study) -> pl.DataFrame:
    """One row per mark in text order, unplaced ones last in their document."""
    edges = (
        study.spans.filter(pl.col("part") == "text").group_by("mark").agg(pl.col("start").min(), pl.col("end").max())
    )
    order = study.documents.select(document="id").with_row_index("place")
    rows = study.marks.select("document", "annotation", "annotator", "label", "item", mark="id")
    rows = rows.join(edges, on="mark", how="left").join(order, on="document", how="left")
    return rows.sort("place", "start", "end", "annotator", "mark", nulls_last=True)


def _renumber_clusters(rows: pl.DataFrame) -> pl.DataFrame:
    """With clusters numbered by first appearance."""
    first = rows["cluster"].unique(maintain_order=True)
    number = pl.col("cluster").replace_strict(first, pl.int_range(len(first), eager=True), return_dtype=pl.Int64)
    return rows.with_columns(number if len(first) else pl.col("cluster")).select(COLUMNS)


def _cluster_by_item(rows: pl.DataFrame, study: Study) -> Ints:
    if len(rows) and rows["item"].null_count() == len(rows):
        way = param("align", "overlap")
        raise ParameterError(
            f"no mark has an `item` that ties it to others; align by overlap instead: {way}", parameter="align"
        )
    alone = pl.concat_str(pl.lit("\0"), "mark")
    keys = rows.select(key=pl.concat_str("document", pl.lit("\0"), pl.coalesce("item", alone)))["key"]
    return keys.rank("dense").to_numpy().astype(np.int64)


def _cluster_by_gamma(rows: pl.DataFrame, study: Study) -> Ints:
    """Where the proof would take more work for a text than is allowed, the best alignment found."""
    cluster = np.arange(len(rows))
    place = {mark: at for at, mark in enumerate(rows["mark"])}
    for text in continua(study, tuple(rows["label"].drop_nulls().unique().sort())):
        if text.continuum.annotators > 1 and len(text.marks):
            at = np.array([place[mark] for mark in text.marks])
            cluster[at] = at[best_alignment(text.continuum).cluster_first_marks]
    beside = rows["start"].is_null().to_numpy()
    if beside.any():
        one, other, likeness = overlapping_mark_pairs(rows, study)
        both = beside[one] & beside[other]
        cluster[beside] = cluster_pairs_by_complete_linkage(rows, one[both], other[both], likeness[both])[beside]
    return cluster


def _cluster_greedily_by_overlap(rows: pl.DataFrame, study: Study) -> Ints:
    one, other, likeness = overlapping_mark_pairs(rows, study)
    return cluster_pairs_by_complete_linkage(rows, one, other, likeness)


def _cluster_greedily_by_label_overlap(rows: pl.DataFrame, study: Study) -> Ints:
    one, other, likeness = overlapping_mark_pairs(rows, study)
    labels = rows["label"].rank("dense").fill_null(0).to_numpy()
    same = labels[one] == labels[other]
    return cluster_pairs_by_complete_linkage(rows, one[same], other[same], likeness[same])


ALIGNMENTS: dict[str, Callable[[pl.DataFrame, Study], Ints]] = {
    "item": _cluster_by_item,
    "overlap": _cluster_greedily_by_overlap,
    "overlap-label": _cluster_greedily_by_label_overlap,
    "gamma": _cluster_by_gamma,
}


def overlapping_mark_pairs(rows: pl.DataFrame, study: Study) -> tuple[Ints, Ints, Floats]:
    """Pairs of marks (positions in `rows`) of different annotators on one text that share a character, and how much.

    How much is 2 x shared / (length + length), summed over pairs of spans. Omissions at one place are alike by 1.
    """
    line = _span_arrays(rows, study)
    pairs = overlapping_span_pairs(line, line)
    people = rows["annotator"].rank("dense").to_numpy()
    empty = line.start == line.end
    marks = line.owner[pairs.one], line.owner[pairs.other]
    candidates = (marks[0] < marks[1]) & (people[marks[0]] != people[marks[1]])
    candidates &= empty[pairs.one] == empty[pairs.other]  # an omission is like another omission only
    low, high, shared = mark_pairs_from_span_pairs(OverlapPairs(*(column[candidates] for column in pairs)), line, line)
    lengths = np.bincount(line.owner, line.end - line.start, len(rows))
    both = lengths[low] + lengths[high]
    return low, high, np.where(both > 0, 2 * shared / np.where(both > 0, both, 1.0), 1.0)


def _span_arrays(rows: pl.DataFrame, study: Study) -> SpanArrays:
    """Spans on the line of all texts and what stands beside them; their owners are positions in `rows`."""
    places = rows.select("mark").with_row_index("at")
    spans = study.spans.join(places, on="mark")
    lengths = spans.group_by("document", "part").agg(length=pl.col("end").max() + 1)
    order = study.documents.select(document="id").with_row_index("place")
    lengths = lengths.join(order, on="document").sort("place", "part")
    origins = lengths.select("document", "part", origin=pl.col("length").cum_sum() - pl.col("length"))
    spans = spans.join(origins, on=["document", "part"])
    columns = spans.select(pl.col("start") + pl.col("origin"), pl.col("end") + pl.col("origin"), "at")
    return SpanArrays(*(column.to_numpy().astype(np.int64) for column in columns))


def cluster_pairs_by_complete_linkage(rows: pl.DataFrame, one: Ints, other: Ints, likeness: Floats) -> Ints:
    """Join the most alike pair first, as long as every two marks of a cluster are such a pair; ties in text order.

    So no cluster has two marks of one annotator, and no mark ties two others that have nothing in common.
    One pass over the pairs, since each step depends on those before it.
    """
    size = len(rows)
    pairs = set((one * size + other).tolist())
    cluster = list(range(size))
    members = [[at] for at in cluster]
    order = np.lexsort((other, one, -likeness))
    for a, b in zip(one[order].tolist(), other[order].tolist(), strict=True):
        into, gone = cluster[a], cluster[b]
        if into == gone or not _is_completely_linked(members[into], members[gone], pairs, size):
            continue
        for at in members[gone]:
            cluster[at] = into
        members[into] += members[gone]
    return np.array(cluster, dtype=np.int64)


def _is_completely_linked(some: list[int], others: list[int], pairs: set[int], size: int) -> bool:
    """Whether every one of some marks makes a pair with every one of the others."""
    if len(some) == 1 == len(others):
        return True
    return all((a * size + b if a < b else b * size + a) in pairs for a in some for b in others)
