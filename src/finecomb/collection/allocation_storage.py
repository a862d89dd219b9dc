"""Drawing the text where the interval of the mean over all texts shrinks most. Part of a job for the writer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from pydantic_core import from_json

from finecomb.collection import assignment_rules
from finecomb.collection.assignment_rules import AnnotatorAssignmentState, AssignmentCounts
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter
from finecomb.core.records import Allocation
from finecomb.statistics.judges.text_allocation import (
    JudgeTextSummary,
    TextStrata,
    build_text_strata,
    draw_next_text,
    stratum_deviations,
)

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

Floats = NDArray[np.float64]
_A, _P, _E = tables.annotation.c, tables.annotator.c, tables.entry.c
_IS_MARK_ENTRY = sa.and_(_E.annotation == _A.key, _E.kind == "mark", _E.body.is_not(None))
_IS_ANSWERS_ENTRY = sa.and_(_E.annotation == _A.key, _E.kind == "answers", _E.body.is_not(None))
_ANNOTATOR_JOIN = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_IS_SUBMITTED = sa.and_(
    _A.study == bind_parameter("study"),
    _A.protocol == bind_parameter("protocol"),
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
    .where(_IS_SUBMITTED, _P.kind == "human")
    .group_by(_A.key, _A.document)
)
_SELECT_ANSWERS = (
    sa.select(_A.document, _E.body)
    .select_from(_ANNOTATOR_JOIN.join(tables.entry, _IS_ANSWERS_ENTRY))
    .where(_IS_SUBMITTED, _P.kind == "human")
)
_SELECT_JUDGE_MARKS = (
    sa.select(_A.annotator, _A.document, _E.body)
    .select_from(_ANNOTATOR_JOIN.outerjoin(tables.entry, _IS_MARK_ENTRY))
    .where(_IS_SUBMITTED)
)


@dataclass(frozen=True, slots=True)
class DrawnText:
    """A text that was drawn, and what is stored about that with the task."""

    document: str
    stratum: str
    chance: float
    """How likely it was to be this text; never 0."""
    inclusion: float
    """Share of its stratum that has been drawn, this text included."""


def load_text_strata(store: Store, transaction: Transaction, allocation: Allocation) -> TextStrata:
    """The strata of all texts; read once, until the study changes."""
    if store.text_strata is None:
        plan = store.assignment_plan()
        metas = {document: plan.metas.get(document, {}) for document in plan.documents}
        store.text_strata = build_text_strata(
            metas, _read_judge_text_summaries(store, transaction, allocation), allocation
        )
    return store.text_strata


def _read_judge_text_summaries(
    store: Store, transaction: Transaction, allocation: Allocation
) -> list[JudgeTextSummary]:
    if not allocation.judges:
        return []
    marks: dict[tuple[str, str], list[float]] = {}
    judged = _SELECT_JUDGE_MARKS.where(_A.annotator.in_(allocation.judges))
    for judge, document, body in transaction.run(judged, study=store.key, protocol=store.head.protocol.id):
        doubts = marks.setdefault((judge, document), [])
        doubts += [] if body is None else [_confidence_variance(from_json(body).get("confidence"))]
    return [JudgeTextSummary(judge, text, len(doubts), sum(doubts)) for (judge, text), doubts in marks.items()]


def _confidence_variance(confidence: float | None) -> float:
    return 0.0 if confidence is None else confidence * (1 - confidence)


def reuse_or_draw_text(
    store: Store, transaction: Transaction, allocation: Allocation, state: AnnotatorAssignmentState, annotator: str
) -> DrawnText | None:
    """The text that somebody gets: one that was drawn and lacks a reader, else one that is drawn now."""
    if not state.free:
        return None
    layout = load_text_strata(store, transaction, allocation)
    counts = np.array([state.counts.annotator_count(document) for document in layout.documents])
    seed, order = store.head.settings.seed, [task.item_id for task in state.given]
    begun = [document for document in state.free if state.counts.annotator_count(document)]
    if begun:
        chosen = assignment_rules.choose_document(begun, state.plan, state.counts, order, seed, annotator)
        assert chosen is not None
        return _build_drawn_text(layout, layout.documents.index(chosen), counts, 1 / len(begun))
    deviations = stratum_deviations(_submitted_values_per_stratum(store, transaction, allocation, layout), layout.prior)
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


def _submitted_values_per_stratum(
    store: Store, transaction: Transaction, allocation: Allocation, layout: TextStrata
) -> list[Floats]:
    """What people said of the texts that they handed in, one array for each stratum."""
    values: dict[str, list[float]] = {}
    for document, value in _read_value_per_annotation(store, transaction, allocation):
        values.setdefault(document, []).append(value)
    parts: list[list[float]] = [[] for _ in layout.names]
    for document, number in zip(layout.documents, layout.numbers, strict=True):
        if document in values:
            parts[number].append(float(np.mean(values[document])))
    return [np.array(part, dtype=np.float64) for part in parts]


def _read_value_per_annotation(
    store: Store, transaction: Transaction, allocation: Allocation
) -> list[tuple[str, float]]:
    """Marks, or the answer to a question, of every annotation that people handed in."""
    kind, _, question = allocation.measure.partition(":")
    who = {"study": store.key, "protocol": store.head.protocol.id}
    if kind == "count":
        return [(document, float(count)) for document, count in transaction.all(_SELECT_MARK_COUNTS, **who)]
    answers = [
        (document, from_json(body)["answers"].get(question))
        for document, body in transaction.all(_SELECT_ANSWERS, **who)
    ]
    return [(document, float(answer)) for document, answer in answers if isinstance(answer, int | float)]


def assignable_pilot_texts(documents: Sequence[str], counts: AssignmentCounts, max_texts: int) -> Sequence[str]:
    """What a pilot gives out: any text until so many were drawn, from then on only those."""
    drawn = [document for document in documents if counts.annotator_count(document)]
    return documents if len(drawn) < max_texts else drawn
