"""Storage of machine annotations that are added while a study is served."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection import annotator_storage, record_storage
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P = tables.annotation.c, tables.annotator.c


def upsert_machine_work(
    store: Store, transaction: Transaction, annotators: Iterable[Annotator], annotations: Iterable[Annotation]
) -> None:
    """Insert machine annotators and their annotations, replacing work with the same ID."""
    for annotator in annotators:
        row = transaction.fetch_first(sa.select(_P.kind).where(_P.study == store.key, _P.id == annotator.id))
        if row is not None and row[0] != annotator.kind:
            raise FinecombError(f"annotator {annotator.id!r} already exists with kind {row[0]!r}; use another name")
        before = annotator_storage.get_annotator(store, transaction, annotator.id) if row else None
        kept = annotator.model_copy(update={"excluded": before.excluded}) if before else annotator
        record_storage.replace_records(store, transaction, [kept])
    for annotation in annotations:
        owner = sa.select(_A.annotator).where(_A.study == store.key, _A.id == annotation.id)
        known = transaction.fetch_first(owner)
        if known is not None and known[0] != annotation.annotator:
            raise FinecombError(
                f"annotation ID {annotation.id!r} is already used by annotator {known[0]!r}; use another ID"
            )
        record_storage.replace_records(store, transaction, [annotation])
