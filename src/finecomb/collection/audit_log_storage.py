"""The audit log: what researchers did with a study, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


def record_action(store: Store, transaction: Transaction, who: str, did: str, **about: object) -> None:
    """A new line of the audit log, in the same transaction as what was done."""
    values = {"study": store.key, "at": store.clock(), "who": who, "did": did, "about": rows.dump_json(about)}
    transaction.run(sa.insert(tables.audit).values(**values))


def record_single_action(
    store: Store, transaction: Transaction, who: str, did: str, about: Mapping[str, object]
) -> None:
    """A new line of the audit log as a job of its own, for what changes nothing else."""
    record_action(store, transaction, who, did, **about)


_SELECT_LATEST_NUMBER = sa.select(sa.func.max(tables.audit.c.key)).where(
    tables.audit.c.study == bind_parameter("study")
)


def latest_entry_number(store: Store, transaction: Transaction) -> int:
    """The number of the newest line: another one once a researcher did something, in whichever process."""
    (number,) = transaction.one(_SELECT_LATEST_NUMBER, study=store.key) or (0,)
    return int(number or 0)


def latest_entries(
    store: Store, transaction: Transaction, max_entries: int = 1000
) -> Sequence[tuple[float, str, str, str]]:
    """The latest lines, newest first: when, who, did what, about what (JSON)."""
    columns = (tables.audit.c.at, tables.audit.c.who, tables.audit.c.did, tables.audit.c.about)
    newest = sa.select(*columns).where(tables.audit.c.study == store.key).order_by(tables.audit.c.key.desc())
    return [(at, who, did, about) for at, who, did, about in transaction.all(newest.limit(max_entries))]
