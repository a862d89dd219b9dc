"""Other readings of one error: marks that are an alternative of somebody else's mark are that error, too.

A name and two numbers can be two ways to put one sentence right (Thomson and Reiter 2020, section 3.5.3). Where a mark
lists such `alternatives`, whoever marked all of one of them marked the same error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from finecomb.core.frames import parse_json_list, parse_spans
from finecomb.core.span import Span
from finecomb.core.study import Study

Row = dict[str, Any]


def leave_alternatives_unmerged(rows: pl.DataFrame) -> pl.DataFrame:
    """Clusters as they are."""
    return rows.with_columns(reading_of=pl.lit(None, dtype=pl.String))


def merge_alternative_marks(rows: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Clusters of marks, those that are an alternative of another mark moved to that mark's cluster, with its label.

    An annotator whose mark is in that cluster already has no other reading of it. `rows` has the columns cluster,
    document, annotator, mark and label, in text order.
    """
    having = set(study.marks.filter(pl.col("alternatives").is_not_null())["id"])
    if not having:
        return leave_alternatives_unmerged(rows)
    documents = rows.filter(pl.col("mark").is_in(sorted(having)))["document"].unique().implode()
    records = study.marks.filter(pl.col("document").is_in(documents)).select("id", "spans", "alternatives")
    places = {id: (parse_spans(spans), parse_json_list(sets)) for id, spans, sets in records.iter_rows()}
    readings: dict[str, Row] = {}
    for _, of_text in rows.filter(pl.col("document").is_in(documents)).group_by("document", maintain_order=True):
        readings |= _alternative_target_by_mark(list(of_text.iter_rows(named=True)), places)
    moved = [(mark, row["mark"], row["cluster"], row["label"]) for mark, row in readings.items()]
    names = {"mark": pl.String, "reading_of": pl.String, "to": pl.Int64, "as": pl.String}
    table = rows.join(pl.DataFrame(moved, schema=names, orient="row"), on="mark", how="left", maintain_order="left")
    is_reading = pl.col("reading_of").is_not_null()
    label = pl.when(is_reading).then("as").otherwise("label")
    return table.with_columns(cluster=pl.coalesce("to", "cluster"), label=label).drop("to", "as")


def _alternative_target_by_mark(
    rows: Sequence[Row], places: Mapping[str, tuple[tuple[Span, ...], Sequence[Any]]]
) -> dict[str, Row]:
    """For each mark of a text that is part of an alternative of another: the row of that other."""
    readings: dict[str, Row] = {}
    for row in rows:
        sets = places[row["mark"]][1]
        if not sets or row["mark"] in readings:
            continue
        taken = {other["annotator"] for other in rows if other["cluster"] == row["cluster"]}
        for annotator in dict.fromkeys(other["annotator"] for other in rows if other["annotator"] not in taken):
            free = [o["mark"] for o in rows if o["annotator"] == annotator and o["mark"] not in readings]
            marks = next(_marks_of_complete_alternatives(sets, free, places), ())
            readings |= dict.fromkeys(marks, row)
    return readings


def _marks_of_complete_alternatives(
    sets: Sequence[Any], marks: Sequence[str], places: Mapping[str, tuple[tuple[Span, ...], Sequence[Any]]]
) -> Iterator[tuple[str, ...]]:
    """The marks that make up each of the alternatives that is there as a whole, each mark used once."""
    for members in sets:
        chosen: list[str] = []
        for member in members:
            spans = parse_alternative_spans(member["spans"])
            fitting = (id for id in marks if id not in chosen and _has_overlapping_spans(places[id][0], spans))
            chosen += [id for id in [next(fitting, None)] if id is not None]
        if members and len(chosen) == len(members):
            yield tuple(chosen)


def parse_alternative_spans(spans: Sequence[Sequence[Any]]) -> tuple[Span, ...]:
    """The spans of a mark of an alternative, as a study's frame has them: [start, end] or [part, start, end]."""
    return tuple(Span(start, end, *part) for *part, start, end in spans)


def _has_overlapping_spans(some: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(one.overlap_length(other) or one == other for one in some for other in others)
