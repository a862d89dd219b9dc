"""The table of annotators: one record for everybody who may take part."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.assignment_rules import choose_condition
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_SELECT_CONDITIONS = sa.select(tables.annotator.c.id, tables.annotator.c.condition).where(
    tables.annotator.c.study == bind_parameter("study")
)
_SELECT_BODY = sa.select(tables.annotator.c.body).where(
    tables.annotator.c.study == bind_parameter("study"), tables.annotator.c.id == bind_parameter("annotator")
)


_COLUMNS = ("id", "kind", "condition", "cell", "excluded", "body")
_UPDATE_ANNOTATOR = (
    sa.update(tables.annotator)
    .values({name: bind_parameter(name) for name in _COLUMNS})
    .where(tables.annotator.c.study == bind_parameter("of"), tables.annotator.c.id == bind_parameter("who"))
)


def conditions_by_annotator(store: Store, transaction: Transaction) -> dict[str, str]:
    """The condition of every annotator, by id."""
    return dict(transaction.all(_SELECT_CONDITIONS, study=store.key))


def get_annotator(store: Store, transaction: Transaction, id: str) -> Annotator:
    """The record of an annotator."""
    row = transaction.one(_SELECT_BODY, study=store.key, annotator=id)
    if row is None:
        raise FinecombError(f"no annotator is called {id!r}")
    return Annotator.model_validate_json(row[0])


def replace_annotator(store: Store, transaction: Transaction, annotator: Annotator) -> None:
    """Write another record of the same annotator."""
    transaction.run(_UPDATE_ANNOTATOR, of=store.key, who=annotator.id, **rows.annotator_row(annotator))


def create_annotator(store: Store, transaction: Transaction, id: str = "") -> Annotator:
    """A new annotator, in the condition that has fewest people so far; without an id, under the next free number.

    Where the study has a design, they are assigned to a cell when they come.
    """
    taken = conditions_by_annotator(store, transaction)
    if id in taken:
        raise FinecombError(f"an annotator is called {id!r} already; choose another name")
    numbers = (f"reader-{number}" for number in range(1, len(taken) + 2))
    id = id or next(name for name in numbers if name not in taken)
    arms = [] if store.head.settings.design else [arm.name for arm in store.head.protocol.conditions]
    condition = choose_condition(arms, Counter(taken.values()), store.head.settings.seed, id)
    annotator = Annotator(id=id, kind="human", condition=condition)
    row = rows.annotator_row(annotator)
    transaction.run(sa.insert(tables.annotator).values(study=store.key, place=len(taken), **row))
    return annotator
