"""Audit log of researchers' actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


def record_action(store: Store, transaction: Transaction, who: str, did: str, **about: object) -> None:
    """Add an entry to the audit log, in the same transaction as the action."""
    values = {"study": store.key, "at": store.clock(), "who": who, "did": did, "about": rows.dump_json(about)}
    transaction.execute(sa.insert(tables.audit).values(**values))


def record_standalone_action(
    store: Store, transaction: Transaction, who: str, did: str, about: Mapping[str, object]
) -> None:
    """Add an entry to the audit log as a separate job, for actions that change nothing else."""
    record_action(store, transaction, who, did, **about)


_SELECT_LATEST_NUMBER = sa.select(sa.func.max(tables.audit.c.key)).where(
    tables.audit.c.study == named_sql_placeholder("study")
)


def read_latest_entry_number(store: Store, transaction: Transaction) -> int:
    """Return the number of the newest audit log entry. It grows with each action in any process."""
    (number,) = transaction.fetch_first(_SELECT_LATEST_NUMBER, study=store.key) or (0,)
    return int(number or 0)


def read_latest_entries(
    store: Store, transaction: Transaction, max_entries: int = 1000
) -> Sequence[tuple[float, str, str, str]]:
    """Return the latest audit log entries, newest first: time, researcher, action and details as JSON."""
    columns = (tables.audit.c.at, tables.audit.c.who, tables.audit.c.did, tables.audit.c.about)
    newest = sa.select(*columns).where(tables.audit.c.study == store.key).order_by(tables.audit.c.key.desc())
    return [(time, who, did, about) for time, who, did, about in transaction.fetch_all(newest.limit(max_entries))]
