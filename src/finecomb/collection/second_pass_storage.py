"""Storage of the second pass, in which annotators review their own texts next to anonymous marks by others."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Row, Transaction
from finecomb.collection.database.tables import named_sql_placeholder

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_IS_PREVIOUS_PASS = sa.and_(
    _A.study == named_sql_placeholder("study"),
    _A.protocol == named_sql_placeholder("protocol"),
    _A.phase == "work",
    _A.about == "",
    _A.round == named_sql_placeholder("round"),
    _A.status == "submitted",
    _A.excluded == 0,
)
_IS_OWN_WORK = sa.and_(_IS_PREVIOUS_PASS, _A.annotator == named_sql_placeholder("annotator"))
_IS_OTHERS_WORK = sa.and_(
    _IS_PREVIOUS_PASS, _A.annotator != named_sql_placeholder("annotator"), _P.kind == "human", _P.excluded == 0
)
_ANNOTATOR_JOIN = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_SELECT_OWN_DOCUMENTS = sa.select(_A.document).where(_IS_OWN_WORK).order_by(_A.number, _A.key)
_SELECT_OTHERS_DOCUMENTS = sa.select(_A.document).select_from(_ANNOTATOR_JOIN).where(_IS_OTHERS_WORK).distinct()


def _previous_pass_parameters(store: Store, annotator: str) -> dict[str, object]:
    head = store.head
    return {
        "study": store.key,
        "protocol": head.protocol.id,
        "round": head.settings.round - 1,
        "annotator": annotator,
    }


def documents_due_in_second_pass(store: Store, transaction: Transaction, annotator: str) -> list[str]:
    """Return the documents that the annotator and others submitted in the previous pass, in the annotator's order."""
    values = _previous_pass_parameters(store, annotator)
    theirs = {document for (document,) in transaction.fetch_all(_SELECT_OTHERS_DOCUMENTS, **values)}
    return [document for (document,) in transaction.fetch_all(_SELECT_OWN_DOCUMENTS, **values) if document in theirs]


@dataclass(frozen=True, slots=True)
class PreviousPass:
    """Annotator's annotation of a text in the previous pass, and the marks of others in the same text."""

    id: str
    entries: Sequence[Row]
    """Kind, ID and body of each entry to copy. Copied marks have new IDs and refer to the original marks."""
    copies: dict[str, str]
    """ID of the original mark, by ID of the copy."""
    offered: Sequence[str]
    """IDs of the marks that others made in the text."""


_SELECT_ANNOTATION = sa.select(_A.key, _A.id).where(_IS_OWN_WORK, _A.document == named_sql_placeholder("document"))
_SELECT_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.body)
    .where(_E.annotation == named_sql_placeholder("annotation"), _E.body.is_not(None), _E.kind != "decision")
    .order_by(_E.key)
)
_SELECT_OTHERS_MARKS = (
    sa.select(_E.id, _E.body)
    .select_from(_ANNOTATOR_JOIN.join(tables.entry, _E.annotation == _A.key))
    .where(_IS_OTHERS_WORK, _A.document == named_sql_placeholder("document"), _E.kind == "mark", _E.body.is_not(None))
    .order_by(_E.key)
)
_INSERT_ENTRY = sa.insert(tables.entry).values(
    {name: named_sql_placeholder(name) for name in ("study", "annotation", "kind", "id", "version", "body")}
)


def read_previous_pass(store: Store, transaction: Transaction, annotator: str, document: str) -> PreviousPass:
    """Return the annotator's previous annotation of a document and the marks of others, to start a second pass."""
    values = {**_previous_pass_parameters(store, annotator), "document": document}
    key, id = transaction.fetch_first(_SELECT_ANNOTATION, **values) or (None, "")
    entries: list[Row] = []
    copies: dict[str, str] = {}
    for kind, old, body in transaction.fetch_all(_SELECT_ENTRIES, annotation=key):
        new = secrets.token_hex(12) if kind == "mark" else old
        if kind == "mark":
            copies[new] = old
            body = rows.dump_json(from_json(body) | {"made_from": [old]})
        entries.append((kind, new, body))
    offered = [mark for mark, body in transaction.fetch_all(_SELECT_OTHERS_MARKS, **values) if from_json(body)["spans"]]
    return PreviousPass(id, entries, copies, offered)


def copy_previous_pass(store: Store, transaction: Transaction, annotation: int, before: PreviousPass) -> None:
    """Copy the entries of the previous pass into a new annotation."""
    for kind, id, body in before.entries:
        values = {"study": store.key, "annotation": annotation, "kind": kind, "id": id}
        transaction.execute(_INSERT_ENTRY, version=1, body=body, **values)
