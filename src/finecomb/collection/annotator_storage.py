"""Storage of annotators: one record per participant."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.assignment_rules import seeded_hash
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_SELECT_CONDITIONS = sa.select(tables.annotator.c.id, tables.annotator.c.condition).where(
    tables.annotator.c.study == named_sql_placeholder("study")
)
_SELECT_ANNOTATOR_BODY = sa.select(tables.annotator.c.body).where(
    tables.annotator.c.study == named_sql_placeholder("study"),
    tables.annotator.c.id == named_sql_placeholder("annotator"),
)


_ANNOTATOR_COLUMNS = ("id", "kind", "condition", "cell", "excluded", "body")
_UPDATE_ANNOTATOR = (
    sa.update(tables.annotator)
    .values({name: named_sql_placeholder(name) for name in _ANNOTATOR_COLUMNS})
    .where(
        tables.annotator.c.study == named_sql_placeholder("of"), tables.annotator.c.id == named_sql_placeholder("who")
    )
)


def conditions_by_annotator(store: Store, transaction: Transaction) -> dict[str, str]:
    """Return the condition of each annotator, by annotator ID."""
    return dict(transaction.fetch_all(_SELECT_CONDITIONS, study=store.key))


def get_annotator(store: Store, transaction: Transaction, id: str) -> Annotator:
    """Return the record of an annotator, or raise an error when the ID is unknown."""
    row = transaction.fetch_first(_SELECT_ANNOTATOR_BODY, study=store.key, annotator=id)
    if row is None:
        raise FinecombError(f"unknown annotator {id!r}")
    return Annotator.model_validate_json(row[0])


def replace_annotator(store: Store, transaction: Transaction, annotator: Annotator) -> None:
    """Replace the stored record of an annotator."""
    transaction.execute(_UPDATE_ANNOTATOR, of=store.key, who=annotator.id, **rows.annotator_row(annotator))


def create_annotator(store: Store, transaction: Transaction, id: str = "") -> Annotator:
    """Create an annotator in the condition with the fewest people. Without an ID, the next free number is used.

    In a study with a design, the annotator gets a cell when they arrive.
    """
    taken = conditions_by_annotator(store, transaction)
    if id in taken:
        raise FinecombError(f"an annotator named {id!r} already exists; use another name")
    numbers = (f"reader-{number}" for number in range(1, len(taken) + 2))
    id = id or next(name for name in numbers if name not in taken)
    arms = [] if store.head.settings.design else [arm.name for arm in store.head.protocol.conditions]
    people = Counter(taken.values())
    condition = min(
        arms, key=lambda name: (people.get(name, 0), seeded_hash(store.head.settings.seed, id, name)), default=""
    )
    annotator = Annotator(id=id, kind="human", condition=condition)
    row = rows.annotator_row(annotator)
    transaction.execute(sa.insert(tables.annotator).values(study=store.key, place=len(taken), **row))
    return annotator
