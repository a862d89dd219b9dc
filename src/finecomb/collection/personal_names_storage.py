"""Storage of personal names: display names and the names of personal links, which `finecomb forget` removes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection import annotator_storage
from finecomb.collection.annotator_meta import with_display_name
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_AUDIT = tables.audit.c
_NUMBERED_ID = re.compile(r"reader-\d+")
FORGOTTEN_NAME = "(forgotten)"


def find_named_annotators(store: Store, transaction: Transaction, ids: Collection[str] | None = None) -> list[str]:
    """Return those of the given annotators, or of all, who have a display name or a personal link with a name."""
    wanted = list(annotator_storage.conditions_by_annotator(store, transaction)) if ids is None else list(ids)
    called = set(_names_in_personal_links(store, transaction))
    return [
        id for id in wanted if id in called or "name" in annotator_storage.get_annotator(store, transaction, id).meta
    ]


def _names_in_personal_links(store: Store, transaction: Transaction) -> list[str]:
    """Return the names for which personal links were created, as recorded in the audit log."""
    lines = sa.select(_AUDIT.about).where(_AUDIT.study == store.key, _AUDIT.did == "made personal links")
    ids = [id for (about,) in transaction.fetch_all(lines) for id in from_json(about).get("annotators", [])]
    return [id for id in ids if not _NUMBERED_ID.fullmatch(id)]


def forget_names(store: Store, transaction: Transaction, ids: Collection[str] | None = None) -> dict[str, str]:
    """Remove people's names, even in the audit log, and return the new IDs of renumbered annotators by old ID."""
    wanted = list(annotator_storage.conditions_by_annotator(store, transaction)) if ids is None else list(ids)
    linked = set(_names_in_personal_links(store, transaction))
    numbers: dict[str, str] = {}
    for id in wanted:
        person = annotator_storage.get_annotator(store, transaction, id)
        if "name" in person.meta:
            annotator_storage.replace_annotator(store, transaction, with_display_name(person, ""))
        if id in linked:
            numbers[id] = _renumber_annotator(store, transaction, id)
    for key, about in transaction.fetch_all(sa.select(_AUDIT.key, _AUDIT.about).where(_AUDIT.study == store.key)):
        value = from_json(about)
        if not isinstance(value, dict):
            continue
        new, annotator, several = dict(value), value.get("annotator"), value.get("annotators")
        if annotator in wanted and "name" in value:
            new["name"] = FORGOTTEN_NAME
        if isinstance(annotator, str) and annotator in numbers:
            new["annotator"] = numbers[annotator]
        if isinstance(several, list):
            new["annotators"] = [numbers.get(id, id) for id in several]
        if new != value:
            transaction.execute(sa.update(tables.audit).values(about=rows.dump_json(new)).where(_AUDIT.key == key))
    return numbers


def _renumber_annotator(store: Store, transaction: Transaction, id: str) -> str:
    """Replace an annotator's ID with a number in all their records."""
    taken = annotator_storage.conditions_by_annotator(store, transaction)
    new = next(name for number in range(1, len(taken) + 2) if (name := f"reader-{number}") not in taken)
    person = annotator_storage.get_annotator(store, transaction, id).model_copy(update={"id": new})
    annotator_conditions = (tables.annotator.c.study == store.key, tables.annotator.c.id == id)
    transaction.execute(
        sa.update(tables.annotator)
        .values(id=new, **{name: value for name, value in rows.annotator_row(person).items() if name != "id"})
        .where(*annotator_conditions)
    )
    for table in (tables.annotation, tables.worker, tables.arrival):
        mine = (table.c.study == store.key, table.c.annotator == id)
        transaction.execute(sa.update(table).values(annotator=new).where(*mine))
    return new
