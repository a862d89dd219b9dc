"""Incremental reading of a study in progress: only changed annotations are read again."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl
import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Row, Transaction
from finecomb.collection.database.store import Store
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.database.unreadable_rows import RowReader
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study, StudyItem

_FULL_READ_THRESHOLD = 1000
"""If at least this many annotations have changed, all annotations are read again."""
_ANNOTATION = tables.annotation.c
_SELECT_FINGERPRINTS = (
    sa.select(
        *(_ANNOTATION[name] for name in ("id", "status", "started", "submitted", "active", "excluded", "rest")),
        sa.func.count(tables.entry.c.key),
        sa.func.sum(tables.entry.c.version),
    )
    .select_from(tables.annotation.outerjoin(tables.entry, tables.entry.c.annotation == _ANNOTATION.key))
    .where(_ANNOTATION.study == named_sql_placeholder("study"))
    .group_by(_ANNOTATION.key)
    .order_by(_ANNOTATION.key)
)
_SELECT_ANNOTATION = sa.select(*rows.ANNOTATION_COLUMNS).where(
    _ANNOTATION.study == named_sql_placeholder("study"), _ANNOTATION.id == named_sql_placeholder("id")
)
_SELECT_ENTRIES = (
    sa.select(tables.entry.c.kind, tables.entry.c.id, tables.entry.c.body)
    .where(tables.entry.c.annotation == named_sql_placeholder("annotation"), tables.entry.c.body.is_not(None))
    .order_by(tables.entry.c.key)
)
_SELECT_BODIES_BY_TYPE = {
    kind: sa.select(table.c.id, table.c.body)
    .where(table.c.study == named_sql_placeholder("study"))
    .order_by(table.c.place)
    for kind, table in ((Protocol, tables.protocol), (Document, tables.document), (Annotator, tables.annotator))
}


@dataclass(frozen=True, slots=True)
class StudySnapshot:
    """Consistent snapshot of a study, with a fingerprint of each annotation."""

    study: Study
    prints: Mapping[str, Row]
    """Fingerprint of each annotation, by ID: its mutable columns, number of entries and sum of entry versions."""


def refresh_snapshot(store: Store, before: StudySnapshot | None = None) -> StudySnapshot:
    """Return a current snapshot, reusing the annotations that have not changed since `before`."""
    with store.database.read_transaction() as transaction:
        prints = {row[0]: row[1:] for row in transaction.fetch_all(_SELECT_FINGERPRINTS, study=store.key)}
        changed = [id for id in prints if before is None or before.prints.get(id) != prints[id]]
        items: list[StudyItem] = [store.head.settings]
        reader = RowReader()
        for kind, bodies in _SELECT_BODIES_BY_TYPE.items():
            items += reader.read_records(kind.__name__.lower(), kind, transaction.execute(bodies, study=store.key))
        few = before is not None and len(changed) < _FULL_READ_THRESHOLD
        read = (
            _read_annotations_with_ids(transaction, store.key, changed, reader)
            if few
            else rows.read_all_annotations(transaction, store.key, reader)
        )
        fresh = Study.from_items(
            [*items, *reader.drop_dangling_annotations(read), *reader.notes()], origin=str(store.database.place)
        )
    return StudySnapshot(
        _merge_unchanged_annotations(before.study, fresh, list(prints), changed) if before and few else fresh, prints
    )


def _read_annotations_with_ids(
    transaction: Transaction, study: int, ids: Iterable[str], reader: RowReader
) -> Iterator[Annotation]:
    for id in ids:
        values = transaction.fetch_first(_SELECT_ANNOTATION, study=study, id=id)
        assert values is not None
        row = {column.name: value for column, value in zip(rows.ANNOTATION_COLUMNS, values, strict=True)}
        inside = transaction.fetch_all(_SELECT_ENTRIES, annotation=row["key"])
        annotation = reader.read_record("annotation", id, functools.partial(rows.assemble_annotation, row, inside))
        if annotation is not None:
            yield annotation


def _merge_unchanged_annotations(old: Study, fresh: Study, order: list[str], changed: list[str]) -> Study:
    """Return `fresh` with the unchanged annotations of `old` added, sorted by `order`."""
    places = pl.DataFrame({"own": pl.Series(order, dtype=pl.String), "place": range(len(order))})

    def merge_frames(old: pl.DataFrame, fresh: pl.DataFrame, column: str) -> pl.DataFrame:
        joined = pl.concat([old.filter(~pl.col(column).is_in(changed)), fresh])
        placed = joined.join(places, left_on=column, right_on="own", maintain_order="left")
        return placed.sort("place", maintain_order=True).drop("place")

    return replace(
        fresh,
        annotations=merge_frames(old.annotations, fresh.annotations, "id"),
        marks=merge_frames(old.marks, fresh.marks, "annotation"),
        units=merge_frames(old.units, fresh.units, "annotation"),
    )
