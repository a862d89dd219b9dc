"""Storage of records by ID: each is added to the study, or replaces the stored record with its ID."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Settings
from finecomb.core.study import StudyItem

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _E = tables.annotation.c, tables.entry.c


def replace_records(store: Store, transaction: Transaction, records: Iterable[StudyItem]) -> None:
    """Add records to a study, or replace those with the same ID.

    An annotation that changes its annotator must precede one that takes its place.
    """
    for record in records:
        match record:
            case Settings():
                change = sa.update(tables.study).values(settings=record.to_json())
                transaction.execute(change.where(tables.study.c.key == store.key))
            case Protocol() | Document():
                table = tables.protocol if isinstance(record, Protocol) else tables.document
                _replace_row(store, transaction, table, {"id": record.id, "body": record.to_json()})
            case Annotator():
                _replace_row(store, transaction, tables.annotator, rows.annotator_row(record))
            case Annotation():
                _replace_annotation(store, transaction, record)


def _replace_row(store: Store, transaction: Transaction, table: sa.Table, columns: dict[str, object]) -> None:
    mine = (table.c.study == store.key, table.c.id == columns["id"])
    if transaction.fetch_first(sa.select(table.c.id).where(*mine)):
        transaction.execute(sa.update(table).values(**columns).where(*mine))
        return
    last = sa.select(sa.func.coalesce(sa.func.max(table.c.place), -1)).where(table.c.study == store.key)
    (place,) = transaction.fetch_first(last) or (-1,)
    transaction.execute(sa.insert(table).values(study=store.key, place=place + 1, **columns))


def _replace_annotation(store: Store, transaction: Transaction, annotation: Annotation) -> None:
    mine = (_A.study == store.key, _A.id == annotation.id)
    columns = rows.annotation_row(annotation)
    stored = transaction.fetch_first(sa.select(_A.key).where(*mine))
    if stored is None:
        insert = sa.insert(tables.annotation).values(study=store.key, number=None, lease=None, **columns)
        stored = transaction.fetch_first(insert.returning(_A.key)) or (0,)
    else:
        transaction.execute(sa.update(tables.annotation).values(**columns).where(*mine))
    sync_annotation_entries(store, transaction, stored[0], annotation)


def sync_annotation_entries(store: Store, transaction: Transaction, key: int, annotation: Annotation) -> None:
    """Store the marks, units and answers of an annotation as entries. Removed ones remain as deleted entries."""
    stored = {
        (kind, id): (version, body)
        for kind, id, version, body in transaction.fetch_all(
            sa.select(_E.kind, _E.id, _E.version, _E.body).where(_E.annotation == key)
        )
    }
    wanted: dict[tuple[str, str], str | None] = dict.fromkeys(stored)
    wanted |= {(kind, id): body for kind, id, body in rows.annotation_entries(annotation)}
    for (kind, id), body in wanted.items():
        if (kind, id) not in stored:
            values = {"study": store.key, "annotation": key, "kind": kind, "id": id, "version": 1, "body": body}
            transaction.execute(sa.insert(tables.entry).values(**values))
        elif stored[kind, id][1] != body:
            row = (_E.annotation == key, _E.kind == kind, _E.id == id)
            transaction.execute(sa.update(tables.entry).values(version=stored[kind, id][0] + 1, body=body).where(*row))
