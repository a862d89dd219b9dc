"""Tasks of a platform in the database: whether somebody's present one is finished. Reads only."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection import arrivals_storage, platform_batches
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.platform_batches import FinishedBatch

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A = tables.annotation.c
_SELECT_SUBMISSION_TIMES = sa.select(_A.submitted).where(
    _A.study == bind_parameter("study"),
    _A.annotator == bind_parameter("annotator"),
    _A.phase == "work",
    _A.round == 0,
    _A.status == "submitted",
    _A.submitted.is_not(None),
)


def read_finished_batches(store: Store, transaction: Transaction, annotator: str) -> list[FinishedBatch]:
    """The finished tasks of somebody who came from a platform, where the study is cut into tasks; else none."""
    size = store.head.settings.recruitment.batch
    came = arrivals_storage.read_annotator_arrivals(store, transaction, annotator) if size else []
    if not size or not any(arrival.source.worker for arrival in came):
        return []
    rows = transaction.all(_SELECT_SUBMISSION_TIMES, study=store.key, annotator=annotator)
    return platform_batches.finished_batches(came, (datetime.fromisoformat(at).timestamp() for (at,) in rows), size)


def is_current_batch_finished(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Whether somebody's present task is finished; by a link of ours, without a platform, there is no end of one."""
    finished = read_finished_batches(store, transaction, annotator)
    last = arrivals_storage.last_arrival(store, transaction, annotator) if finished else None
    return last is not None and bool(last.source.worker) and platform_batches.is_batch_finished(finished, last.source)


def is_in_finished_batch(store: Store, transaction: Transaction, annotator: str, submitted: float) -> bool:
    """Whether a text that was handed in then belongs to a finished task."""
    return any(submitted <= batch.at for batch in read_finished_batches(store, transaction, annotator))
