"""Judging other people's work: which annotations or marks there are to judge, and what is shown of one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.assignment_rules import AssignmentPlan, JudgedItem
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter
from finecomb.core.protocol import Protocol
from finecomb.core.records import Answers, Mark

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_ENTRY_JOIN = tables.entry.join(tables.annotation, _E.annotation == _A.key).join(
    tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator)
)
_SELECT_ENTRIES = (
    sa.select(_A.id, _A.document, _A.annotator, _A.protocol, _E.id, _E.body)
    .select_from(_ENTRY_JOIN)
    .where(
        _A.study == bind_parameter("study"),
        _A.protocol != bind_parameter("protocol"),
        _A.phase == "work",
        _A.about == "",
        _A.status == "submitted",
        _A.excluded == 0,
        _P.excluded == 0,
        sa.or_(_P.kind == "human", _P.kind == "llm"),
        _E.kind == bind_parameter("kind"),
        _E.body.is_not(None),
    )
    .order_by(_A.key, _E.key)
)


def is_judging_protocol(protocol: Protocol) -> bool:
    """Whether it asks about other people's work rather than about texts."""
    return protocol.work.unit in ("annotation", "mark")


def judged_work_plan(store: Store, transaction: Transaction) -> AssignmentPlan:
    """Everything that can be judged under the protocol in force: as it is now, since work goes on being handed in."""
    if store.head.settings.audit is None:
        return _build_judging_plan(
            store,
            _iter_judgeable_marks if store.head.protocol.work.unit == "mark" else _iter_judgeable_annotations,
            transaction,
        )
    if store.audit_plan is None:
        store.audit_plan = _build_judging_plan(store, _iter_audit_marks, transaction)
    return store.audit_plan


_ItemSource = Callable[["Store", Transaction], Iterator[tuple[str, JudgedItem, str]]]
"""What there is to be judged: its id, whose it is, and its label."""


def _build_judging_plan(store: Store, every: _ItemSource, transaction: Transaction) -> AssignmentPlan:
    items, strata = {}, {}
    only, models = store.head.settings.meta.get("documents"), store.assignment_plan().models
    for id, judged, stratum in every(store, transaction):
        if not isinstance(only, list) or judged.document in only:
            items[id] = judged
            strata[id] = [("judged", f"{stratum}/{models.get(judged.document, '')}")]
    return AssignmentPlan(documents=list(items), strata=strata, judged=items)


_MAX_IDS_PER_QUERY = 5_000  # ids in one question to the database


@functools.lru_cache(maxsize=16)
def _audit_marks_statement(marks: tuple[str, ...]) -> sa.Select[Any]:
    """The entries of marks that were drawn for an audit."""
    return (
        sa.select(_A.document, _A.annotator, _E.id, _E.body)
        .select_from(_ENTRY_JOIN)
        .where(_E.study == bind_parameter("study"), _E.kind == "mark", _E.id.in_(marks), _E.body.is_not(None))
        .order_by(_E.id)
    )


def _iter_audit_marks(store: Store, transaction: Transaction) -> Iterator[tuple[str, JudgedItem, str]]:
    """The marks of an audit, whoever made them, each with its label."""
    audit = store.head.settings.audit
    marks = audit.marks if audit else ()
    for first in range(0, len(marks), _MAX_IDS_PER_QUERY):
        statement = _audit_marks_statement(marks[first : first + _MAX_IDS_PER_QUERY])
        for document, annotator, id, body in transaction.run(statement, study=store.key):
            yield id, JudgedItem(document, annotator), from_json(body)["label"] or ""


def _iter_judgeable_marks(store: Store, transaction: Transaction) -> Iterator[tuple[str, JudgedItem, str]]:
    """Marks that have a place in the text, each with its label."""
    rows_ = transaction.run(_SELECT_ENTRIES, study=store.key, protocol=store.head.protocol.id, kind="mark")
    for _, document, annotator, _, id, body in rows_:
        value = from_json(body)
        if value["spans"]:
            yield id, JudgedItem(document, annotator), value["label"] or ""


def _iter_judgeable_annotations(store: Store, transaction: Transaction) -> Iterator[tuple[str, JudgedItem, str]]:
    """Annotations in which something was answered in words."""
    questions = {id: _prose_question_names(protocol) for id, protocol in store.head.protocols.items()}
    rows_ = transaction.run(_SELECT_ENTRIES, study=store.key, protocol=store.head.protocol.id, kind="answers")
    for id, document, annotator, protocol, _, body in rows_:
        answers = from_json(body)["answers"]
        if any(str(answers.get(name, "")).strip() for name in questions.get(protocol, ())):
            yield id, JudgedItem(document, annotator), ""


def _prose_question_names(protocol: Protocol) -> list[str]:
    questions = protocol.document_questions
    return [question.name for question in questions if question.scale_type.prose and question.name != "cannot_judge"]


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


_SELECT_MARK = (
    sa.select(_E.body, _A.protocol)
    .select_from(_ENTRY_JOIN)
    .where(_A.study == bind_parameter("study"), _E.kind == "mark", _E.id == bind_parameter("id"), _E.body.is_not(None))
)


def read_judged_content(store: Store, transaction: Transaction, about: str, unit: str) -> JudgedContent | None:
    """The annotation or mark with that id; None when it was deleted since."""
    if unit == "mark":
        row = transaction.one(_SELECT_MARK, study=store.key, id=about)
        mark = rows.mark_from_body(about, row[0]) if row else None
        return JudgedContent(row[1], (mark,), mark.answers, one=True) if row and mark else None
    for annotation in rows.read_matching_annotations(transaction, store.key, _A.id == about):
        return JudgedContent(annotation.protocol, annotation.marks, annotation.answers, one=False)
    return None
