"""A study that is read again and again while people work: only what changed since is read anew."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl
import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Row, Transaction
from finecomb.collection.database.store import Store
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.database.unreadable_rows import RowReader
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study, StudyItem

_FULL_READ_THRESHOLD = 1000
"""Changed annotations from which on reading all is simpler than naming them."""
_ANNOTATION = tables.annotation.c
_SELECT_FINGERPRINTS = (
    sa.select(
        *(_ANNOTATION[name] for name in ("id", "status", "started", "submitted", "active", "excluded", "rest")),
        sa.func.count(tables.entry.c.key),
        sa.func.sum(tables.entry.c.version),
    )
    .select_from(tables.annotation.outerjoin(tables.entry, tables.entry.c.annotation == _ANNOTATION.key))
    .where(_ANNOTATION.study == bind_parameter("study"))
    .group_by(_ANNOTATION.key)
    .order_by(_ANNOTATION.key)
)
_SELECT_ANNOTATION = sa.select(*rows.ANNOTATION_COLUMNS).where(
    _ANNOTATION.study == bind_parameter("study"), _ANNOTATION.id == bind_parameter("id")
)
_SELECT_ENTRIES = (
    sa.select(tables.entry.c.kind, tables.entry.c.id, tables.entry.c.body)
    .where(tables.entry.c.annotation == bind_parameter("annotation"), tables.entry.c.body.is_not(None))
    .order_by(tables.entry.c.key)
)
_SELECT_BODIES_BY_TYPE = {
    kind: sa.select(table.c.id, table.c.body).where(table.c.study == bind_parameter("study")).order_by(table.c.place)
    for kind, table in ((Protocol, tables.protocol), (Document, tables.document), (Annotator, tables.annotator))
}


@dataclass(frozen=True, slots=True)
class StudySnapshot:
    """A study as one moment saw it, and what each annotation looked like then."""

    study: Study
    prints: Mapping[str, Row]
    """By id: columns that change, and how many entries and versions of entries there were."""


def refresh_snapshot(store: Store, before: StudySnapshot | None = None) -> StudySnapshot:
    """The study as it is now; annotations that look as they did `before` are taken from there."""
    with store.database.read_transaction() as transaction:
        prints = {row[0]: row[1:] for row in transaction.all(_SELECT_FINGERPRINTS, study=store.key)}
        changed = [id for id in prints if before is None or before.prints.get(id) != prints[id]]
        items: list[StudyItem] = [store.head.settings]
        reader = RowReader()
        for kind, bodies in _SELECT_BODIES_BY_TYPE.items():
            items += reader.read_records(kind.__name__.lower(), kind, transaction.run(bodies, study=store.key))
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
        values = transaction.one(_SELECT_ANNOTATION, study=study, id=id)
        assert values is not None
        row = {column.name: value for column, value in zip(rows.ANNOTATION_COLUMNS, values, strict=True)}
        inside = transaction.all(_SELECT_ENTRIES, annotation=row["key"])
        annotation = reader.read_record("annotation", id, functools.partial(rows.assemble_annotation, row, inside))
        if annotation is not None:
            yield annotation


def _merge_unchanged_annotations(old: Study, fresh: Study, order: list[str], changed: list[str]) -> Study:
    """`fresh` with what did not change from `old`, in order."""
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
