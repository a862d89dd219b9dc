"""Storage of adjudicated gold: one gold annotation per text, which each decision rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from finecomb.collection import audit_log_storage
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.record_storage import sync_annotation_entries
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.statistics.gold.decisions import Decision, DecisionType
from finecomb.statistics.gold.disputes import (
    Dispute,
    gold_marks_of_dispute,
    is_adjudication_finished,
    pair_disputes_with_decisions,
)
from finecomb.statistics.gold.gold_merge import GOLD_ANNOTATOR_ID

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P = tables.annotation.c, tables.annotator.c


@dataclass(frozen=True, slots=True)
class AdjudicationText:
    """Text to adjudicate, with the disputes and annotations on which decisions are based."""

    document: str
    protocol: str
    places: tuple[Dispute, ...]
    made_from: tuple[str, ...]
    """IDs of the annotations in which the disputes were found."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """Requested decision about one dispute."""

    place: Dispute
    base: int
    """Version of the decision shown to the researcher; 0 when the dispute was undecided."""
    what: DecisionType | None
    """Kind of decision; None undoes an earlier decision."""
    marks: tuple[Mark, ...] = ()
    """Marks to store in the gold annotation for this dispute."""
    taken: str | None = None


class DecisionConflictError(FinecombError):
    """Conflict with a decision that another researcher made after the page was loaded."""


def find_gold_annotation(store: Store, transaction: Transaction, document: str, protocol: str) -> Annotation | None:
    """Return the adjudicated gold annotation of a text, or None. Raise an error if its gold has another source."""
    is_gold = sa.and_(
        _A.document == document,
        _A.annotator == GOLD_ANNOTATOR_ID,
        _A.protocol == protocol,
        _A.round == 0,
        _A.about == "",
    )
    golds = rows.read_matching_annotations(transaction, store.key, is_gold)
    if golds and not is_gold_from_adjudication(golds[0]):
        raise FinecombError(
            f"text {document!r} already has gold that was not adjudicated in this study ({golds[0].id!r}); "
            "export the study without it to adjudicate the text"
        )
    return golds[0] if golds else None


def is_gold_from_adjudication(gold: Annotation) -> bool:
    """Return whether a gold annotation was made by adjudication in this study."""
    return TaskMeta.from_meta(gold.meta).adjudication is not None


def decisions_by_dispute(gold: Annotation | None) -> dict[str, Decision]:
    """Return the decisions made so far in a gold annotation, by dispute."""
    stored = TaskMeta.from_meta(gold.meta).adjudication if gold else None
    return {key: Decision.model_validate(decision) for key, decision in (stored or {}).items()}


def save_decisions(
    store: Store, transaction: Transaction, by: str, text: AdjudicationText, rulings: Sequence[DecisionRequest]
) -> Annotation | None:
    """Save decisions about the disputes of one text, all or none, and return the new gold annotation.

    Repeating a decision changes nothing. A decision based on an outdated version raises `DecisionConflictError`. The
    annotation is a draft until every dispute is decided.
    """
    gold = find_gold_annotation(store, transaction, text.document, text.protocol)
    before, marks = decisions_by_dispute(gold), {mark.id: mark for mark in gold.marks} if gold else {}
    now, gold_marks_now = dict(before), dict(marks)
    count = (TaskMeta.from_meta(gold.meta).rulings if gold else None) or 0
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


def _apply_decision_request(
    store: Store,
    by: str,
    document: str,
    ruling: DecisionRequest,
    number: int,
    now: dict[str, Decision],
    marks: dict[str, Mark],
) -> bool:
    """Apply one requested decision to the stored decisions and gold marks, and return whether anything changed."""
    key = ruling.place.key
    old = now.get(key)
    wanted = gold_marks_of_dispute(document, ruling.place, ruling.marks)
    same = old is not None and (old.what, old.taken) == (ruling.what, ruling.taken)
    if (old is None and ruling.what is None) or (same and old and tuple(marks[id] for id in old.gold) == wanted):
        return False
    if (old.version if old else 0) != ruling.base:
        raise DecisionConflictError(
            f"{old.by} has decided this dispute since you opened it. Review their decision before you change it."
            if old
            else "Someone has undone this decision since you opened it. Review the marks again."
        )
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


def _build_gold_annotation(
    store: Store,
    text: AdjudicationText,
    gold: Annotation | None,
    now: Mapping[str, Decision],
    count: int,
    marks: Iterable[Mark],
) -> Annotation:
    moment = datetime.fromtimestamp(store.clock(), UTC)
    done = is_adjudication_finished(pair_disputes_with_decisions(text.places, now))
    decided = {key: decision.model_dump(mode="json", exclude_defaults=True) for key, decision in now.items()}
    circumstances = TaskMeta.from_meta(gold.meta if gold else {})
    return Annotation(
        id=f"{text.document}/adjudicated",
        document=text.document,
        annotator=GOLD_ANNOTATOR_ID,
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
    """Write a gold annotation and its marks, and create the gold annotator if it is missing.

    Raise an error when an annotator of another kind has the name of the gold annotator.
    """
    columns = rows.annotation_row(gold)
    if new:
        row = transaction.fetch_first(sa.select(_P.kind).where(_P.study == store.key, _P.id == GOLD_ANNOTATOR_ID))
        if row is None:
            (place,) = transaction.fetch_first(sa.select(sa.func.count()).where(_P.study == store.key)) or (0,)
            annotator: dict[str, Any] = rows.annotator_row(Annotator(id=GOLD_ANNOTATOR_ID, kind="gold"))
            transaction.execute(sa.insert(tables.annotator).values(study=store.key, place=place, **annotator))
        elif row[0] != "gold":
            raise FinecombError(
                f"annotator {GOLD_ANNOTATOR_ID!r} is of kind {row[0]!r}, but this name is reserved for kind 'gold'; "
                "rename the annotator"
            )
        insert = sa.insert(tables.annotation).values(study=store.key, number=None, lease=None, **columns)
        (key,) = transaction.fetch_first(insert.returning(_A.key)) or (0,)
    else:
        mine = (_A.study == store.key, _A.id == gold.id)
        transaction.execute(sa.update(tables.annotation).values(**columns).where(*mine))
        (key,) = transaction.fetch_first(sa.select(_A.key).where(*mine)) or (0,)
    sync_annotation_entries(store, transaction, key, gold)
