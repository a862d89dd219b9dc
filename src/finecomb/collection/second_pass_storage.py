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
from finecomb.collection.database.tables import given

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_BEFORE = sa.and_(
    _A.study == given("study"),
    _A.protocol == given("protocol"),
    _A.phase == "work",
    _A.about == "",
    _A.round == given("round"),
    _A.status == "submitted",
    _A.excluded == 0,
)
_OWN = sa.and_(_BEFORE, _A.annotator == given("annotator"))
_OTHERS = sa.and_(_BEFORE, _A.annotator != given("annotator"), _P.kind == "human", _P.excluded == 0)
_JOINED = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_MINE = sa.select(_A.document).where(_OWN).order_by(_A.number, _A.key)
_THEIRS = sa.select(_A.document).select_from(_JOINED).where(_OTHERS).distinct()


def _pass_before(store: Store, annotator: str) -> dict[str, object]:
    head = store.head
    return {
        "study": store.key,
        "protocol": head.protocol.id,
        "round": head.settings.round - 1,
        "annotator": annotator,
    }


def shared(store: Store, transaction: Transaction, annotator: str) -> list[str]:
    """The documents that somebody handed in in the pass before and others did too, in the order they were read."""
    values = _pass_before(store, annotator)
    theirs = {document for (document,) in transaction.all(_THEIRS, **values)}
    return [document for (document,) in transaction.all(_MINE, **values) if document in theirs]


@dataclass(frozen=True, slots=True)
class Earlier:
    """What somebody did with a text in the pass before, and what the others marked there."""

    id: str
    entries: Sequence[Row]
    """Kind, id and body; marks with new ids, made from the old ones."""
    copies: dict[str, str]
    """The old id of each mark, by the new one."""
    offered: Sequence[str]
    """Ids of the others' marks."""


_ANNOTATION = sa.select(_A.key, _A.id).where(_OWN, _A.document == given("document"))
_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.body)
    .where(_E.annotation == given("annotation"), _E.body.is_not(None), _E.kind != "decision")
    .order_by(_E.key)
)
_MARKED = (
    sa.select(_E.id, _E.body)
    .select_from(_JOINED.join(tables.entry, _E.annotation == _A.key))
    .where(_OTHERS, _A.document == given("document"), _E.kind == "mark", _E.body.is_not(None))
    .order_by(_E.key)
)
_INSERT = sa.insert(tables.entry).values(
    {name: given(name) for name in ("study", "annotation", "kind", "id", "version", "body")}
)


def earlier(store: Store, transaction: Transaction, annotator: str, document: str) -> Earlier:
    """What a second look at a document begins with."""
    values = {**_pass_before(store, annotator), "document": document}
    key, id = transaction.one(_ANNOTATION, **values) or (None, "")
    entries: list[Row] = []
    copies: dict[str, str] = {}
    for kind, old, body in transaction.all(_ENTRIES, annotation=key):
        new = secrets.token_hex(12) if kind == "mark" else old
        if kind == "mark":
            copies[new] = old
            body = rows.dumps(from_json(body) | {"made_from": [old]})
        entries.append((kind, new, body))
    offered = [mark for mark, body in transaction.all(_MARKED, **values) if from_json(body)["spans"]]
    return Earlier(id, entries, copies, offered)


def begin(store: Store, transaction: Transaction, annotation: int, before: Earlier) -> None:
    """Put copies of what was there before into a new annotation."""
    for kind, id, body in before.entries:
        values = {"study": store.key, "annotation": annotation, "kind": kind, "id": id}
        transaction.run(_INSERT, version=1, body=body, **values)
