"""Gold that researchers decide place by place: one annotation for each text, written with every decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from finecomb.collection import audit_log_storage
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.statistics.gold.decisions import Decision, DecisionType
from finecomb.statistics.gold.disputes import (
    Dispute,
    dispute_decisions,
    gold_marks_of_dispute,
    is_adjudication_finished,
)
from finecomb.statistics.gold.gold_merge import GOLD

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _E, _P = tables.annotation.c, tables.entry.c, tables.annotator.c


@dataclass(frozen=True, slots=True)
class AdjudicationText:
    """A text to be adjudicated, as it was read a moment ago."""

    document: str
    protocol: str
    places: tuple[Dispute, ...]
    made_from: tuple[str, ...]
    """Ids of the annotations that were read."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What somebody wants decided about one place."""

    place: Dispute
    base: int
    """The version that was on the screen; 0 where nothing was decided yet."""
    what: DecisionType | None
    """None takes the decision back."""
    marks: tuple[Mark, ...] = ()
    """What gold is to have there."""
    taken: str | None = None


class DecisionConflictError(FinecombError):
    """Somebody else decided in the meantime."""


def find_gold_annotation(store: Store, transaction: Transaction, document: str, protocol: str) -> Annotation | None:
    """The gold annotation of a text, if decisions were made about it; gold from elsewhere is refused."""
    golds = rows.read_matching_annotations(
        transaction, store.key, sa.and_(*_gold_annotation_sql_conditions(document, protocol))
    )
    if golds and not is_adjudicated_here(golds[0]):
        raise FinecombError(
            f"text {document!r} has gold already ({golds[0].id!r}), which was not decided here; "
            "export the study without it to adjudicate the text"
        )
    return golds[0] if golds else None


def is_adjudicated_here(gold: Annotation) -> bool:
    """Whether a gold annotation was decided here."""
    return TaskMeta.from_meta(gold.meta).adjudication is not None


def _gold_annotation_sql_conditions(document: str, protocol: str) -> tuple[sa.ColumnElement[bool], ...]:
    return _A.document == document, _A.annotator == GOLD, _A.protocol == protocol, _A.round == 0, _A.about == ""


def decisions_by_dispute(gold: Annotation | None) -> dict[str, Decision]:
    """What was decided so far, by place."""
    stored = TaskMeta.from_meta(gold.meta).adjudication if gold else None
    return {key: Decision.model_validate(decision) for key, decision in (stored or {}).items()}


def save_decisions(
    store: Store, transaction: Transaction, by: str, text: AdjudicationText, rulings: Sequence[DecisionRequest]
) -> Annotation | None:
    """Write decisions about places of one text, all or none; returns the gold annotation as it is then.

    Asking for what is decided already changes nothing. A decision about another version than the present one raises
    `DecisionConflictError`. The annotation is a draft until every place is settled.
    """
    gold = find_gold_annotation(store, transaction, text.document, text.protocol)
    before, marks = decisions_by_dispute(gold), {mark.id: mark for mark in gold.marks} if gold else {}
    now, gold_marks_now = dict(before), dict(marks)
    count = _all_time_decision_count(gold)
    for ruling in rulings:
        count += _apply_decision_request(store, by, text.document, ruling, count + 1, now, gold_marks_now)
    if now == before and gold is not None:
        return gold
    annotation = _build_gold_annotation(store, text, gold, now, count, gold_marks_now.values())
    _write_gold_annotation(store, transaction, annotation, new=gold is None)
    for key in dict.fromkeys([*now, *before]):
        if now.get(key) != before.get(key):
            decisions_of = [decided[key].what if key in decided else "undecided" for decided in (now, before)]
            audit_log_storage.record_action(
                store,
                transaction,
                by,
                "adjudicated",
                document=text.document,
                place=key,
                now=decisions_of[0],
                before=decisions_of[1],
            )
    return annotation


def _all_time_decision_count(gold: Annotation | None) -> int:
    """How many decisions were ever made about a text."""
    return (TaskMeta.from_meta(gold.meta).rulings if gold else None) or 0


def _apply_decision_request(
    store: Store,
    by: str,
    document: str,
    ruling: DecisionRequest,
    number: int,
    now: dict[str, Decision],
    marks: dict[str, Mark],
) -> bool:
    """Change decisions and gold marks as one ruling says; returns whether anything changed."""
    key = ruling.place.key
    old = now.get(key)
    wanted = gold_marks_of_dispute(document, ruling.place, ruling.marks)
    same = old is not None and (old.what, old.taken) == (ruling.what, ruling.taken)
    if (old is None and ruling.what is None) or (same and old and tuple(marks[id] for id in old.gold) == wanted):
        return False
    if (old.version if old else 0) != ruling.base:
        raise DecisionConflictError(_conflict_message(old))
    for id in old.gold if old else ():
        del marks[id]
    now.pop(key, None)
    if ruling.what is not None:
        now[key] = Decision(
            what=ruling.what,
            by=by,
            when=datetime.fromtimestamp(store.clock(), UTC),
            version=number,
            taken=ruling.taken,
            readings=tuple(voice.mark.id for voice in ruling.place.opinions),
            gold=tuple(mark.id for mark in wanted),
        )
        marks.update({mark.id: mark for mark in wanted})
    return True


def _conflict_message(old: Decision | None) -> str:
    if old is None:
        return "Somebody took the decision about this place back since you opened it. Look at it again."
    return f"{old.by} decided about this place since you opened it. Look at what they decided, then change it or not."


def _build_gold_annotation(
    store: Store,
    text: AdjudicationText,
    gold: Annotation | None,
    now: Mapping[str, Decision],
    count: int,
    marks: Iterable[Mark],
) -> Annotation:
    moment = datetime.fromtimestamp(store.clock(), UTC)
    done = is_adjudication_finished(dispute_decisions(text.places, now))
    decided = {key: decision.model_dump(mode="json", exclude_defaults=True) for key, decision in now.items()}
    circumstances = TaskMeta.from_meta(gold.meta if gold else {})
    return Annotation(
        id=f"{text.document}/adjudicated",
        document=text.document,
        annotator=GOLD,
        protocol=text.protocol,
        status="submitted" if done else "draft",
        marks=tuple(marks),
        made_from=tuple(dict.fromkeys([*(gold.made_from if gold else ()), *text.made_from])),
        started=gold.started if gold else moment,
        submitted=moment if done else None,
        excluded=gold.excluded if gold else None,
        meta=replace(circumstances, adjudication=decided, rulings=count).to_meta(),
    )


# --- writing -----------------------------------------------------------------------------------------------------


def _write_gold_annotation(store: Store, transaction: Transaction, gold: Annotation, new: bool) -> None:
    columns = rows.annotation_row(gold)
    if new:
        _ensure_gold_annotator(store, transaction)
        insert = sa.insert(tables.annotation).values(study=store.key, number=None, lease=None, **columns)
        (key,) = transaction.one(insert.returning(_A.key)) or (None,)
    else:
        mine = (_A.study == store.key, _A.id == gold.id)
        transaction.run(sa.update(tables.annotation).values(**columns).where(*mine))
        (key,) = transaction.one(sa.select(_A.key).where(*mine)) or (None,)
    _sync_mark_entries(store, transaction, key, gold.marks)


def _ensure_gold_annotator(store: Store, transaction: Transaction) -> None:
    """Have an annotator that is gold; somebody else of that name is refused."""
    row = transaction.one(sa.select(_P.kind).where(_P.study == store.key, _P.id == GOLD))
    if row is not None and row[0] != "gold":
        raise FinecombError(f"annotator {GOLD!r} is of kind {row[0]}; that name is kept for gold")
    if row is None:
        (place,) = transaction.one(sa.select(sa.func.count()).where(_P.study == store.key)) or (0,)
        columns: dict[str, Any] = rows.annotator_row(Annotator(id=GOLD, kind="gold"))
        transaction.run(sa.insert(tables.annotator).values(study=store.key, place=place, **columns))


def _sync_mark_entries(store: Store, transaction: Transaction, key: int, marks: Iterable[Mark]) -> None:
    """Bring the entries of an annotation to what it has now; what is gone stays as a deleted entry."""
    entries = (_E.annotation == key, _E.kind == "mark")
    stored = {
        id: (version, body)
        for id, version, body in transaction.all(sa.select(_E.id, _E.version, _E.body).where(*entries))
    }
    wanted: dict[str, str | None] = {**dict.fromkeys(stored), **{mark.id: rows.mark_body(mark) for mark in marks}}
    for id, body in wanted.items():
        if id not in stored:
            values = {"study": store.key, "annotation": key, "kind": "mark", "id": id, "version": 1, "body": body}
            transaction.run(sa.insert(tables.entry).values(**values))
        elif stored[id][1] != body:
            changed = sa.update(tables.entry).values(version=stored[id][0] + 1, body=body)
            transaction.run(changed.where(*entries, _E.id == id))
