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
from finecomb.collection.database.tables import given
from finecomb.collection.database.unreadable_rows import RowReader
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Item, Study

_MANY = 1000
"""Changed annotations from which on reading all is simpler than naming them."""
_OWN = tables.annotation.c
_PRINTS = (
    sa.select(
        *(_OWN[name] for name in ("id", "status", "started", "submitted", "active", "excluded", "rest")),
        sa.func.count(tables.entry.c.key),
        sa.func.sum(tables.entry.c.version),
    )
    .select_from(tables.annotation.outerjoin(tables.entry, tables.entry.c.annotation == _OWN.key))
    .where(_OWN.study == given("study"))
    .group_by(_OWN.key)
    .order_by(_OWN.key)
)
_ONE = sa.select(*rows.FIELDS).where(_OWN.study == given("study"), _OWN.id == given("id"))
_INSIDE = (
    sa.select(tables.entry.c.kind, tables.entry.c.id, tables.entry.c.body)
    .where(tables.entry.c.annotation == given("annotation"), tables.entry.c.body.is_not(None))
    .order_by(tables.entry.c.key)
)
_BODIES = {
    kind: sa.select(table.c.id, table.c.body).where(table.c.study == given("study")).order_by(table.c.place)
    for kind, table in ((Protocol, tables.protocol), (Document, tables.document), (Annotator, tables.annotator))
}


@dataclass(frozen=True, slots=True)
class StudyRead:
    """A study as one moment saw it, and what each annotation looked like then."""

    study: Study
    prints: Mapping[str, Row]
    """By id: columns that change, and how many entries and versions of entries there were."""


def read_again(store: Store, before: StudyRead | None = None) -> StudyRead:
    """The study as it is now; annotations that look as they did `before` are taken from there."""
    with store.database.reading() as transaction:
        prints = {row[0]: row[1:] for row in transaction.all(_PRINTS, study=store.key)}
        changed = [id for id in prints if before is None or before.prints.get(id) != prints[id]]
        items: list[Item] = [store.head.settings]
        reader = RowReader()
        for kind, bodies in _BODIES.items():
            items += reader.records(kind.__name__.lower(), kind, transaction.run(bodies, study=store.key))
        few = before is not None and len(changed) < _MANY
        read = (
            _some(transaction, store.key, changed, reader)
            if few
            else rows.all_annotations(transaction, store.key, reader)
        )
        fresh = Study.from_items([*items, *reader.complete(read), *reader.notes()], origin=str(store.database.place))
    return StudyRead(_joined(before.study, fresh, list(prints), changed) if before and few else fresh, prints)


def _some(transaction: Transaction, study: int, ids: Iterable[str], reader: RowReader) -> Iterator[Annotation]:
    for id in ids:
        values = transaction.one(_ONE, study=study, id=id)
        assert values is not None
        row = {column.name: value for column, value in zip(rows.FIELDS, values, strict=True)}
        inside = transaction.all(_INSIDE, annotation=row["key"])
        annotation = reader.record("annotation", id, functools.partial(rows.assemble, row, inside))
        if annotation is not None:
            yield annotation


def _joined(old: Study, fresh: Study, order: list[str], changed: list[str]) -> Study:
    """`fresh` with what did not change from `old`, in order."""
    places = pl.DataFrame({"own": pl.Series(order, dtype=pl.String), "place": range(len(order))})

    def both(old: pl.DataFrame, fresh: pl.DataFrame, column: str) -> pl.DataFrame:
        joined = pl.concat([old.filter(~pl.col(column).is_in(changed)), fresh])
        placed = joined.join(places, left_on=column, right_on="own", maintain_order="left")
        return placed.sort("place", maintain_order=True).drop("place")

    return replace(
        fresh,
        annotations=both(old.annotations, fresh.annotations, "id"),
        marks=both(old.marks, fresh.marks, "annotation"),
        units=both(old.units, fresh.units, "annotation"),
    )
