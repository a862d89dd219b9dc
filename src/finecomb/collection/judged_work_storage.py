"""Storage for judging other people's work: the annotations or marks to judge, and the content shown for each."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.assignment_rules import AssignmentPlan, JudgedItem
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder
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
        _A.study == named_sql_placeholder("study"),
        _A.protocol != named_sql_placeholder("protocol"),
        _A.phase == "work",
        _A.about == "",
        _A.status == "submitted",
        _A.excluded == 0,
        _P.excluded == 0,
        sa.or_(_P.kind == "human", _P.kind == "llm"),
        _E.kind == named_sql_placeholder("kind"),
        _E.body.is_not(None),
    )
    .order_by(_A.key, _E.key)
)


def is_judging_protocol(protocol: Protocol) -> bool:
    """Return whether a protocol asks about annotations or marks instead of texts."""
    return protocol.work.unit in ("annotation", "mark")


def read_judged_work_plan(store: Store, transaction: Transaction) -> AssignmentPlan:
    """Return the plan of everything that can be judged now under the current protocol.

    The plan of an audit is cached. Other plans are read each time, because new work is submitted continually.
    """
    if store.head.settings.audit is None:
        return _build_judging_plan(store, _iter_judgeable_items(store, transaction))
    if store.audit_plan is None:
        store.audit_plan = _build_judging_plan(store, _iter_marks_to_audit(store, transaction))
    return store.audit_plan


_ItemWithLabel = tuple[str, JudgedItem, str]
"""ID of an item to judge, the item itself, and its label, which is empty for an annotation."""


def _build_judging_plan(store: Store, every: Iterator[_ItemWithLabel]) -> AssignmentPlan:
    items, strata = {}, {}
    only, models = store.head.settings.meta.get("documents"), store.assignment_plan().models
    for id, judged, stratum in every:
        if not isinstance(only, list) or judged.document in only:
            items[id] = judged
            strata[id] = [("judged", f"{stratum}/{models.get(judged.document, '')}")]
    return AssignmentPlan(documents=list(items), strata=strata, judged=items)


_MAX_IDS_PER_QUERY = 5_000  # limits the number of parameters per statement


@functools.lru_cache(maxsize=16)
def _audit_marks_statement(marks: tuple[str, ...]) -> sa.Select[Any]:
    """Return the statement that selects the marks of an audit."""
    return (
        sa.select(_A.document, _A.annotator, _E.id, _E.body)
        .select_from(_ENTRY_JOIN)
        .where(_E.study == named_sql_placeholder("study"), _E.kind == "mark", _E.id.in_(marks), _E.body.is_not(None))
        .order_by(_E.id)
    )


def _iter_marks_to_audit(store: Store, transaction: Transaction) -> Iterator[_ItemWithLabel]:
    """Yield the marks to judge in an audit, by any annotator."""
    audit = store.head.settings.audit
    marks = audit.marks if audit else ()
    for first in range(0, len(marks), _MAX_IDS_PER_QUERY):
        statement = _audit_marks_statement(marks[first : first + _MAX_IDS_PER_QUERY])
        for document, annotator, id, body in transaction.execute(statement, study=store.key):
            yield id, JudgedItem(document, annotator), from_json(body)["label"] or ""


def _iter_judgeable_items(store: Store, transaction: Transaction) -> Iterator[_ItemWithLabel]:
    """Yield the items to judge: marks with spans, or annotations with at least one free-text answer."""
    head, is_mark_judged = store.head, store.head.protocol.work.unit == "mark"
    questions = {
        id: [
            question.name
            for question in protocol.document_questions
            if question.scale_type.prose and question.name != "cannot_judge"
        ]
        for id, protocol in head.protocols.items()
    }
    kind = "mark" if is_mark_judged else "answers"
    entries = transaction.execute(_SELECT_ENTRIES, study=store.key, protocol=head.protocol.id, kind=kind)
    for annotation, document, annotator, protocol_id, mark, body in entries:
        value = from_json(body)
        if is_mark_judged and value["spans"]:
            yield mark, JudgedItem(document, annotator), value["label"] or ""
        elif not is_mark_judged and any(
            str(value["answers"].get(name, "")).strip() for name in questions.get(protocol_id, ())
        ):
            yield annotation, JudgedItem(document, annotator), ""


# --- content -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgedContent:
    """Marks and answers of a person whose work is judged, without the person's identity."""

    protocol: str
    marks: tuple[Mark, ...]
    answers: Answers
    """Answers about the mark, when a mark is judged, or about the text."""
    one: bool
    """True when a single mark is judged."""


_SELECT_MARK = (
    sa.select(_E.body, _A.protocol)
    .select_from(_ENTRY_JOIN)
    .where(
        _A.study == named_sql_placeholder("study"),
        _E.kind == "mark",
        _E.id == named_sql_placeholder("id"),
        _E.body.is_not(None),
    )
)


def read_judged_content(store: Store, transaction: Transaction, about: str, unit: str) -> JudgedContent | None:
    """Return the content of an annotation or mark to judge, or None when it was deleted."""
    if unit == "mark":
        row = transaction.fetch_first(_SELECT_MARK, study=store.key, id=about)
        mark = rows.mark_from_body(about, row[0]) if row else None
        return JudgedContent(row[1], (mark,), mark.answers, one=True) if row and mark else None
    for annotation in rows.read_matching_annotations(transaction, store.key, _A.id == about):
        return JudgedContent(annotation.protocol, annotation.marks, annotation.answers, one=False)
    return None
