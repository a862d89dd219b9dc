"""Alternative marks: different annotations of the same error are merged into one cluster.

A sentence can be corrected by changing one name or two numbers (Thomson and Reiter 2020, section 3.5.3). If a mark
lists such `alternatives`, an annotator who marked all parts of one of them marked the same error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from finecomb.core.frames import parse_json_list, parse_spans
from finecomb.core.span import Span
from finecomb.core.study import Study

Row = dict[str, Any]


def add_null_reading_of_column(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the column `reading_of` filled with nulls, which means that no mark is an alternative of another mark."""
    return rows.with_columns(reading_of=pl.lit(None, dtype=pl.String))


def merge_alternative_marks(rows: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Move marks that form an alternative of another mark to that mark's cluster, and give them its label.

    Annotators who already have a mark in that cluster are skipped. `rows` has the columns cluster, document, annotator,
    mark and label, in text order.
    """
    marks_with_alternatives = set(study.marks.filter(pl.col("alternatives").is_not_null())["id"])
    if not marks_with_alternatives:
        return add_null_reading_of_column(rows)
    documents = rows.filter(pl.col("mark").is_in(sorted(marks_with_alternatives)))["document"].unique().implode()
    records = study.marks.filter(pl.col("document").is_in(documents)).select("id", "spans", "alternatives")
    spans_and_alternatives = {
        id: (parse_spans(spans), parse_json_list(sets)) for id, spans, sets in records.iter_rows()
    }
    target_by_mark: dict[str, Row] = {}
    for _, text_rows in rows.filter(pl.col("document").is_in(documents)).group_by("document", maintain_order=True):
        target_by_mark |= _alternative_target_by_mark(list(text_rows.iter_rows(named=True)), spans_and_alternatives)
    moves = [(mark, row["mark"], row["cluster"], row["label"]) for mark, row in target_by_mark.items()]
    names = {"mark": pl.String, "reading_of": pl.String, "to": pl.Int64, "as": pl.String}
    table = rows.join(pl.DataFrame(moves, schema=names, orient="row"), on="mark", how="left", maintain_order="left")
    is_reading = pl.col("reading_of").is_not_null()
    label = pl.when(is_reading).then("as").otherwise("label")
    return table.with_columns(cluster=pl.coalesce("to", "cluster"), label=label).drop("to", "as")


def _alternative_target_by_mark(
    rows: Sequence[Row], places: Mapping[str, tuple[tuple[Span, ...], Sequence[Any]]]
) -> dict[str, Row]:
    """Map each mark that is part of another mark's alternative to the row of that other mark."""
    target_by_mark: dict[str, Row] = {}
    for row in rows:
        sets = places[row["mark"]][1]
        if not sets or row["mark"] in target_by_mark:
            continue
        annotators_in_cluster = {other["annotator"] for other in rows if other["cluster"] == row["cluster"]}
        for annotator in dict.fromkeys(other["annotator"] for other in rows):
            free = [o["mark"] for o in rows if o["annotator"] == annotator and o["mark"] not in target_by_mark]
            for members in sets if annotator not in annotators_in_cluster else ():
                # Each mark of the alternative takes the first overlapping mark that is still free.
                chosen: dict[str, Row] = {}
                for member in members:
                    spans = [Span(start, end, *part) for *part, start, end in member["spans"]]
                    for mark in free:
                        pairs = ((one, other) for one in places[mark][0] for other in spans)
                        if mark not in chosen and any(a.overlap_length(b) or a == b for a, b in pairs):
                            chosen[mark] = row
                            break
                if members and len(chosen) == len(members):
                    target_by_mark |= chosen
                    break
    return target_by_mark
