"""Reading of finished platform tasks from the database."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection import arrivals_storage, platform_batches
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.platform_batches import FinishedBatch

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A = tables.annotation.c
_SELECT_SUBMISSION_TIMES = sa.select(_A.submitted).where(
    _A.study == named_sql_placeholder("study"),
    _A.annotator == named_sql_placeholder("annotator"),
    _A.phase == "work",
    _A.round == 0,
    _A.status == "submitted",
    _A.submitted.is_not(None),
)


def read_finished_batches(store: Store, transaction: Transaction, annotator: str) -> list[FinishedBatch]:
    """Return the finished tasks of a platform worker; empty when the study is not divided into platform tasks."""
    size = store.head.settings.recruitment.batch
    came = arrivals_storage.read_annotator_arrivals(store, transaction, annotator) if size else []
    if not size or not any(arrival.source.worker for arrival in came):
        return []
    rows = transaction.fetch_all(_SELECT_SUBMISSION_TIMES, study=store.key, annotator=annotator)
    return platform_batches.finished_batches(
        came, (datetime.fromisoformat(submitted).timestamp() for (submitted,) in rows), size
    )
