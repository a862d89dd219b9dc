"""Names that researchers gave people: display names and names of personal links; `finecomb forget` removes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection import annotator_storage
from finecomb.collection.annotator_meta import with_name
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_AUDIT = tables.audit.c
_NUMBERED_ID = re.compile(r"reader-\d+")
FORGOTTEN_NAME = "(forgotten)"


def find_named_annotators(store: Store, transaction: Transaction, ids: Collection[str] | None = None) -> list[str]:
    """Who of some people, or of all, is called by a name: in a personal link or on the researchers' pages."""
    wanted = list(annotator_storage.conditions_by_annotator(store, transaction)) if ids is None else list(ids)
    called = set(_names_in_personal_links(store, transaction))
    return [
        id for id in wanted if id in called or "name" in annotator_storage.get_annotator(store, transaction, id).meta
    ]


def _names_in_personal_links(store: Store, transaction: Transaction) -> list[str]:
    """The names that personal links were made for, as the audit log has them."""
    lines = sa.select(_AUDIT.about).where(_AUDIT.study == store.key, _AUDIT.did == "made personal links")
    ids = [id for (about,) in transaction.all(lines) for id in from_json(about).get("annotators", [])]
    return [id for id in ids if not _NUMBERED_ID.fullmatch(id)]


def forget_names(store: Store, transaction: Transaction, ids: Collection[str] | None = None) -> dict[str, str]:
    """Take away what people are called, also in the audit log; returns the new id of everybody whose id was a name."""
    wanted = list(annotator_storage.conditions_by_annotator(store, transaction)) if ids is None else list(ids)
    linked = set(_names_in_personal_links(store, transaction))
    numbers: dict[str, str] = {}
    for id in wanted:
        person = annotator_storage.get_annotator(store, transaction, id)
        if "name" in person.meta:
            annotator_storage.replace_annotator(store, transaction, with_name(person, ""))
        if id in linked:
            numbers[id] = _renumber_annotator(store, transaction, id)
    _forget_names_in_audit_log(store, transaction, wanted, numbers)
    return numbers


def _renumber_annotator(store: Store, transaction: Transaction, id: str) -> str:
    """Give somebody a number for a name, with all their work."""
    taken = annotator_storage.conditions_by_annotator(store, transaction)
    new = next(name for number in range(1, len(taken) + 2) if (name := f"reader-{number}") not in taken)
    person = annotator_storage.get_annotator(store, transaction, id).model_copy(update={"id": new})
    own = (tables.annotator.c.study == store.key, tables.annotator.c.id == id)
    transaction.run(
        sa.update(tables.annotator).values(id=new, **_row_without_id(rows.annotator_row(person))).where(*own)
    )
    for table in (tables.annotation, tables.worker, tables.arrival):
        mine = (table.c.study == store.key, table.c.annotator == id)
        transaction.run(sa.update(table).values(annotator=new).where(*mine))
    return new


def _row_without_id(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def _forget_names_in_audit_log(
    store: Store, transaction: Transaction, ids: Collection[str], numbers: Mapping[str, str]
) -> None:
    """Remove names from the audit log; the lines themselves stay."""
    for key, about in transaction.all(sa.select(_AUDIT.key, _AUDIT.about).where(_AUDIT.study == store.key)):
        value = from_json(about)
        new = _audit_details_without_names(value, ids, numbers)
        if new != value:
            transaction.run(sa.update(tables.audit).values(about=rows.dump_json(new)).where(_AUDIT.key == key))


def _audit_details_without_names(about: Any, ids: Collection[str], numbers: Mapping[str, str]) -> Any:
    """What a line of the audit log is about, without names."""
    if not isinstance(about, dict):
        return about
    new, annotator, several = dict(about), about.get("annotator"), about.get("annotators")
    if annotator in ids and "name" in about:
        new["name"] = FORGOTTEN_NAME
    if isinstance(annotator, str) and annotator in numbers:
        new["annotator"] = numbers[annotator]
    if isinstance(several, list):
        new["annotators"] = [numbers.get(id, id) for id in several]
    return new
