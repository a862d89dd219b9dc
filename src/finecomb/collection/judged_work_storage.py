"""Judging other people's work: which annotations or marks there are to judge, and what is shown of one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.assignment_rules import JudgedItem, Plan
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import given
from finecomb.core.protocol import Protocol
from finecomb.core.records import Answers, Mark

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_FROM = tables.entry.join(tables.annotation, _E.annotation == _A.key).join(
    tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator)
)
_ENTRIES = (
    sa.select(_A.id, _A.document, _A.annotator, _A.protocol, _E.id, _E.body)
    .select_from(_FROM)
    .where(
        _A.study == given("study"),
        _A.protocol != given("protocol"),
        _A.phase == "work",
        _A.about == "",
        _A.status == "submitted",
        _A.excluded == 0,
        _P.excluded == 0,
        sa.or_(_P.kind == "human", _P.kind == "llm"),
        _E.kind == given("kind"),
        _E.body.is_not(None),
    )
    .order_by(_A.key, _E.key)
)


def judges(protocol: Protocol) -> bool:
    """Whether it asks about other people's work rather than about texts."""
    return protocol.work.unit in ("annotation", "mark")


def plan(store: Store, transaction: Transaction) -> Plan:
    """Everything that can be judged under the protocol in force: as it is now, since work goes on being handed in."""
    if store.head.settings.audit is None:
        return _plan(store, _marks if store.head.protocol.work.unit == "mark" else _annotations, transaction)
    if store.audit_plan is None:
        store.audit_plan = _plan(store, _drawn_marks, transaction)
    return store.audit_plan


_Judged = Callable[["Store", Transaction], Iterator[tuple[str, JudgedItem, str]]]
"""What there is to be judged: its id, whose it is, and its label."""


def _plan(store: Store, every: _Judged, transaction: Transaction) -> Plan:
    items, strata = {}, {}
    only, models = store.head.settings.meta.get("documents"), store.plan().models
    for id, judged, stratum in every(store, transaction):
        if not isinstance(only, list) or judged.document in only:
            items[id] = judged
            strata[id] = [("judged", f"{stratum}/{models.get(judged.document, '')}")]
    return Plan(documents=list(items), strata=strata, judged=items)


_MOST_AT_ONCE = 5_000  # ids in one question to the database


@functools.lru_cache(maxsize=16)
def _drawn(marks: tuple[str, ...]) -> sa.Select[Any]:
    """The entries of marks that were drawn for an audit."""
    return (
        sa.select(_A.document, _A.annotator, _E.id, _E.body)
        .select_from(_FROM)
        .where(_E.study == given("study"), _E.kind == "mark", _E.id.in_(marks), _E.body.is_not(None))
        .order_by(_E.id)
    )


def _drawn_marks(store: Store, transaction: Transaction) -> Iterator[tuple[str, JudgedItem, str]]:
    """The marks of an audit, whoever made them, each with its label."""
    audit = store.head.settings.audit
    marks = audit.marks if audit else ()
    for first in range(0, len(marks), _MOST_AT_ONCE):
        statement = _drawn(marks[first : first + _MOST_AT_ONCE])
        for document, annotator, id, body in transaction.run(statement, study=store.key):
            yield id, JudgedItem(document, annotator), from_json(body)["label"] or ""


def _marks(store: Store, transaction: Transaction) -> Iterator[tuple[str, JudgedItem, str]]:
    """Marks that have a place in the text, each with its label."""
    rows_ = transaction.run(_ENTRIES, study=store.key, protocol=store.head.protocol.id, kind="mark")
    for _, document, annotator, _, id, body in rows_:
        value = from_json(body)
        if value["spans"]:
            yield id, JudgedItem(document, annotator), value["label"] or ""


def _annotations(store: Store, transaction: Transaction) -> Iterator[tuple[str, JudgedItem, str]]:
    """Annotations in which something was answered in words."""
    questions = {id: _in_words(protocol) for id, protocol in store.head.protocols.items()}
    rows_ = transaction.run(_ENTRIES, study=store.key, protocol=store.head.protocol.id, kind="answers")
    for id, document, annotator, protocol, _, body in rows_:
        answers = from_json(body)["answers"]
        if any(str(answers.get(name, "")).strip() for name in questions.get(protocol, ())):
            yield id, JudgedItem(document, annotator), ""


def _in_words(protocol: Protocol) -> list[str]:
    questions = protocol.document_questions
    return [question.name for question in questions if question.kind.prose and question.name != "cannot_judge"]


# --- one of them -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgedContent:
    """What somebody marked and answered, without who it was."""

    protocol: str
    marks: tuple[Mark, ...]
    answers: Answers
    """About the mark in question, or about the text."""
    one: bool
    """Whether it is one mark that is judged."""


_MARK = (
    sa.select(_E.body, _A.protocol)
    .select_from(_FROM)
    .where(_A.study == given("study"), _E.kind == "mark", _E.id == given("id"), _E.body.is_not(None))
)


def judged_content(store: Store, transaction: Transaction, about: str, unit: str) -> JudgedContent | None:
    """The annotation or mark with that id; None when it was deleted since."""
    if unit == "mark":
        row = transaction.one(_MARK, study=store.key, id=about)
        mark = rows.mark_of(about, row[0]) if row else None
        return JudgedContent(row[1], (mark,), mark.answers, one=True) if row and mark else None
    for annotation in rows.some_annotations(transaction, store.key, _A.id == about):
        return JudgedContent(annotation.protocol, annotation.marks, annotation.answers, one=False)
    return None
