"""The second pass: everybody looks at their texts again, beside what the others marked. Nobody is named."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Row, Transaction
from finecomb.collection.database.tables import bind_parameter

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_IS_PREVIOUS_PASS = sa.and_(
    _A.study == bind_parameter("study"),
    _A.protocol == bind_parameter("protocol"),
    _A.phase == "work",
    _A.about == "",
    _A.round == bind_parameter("round"),
    _A.status == "submitted",
    _A.excluded == 0,
)
_IS_OWN_WORK = sa.and_(_IS_PREVIOUS_PASS, _A.annotator == bind_parameter("annotator"))
_IS_OTHERS_WORK = sa.and_(
    _IS_PREVIOUS_PASS, _A.annotator != bind_parameter("annotator"), _P.kind == "human", _P.excluded == 0
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
    """The documents that somebody handed in in the pass before and others did too, in the order they were read."""
    values = _previous_pass_parameters(store, annotator)
    theirs = {document for (document,) in transaction.all(_SELECT_OTHERS_DOCUMENTS, **values)}
    return [document for (document,) in transaction.all(_SELECT_OWN_DOCUMENTS, **values) if document in theirs]


@dataclass(frozen=True, slots=True)
class PreviousPass:
    """What somebody did with a text in the pass before, and what the others marked there."""

    id: str
    entries: Sequence[Row]
    """Kind, id and body; marks with new ids, made from the old ones."""
    copies: dict[str, str]
    """The old id of each mark, by the new one."""
    offered: Sequence[str]
    """Ids of the others' marks."""


_SELECT_ANNOTATION = sa.select(_A.key, _A.id).where(_IS_OWN_WORK, _A.document == bind_parameter("document"))
_SELECT_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.body)
    .where(_E.annotation == bind_parameter("annotation"), _E.body.is_not(None), _E.kind != "decision")
    .order_by(_E.key)
)
_SELECT_OTHERS_MARKS = (
    sa.select(_E.id, _E.body)
    .select_from(_ANNOTATOR_JOIN.join(tables.entry, _E.annotation == _A.key))
    .where(_IS_OTHERS_WORK, _A.document == bind_parameter("document"), _E.kind == "mark", _E.body.is_not(None))
    .order_by(_E.key)
)
_INSERT_ENTRY = sa.insert(tables.entry).values(
    {name: bind_parameter(name) for name in ("study", "annotation", "kind", "id", "version", "body")}
)


def read_previous_pass(store: Store, transaction: Transaction, annotator: str, document: str) -> PreviousPass:
    """What a second look at a document begins with."""
    values = {**_previous_pass_parameters(store, annotator), "document": document}
    key, id = transaction.one(_SELECT_ANNOTATION, **values) or (None, "")
    entries: list[Row] = []
    copies: dict[str, str] = {}
    for kind, old, body in transaction.all(_SELECT_ENTRIES, annotation=key):
        new = secrets.token_hex(12) if kind == "mark" else old
        if kind == "mark":
            copies[new] = old
            body = rows.dump_json(from_json(body) | {"made_from": [old]})
        entries.append((kind, new, body))
    offered = [mark for mark, body in transaction.all(_SELECT_OTHERS_MARKS, **values) if from_json(body)["spans"]]
    return PreviousPass(id, entries, copies, offered)


def copy_previous_pass(store: Store, transaction: Transaction, annotation: int, before: PreviousPass) -> None:
    """Put copies of what was there before into a new annotation."""
    for kind, id, body in before.entries:
        values = {"study": store.key, "annotation": annotation, "kind": kind, "id": id}
        transaction.run(_INSERT_ENTRY, version=1, body=body, **values)
