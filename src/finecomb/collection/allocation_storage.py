"""Adaptive allocation: draw the text that most narrows the interval around the mean. Runs on the writer thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from pydantic_core import from_json

from finecomb.collection import assignment_rules
from finecomb.collection.assignment_rules import AnnotatorAssignmentState
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.core.records import Allocation
from finecomb.statistics.judges.text_allocation import (
    JudgeTextSummary,
    TextStrata,
    build_text_strata,
    draw_next_text,
    shrunk_stratum_deviations,
)

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

Floats = NDArray[np.float64]
_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_IS_MARK_ENTRY = sa.and_(_E.annotation == _A.key, _E.kind == "mark", _E.body.is_not(None))
_IS_ANSWERS_ENTRY = sa.and_(_E.annotation == _A.key, _E.kind == "answers", _E.body.is_not(None))
_ANNOTATOR_JOIN = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_IS_SUBMITTED_HUMAN_WORK = sa.and_(
    _A.study == named_sql_placeholder("study"),
    _A.protocol == named_sql_placeholder("protocol"),
    _A.phase == "work",
    _A.round == 0,
    _A.about == "",
    _A.status == "submitted",
    _A.excluded == 0,
    _P.excluded == 0,
)
_SELECT_MARK_COUNTS = (
    sa.select(_A.document, sa.func.count(_E.key))
    .select_from(_ANNOTATOR_JOIN.outerjoin(tables.entry, _IS_MARK_ENTRY))
    .where(_IS_SUBMITTED_HUMAN_WORK, _P.kind == "human")
    .group_by(_A.key, _A.document)
)
_SELECT_ANSWERS = (
    sa.select(_A.document, _E.body)
    .select_from(_ANNOTATOR_JOIN.join(tables.entry, _IS_ANSWERS_ENTRY))
    .where(_IS_SUBMITTED_HUMAN_WORK, _P.kind == "human")
)
_SELECT_JUDGE_MARKS = (
    sa.select(_A.annotator, _A.document, _E.body)
    .select_from(_ANNOTATOR_JOIN.outerjoin(tables.entry, _IS_MARK_ENTRY))
    .where(_IS_SUBMITTED_HUMAN_WORK)
)


@dataclass(frozen=True, slots=True)
class DrawnText:
    """Text drawn for an annotator, with the values stored in the task's `meta`."""

    document: str
    stratum: str
    chance: float
    """Probability with which this text was drawn; never 0."""
    inclusion: float
    """Share of the texts in the stratum that have been drawn so far, including this one."""


def _read_judge_text_summaries(
    store: Store, transaction: Transaction, allocation: Allocation
) -> list[JudgeTextSummary]:
    if not allocation.judges:
        return []
    marks: dict[tuple[str, str], list[float]] = {}
    judged = _SELECT_JUDGE_MARKS.where(_A.annotator.in_(allocation.judges))
    for judge, document, body in transaction.execute(judged, study=store.key, protocol=store.head.protocol.id):
        doubts = marks.setdefault((judge, document), [])
        if body is not None:
            confidence = from_json(body).get("confidence")
            doubts.append(0.0 if confidence is None else confidence * (1 - confidence))
    return [JudgeTextSummary(judge, text, len(doubts), sum(doubts)) for (judge, text), doubts in marks.items()]


def reuse_or_draw_text(
    store: Store, transaction: Transaction, allocation: Allocation, state: AnnotatorAssignmentState, annotator: str
) -> DrawnText | None:
    """Return a text that was already drawn and still needs annotators, or draw a new one."""
    if not state.free:
        return None
    if store.text_strata is None:
        plan = store.assignment_plan()
        metas = {document: plan.metas.get(document, {}) for document in plan.documents}
        store.text_strata = build_text_strata(
            metas, _read_judge_text_summaries(store, transaction, allocation), allocation
        )
    layout = store.text_strata
    counts = np.array([state.counts.taken_place_count(document) for document in layout.documents])
    seed, order = store.head.settings.seed, [task.item_id for task in state.given]
    begun = [document for document in state.free if state.counts.taken_place_count(document)]
    if begun:
        chosen = assignment_rules.choose_document(begun, state.plan, state.counts, order, seed, annotator)
        assert chosen is not None
        return _build_drawn_text(layout, layout.documents.index(chosen), counts, 1 / len(begun))
    # Mean value of each submitted text, one list per stratum
    values: dict[str, list[float]] = {}
    for document, value in _read_value_per_annotation(store, transaction, allocation):
        values.setdefault(document, []).append(value)
    parts: list[list[float]] = [[] for _ in layout.names]
    for document, number in zip(layout.documents, layout.numbers, strict=True):
        if document in values:
            parts[number].append(float(np.mean(values[document])))
    deviations = shrunk_stratum_deviations([np.array(part, dtype=np.float64) for part in parts], layout.prior)
    free = set(state.free)
    closed = np.array([place for place, text in enumerate(layout.documents) if text not in free], dtype=np.int64)
    rng = np.random.default_rng(assignment_rules.seeded_hash(seed, annotator, "drawn", str(len(order))))
    read = np.flatnonzero(counts)
    offer = draw_next_text(layout.numbers, read, deviations, rng, closed, allocation.exploration)
    return _build_drawn_text(layout, offer.text, counts, offer.probability)


def _build_drawn_text(layout: TextStrata, place: int, counts: NDArray[np.int64], chance: float) -> DrawnText:
    stratum = layout.numbers[place]
    inside = layout.numbers == stratum
    drawn = np.count_nonzero(counts[inside]) + (counts[place] == 0)
    return DrawnText(layout.documents[place], layout.names[stratum], chance, float(drawn / inside.sum()))


def _read_value_per_annotation(
    store: Store, transaction: Transaction, allocation: Allocation
) -> list[tuple[str, float]]:
    """Return the document and value of each submitted human annotation: its mark count or the measured answer."""
    kind, _, question = allocation.measure.partition(":")
    who = {"study": store.key, "protocol": store.head.protocol.id}
    if kind == "count":
        return [(document, float(count)) for document, count in transaction.fetch_all(_SELECT_MARK_COUNTS, **who)]
    answers = [
        (document, from_json(body)["answers"].get(question))
        for document, body in transaction.fetch_all(_SELECT_ANSWERS, **who)
    ]
    return [(document, float(answer)) for document, answer in answers if isinstance(answer, int | float)]
