"""Work of machines that comes in while a study is served: annotators that are programs, and what they said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection import annotator_storage as annotator_rows
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _E, _P = tables.annotation.c, tables.entry.c, tables.annotator.c


def put_machine_work(
    store: Store, transaction: Transaction, annotators: Iterable[Annotator], annotations: Iterable[Annotation]
) -> None:
    """Add annotators that are programs and their annotations; work with the same id is replaced by the new."""
    for annotator in annotators:
        _put_annotator(store, transaction, annotator)
    for annotation in annotations:
        _put_annotation(store, transaction, annotation)


def _put_annotator(store: Store, transaction: Transaction, annotator: Annotator) -> None:
    row = transaction.one(sa.select(_P.kind).where(_P.study == store.key, _P.id == annotator.id))
    if row is None:
        (place,) = transaction.one(sa.select(sa.func.count()).where(_P.study == store.key)) or (0,)
        columns = rows.annotator_row(annotator)
        transaction.run(sa.insert(tables.annotator).values(study=store.key, place=place, **columns))
    elif row[0] != annotator.kind:
        raise FinecombError(f"annotator {annotator.id!r} is of kind {row[0]} already; choose another name")
    else:
        before = annotator_rows.get_annotator(store, transaction, annotator.id)
        annotator_rows.replace_annotator(store, transaction, annotator.model_copy(update={"excluded": before.excluded}))


def _put_annotation(store: Store, transaction: Transaction, annotation: Annotation) -> None:
    mine = (_A.study == store.key, _A.id == annotation.id)
    columns = rows.annotation_row(annotation)
    row = transaction.one(sa.select(_A.key, _A.annotator).where(*mine))
    if row is None:
        insert = sa.insert(tables.annotation).values(study=store.key, number=None, lease=None, **columns)
        row = transaction.one(insert.returning(_A.key, _A.annotator)) or (0, "")
    elif row[1] != annotation.annotator:
        raise FinecombError(f"annotation {annotation.id!r} is by {row[1]}; nothing was changed")
    else:
        transaction.run(sa.update(tables.annotation).values(**columns).where(*mine))
    _sync_annotation_entries(store, transaction, row[0], annotation)


def _sync_annotation_entries(store: Store, transaction: Transaction, key: int, annotation: Annotation) -> None:
    """Bring the entries of an annotation to what it has now; what is gone stays as a deleted entry."""
    stored = {
        (kind, id): (version, body)
        for kind, id, version, body in transaction.all(
            sa.select(_E.kind, _E.id, _E.version, _E.body).where(_E.annotation == key)
        )
    }
    wanted: dict[tuple[str, str], str | None] = dict.fromkeys(stored)
    wanted |= {(kind, id): body for kind, id, body in rows.annotation_entries(annotation)}
    for (kind, id), body in wanted.items():
        if (kind, id) not in stored:
            values = {"study": store.key, "annotation": key, "kind": kind, "id": id, "version": 1, "body": body}
            transaction.run(sa.insert(tables.entry).values(**values))
        elif stored[kind, id][1] != body:
            row = (_E.annotation == key, _E.kind == kind, _E.id == id)
            transaction.run(sa.update(tables.entry).values(version=stored[kind, id][0] + 1, body=body).where(*row))
