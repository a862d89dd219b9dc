"""The table of annotators: one record for everybody who may take part."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.assignment_rules import next_condition
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import given
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_CONDITIONS = sa.select(tables.annotator.c.id, tables.annotator.c.condition).where(
    tables.annotator.c.study == given("study")
)
_BODY = sa.select(tables.annotator.c.body).where(
    tables.annotator.c.study == given("study"), tables.annotator.c.id == given("annotator")
)


_COLUMNS = ("id", "kind", "condition", "cell", "excluded", "body")
_REPLACE = (
    sa.update(tables.annotator)
    .values({name: given(name) for name in _COLUMNS})
    .where(tables.annotator.c.study == given("of"), tables.annotator.c.id == given("who"))
)


def conditions(store: Store, transaction: Transaction) -> dict[str, str]:
    """The condition of every annotator, by id."""
    return dict(transaction.all(_CONDITIONS, study=store.key))


def get(store: Store, transaction: Transaction, id: str) -> Annotator:
    """The record of an annotator."""
    row = transaction.one(_BODY, study=store.key, annotator=id)
    if row is None:
        raise FinecombError(f"no annotator is called {id!r}")
    return Annotator.model_validate_json(row[0])


def replace(store: Store, transaction: Transaction, annotator: Annotator) -> None:
    """Write another record of the same annotator."""
    transaction.run(_REPLACE, of=store.key, who=annotator.id, **rows.annotator_row(annotator))


def new(store: Store, transaction: Transaction, id: str = "") -> Annotator:
    """A new annotator, in the condition that has fewest people so far; without an id, under the next free number.

    Where the study has a design, they are assigned to a cell when they come.
    """
    taken = conditions(store, transaction)
    if id in taken:
        raise FinecombError(f"an annotator is called {id!r} already; choose another name")
    numbers = (f"reader-{number}" for number in range(1, len(taken) + 2))
    id = id or next(name for name in numbers if name not in taken)
    arms = [] if store.head.settings.design else [arm.name for arm in store.head.protocol.conditions]
    condition = next_condition(arms, Counter(taken.values()), store.head.settings.seed, id)
    annotator = Annotator(id=id, kind="human", condition=condition)
    row = rows.annotator_row(annotator)
    transaction.run(sa.insert(tables.annotator).values(study=store.key, place=len(taken), **row))
    return annotator
