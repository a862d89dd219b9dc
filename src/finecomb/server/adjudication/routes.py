"""Where researchers decide about gold: texts that want it, their places, decisions; and the second pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from finecomb.collection import adjudication_storage
from finecomb.collection.adjudication_storage import DecisionConflictError, DecisionRequest
from finecomb.core.records import Annotation, Mark
from finecomb.core.study_checks import placement_problems, protocol_problems
from finecomb.server.adjudication import schema
from finecomb.server.adjudication.view import (
    DisputeCache,
    DisputedText,
    adjudication_list,
    browser_mark_fields,
    build_adjudication_page,
    load_disputed_text,
    numbered_opinions,
    second_pass_view,
)
from finecomb.server.error_responses import ProblemError, validation_problem
from finecomb.server.researchers.routes import Editor, Id, Snapshots, Viewer
from finecomb.statistics.gold.disputes import Dispute
from finecomb.statistics.gold.gold_merge import GOLD

router = APIRouter(prefix="/api/admin/adjudicate", tags=["researchers"])
DisputeKey = Annotated[str, Query(pattern=f"^({schema.DISPUTE_KEY_PATTERN})$")]


# --- which texts --------------------------------------------------------------------------------------------------


def _dispute_cache(request: Request) -> DisputeCache:
    state = request.app.state
    if not hasattr(state, "adjudicated"):
        state.adjudicated = DisputeCache()
    cache: DisputeCache = state.adjudicated
    return cache


@router.get("/documents")
def list_adjudication_texts(
    snapshots: Snapshots, _: Viewer, cache: Annotated[DisputeCache, Depends(_dispute_cache)]
) -> schema.AdjudicationList:
    """Texts that people handed in, those with most to decide first."""
    snapshot = snapshots.read(lambda pages: pages.snapshot)
    return adjudication_list(snapshot, cache)  # the first look at many texts takes long: others need not wait


# --- one text -----------------------------------------------------------------------------------------------------


@router.get("/document")
def get_adjudication_page(
    snapshots: Snapshots, _: Viewer, id: Id, align: schema.Align = "auto"
) -> schema.AdjudicatePage:
    """One text with its places. Annotators have numbers in place of names, in an order that says nothing."""
    return build_adjudication_page(load_disputed_text(snapshots.store, id, align))


# --- deciding -----------------------------------------------------------------------------------------------------


@router.put("/place")
async def decide_dispute(
    snapshots: Snapshots,
    session: Editor,
    id: Id,
    place: DisputeKey,
    new: schema.NewRuling,
    align: schema.Align = "auto",
) -> schema.AdjudicatePage:
    """Decide about one place, or decide otherwise. Deciding the same twice is deciding it once."""
    text = await run_in_threadpool(load_disputed_text, snapshots.store, id, align)
    return await _save_decisions_and_reload(
        snapshots, session.who, text, [_build_decision_request(text, _find_dispute(text, place, new.what), new)], align
    )


@router.delete("/place")
async def undo_decision(
    snapshots: Snapshots,
    session: Editor,
    id: Id,
    place: DisputeKey,
    base: Annotated[int, Query(ge=0)],
    align: schema.Align = "auto",
) -> schema.AdjudicatePage:
    """Take a decision back; the place is open again."""
    text = await run_in_threadpool(load_disputed_text, snapshots.store, id, align)
    dispute = next((decided.dispute for decided in text.decisions if decided.dispute.key == place), None)
    return (
        await _save_decisions_and_reload(snapshots, session.who, text, [DecisionRequest(dispute, base, None)], align)
        if dispute
        else build_adjudication_page(text)
    )


@router.put("/agreed")
async def accept_unanimous_marks(
    snapshots: Snapshots, session: Editor, id: Id, wanted: schema.UnanimousDisputes, align: schema.Align = "auto"
) -> schema.AdjudicatePage:
    """Take places on which all agree, in one go; in a text without any mark, say that gold has none either."""
    text = await run_in_threadpool(load_disputed_text, snapshots.store, id, align)
    open_ = {decided.dispute.key: decided.dispute for decided in text.decisions if decided.decision is None}
    settled = {decided.dispute.key for decided in text.decisions if decided.decision is not None}
    rulings = []
    for key in dict.fromkeys(wanted.places):
        if key in settled:
            continue
        if key not in open_ or not open_[key].agreed:
            raise ProblemError("conflict", "Not all agree on these places any more. Look at them again.")
        rulings.append(_build_decision_request(text, open_[key], schema.NewRuling(base=0, what="merged")))
    if not rulings and not settled and text.decisions:
        raise ProblemError("refused", "Say which places; here people marked something.")
    return await _save_decisions_and_reload(snapshots, session.who, text, rulings, align)


async def _save_decisions_and_reload(
    snapshots: Snapshots, by: str, text: DisputedText, rulings: Sequence[DecisionRequest], align: schema.Align
) -> schema.AdjudicatePage:
    try:
        await snapshots.store.run_job(adjudication_storage.save_decisions, by, text.storage_text, rulings)
    except DecisionConflictError as error:
        raise ProblemError("conflict", str(error)) from None
    snapshots.invalidate()
    return build_adjudication_page(
        await run_in_threadpool(load_disputed_text, snapshots.store, text.document.id, align)
    )


def _find_dispute(text: DisputedText, key: str, what: str) -> Dispute:
    dispute = next((decided.dispute for decided in text.decisions if decided.dispute.key == key), None)
    if dispute is None and what == "added" and key.startswith("new-"):
        return Dispute(key, (), len(text.shuffled_annotators))
    if dispute is None:
        raise ProblemError("conflict", "The readings of this place changed since you opened it. Look at it again.")
    return dispute


def _build_decision_request(text: DisputedText, place: Dispute, new: schema.NewRuling) -> DecisionRequest:
    """A decision as it is written, checked against text and protocol."""
    numbers = {id: at for at, id in enumerate(text.shuffled_annotators, 1)}
    readings = [mark for _, mark in numbered_opinions(place, numbers)]
    if new.reading is not None and new.reading > len(readings):
        raise ProblemError("refused", f"This place has {len(readings)} readings, not {new.reading}.")
    taken = readings[new.reading - 1] if new.reading is not None else None
    if (new.what == "added") != (not place.opinions) and new.what in ("added", "taken", "merged"):
        raise ProblemError("refused", "What nobody marked is added; what somebody marked is taken or changed.")
    chosen = tuple(
        _iter_checked_marks(text, place.key, _gold_marks_for_decision(place, taken, new), sent=bool(new.marks))
    )
    return DecisionRequest(place, new.base, new.what, chosen, taken.id if taken else None)


_MARK_COUNT_LIMITS = {"changed": (1, 1), "added": (1, 1), "split": (2, 20)}


def _gold_marks_for_decision(place: Dispute, taken: Mark | None, new: schema.NewRuling) -> Sequence[Mark]:
    """The marks that a decision puts into gold."""
    least, most = _MARK_COUNT_LIMITS.get(new.what, (0, 0))
    if not least <= len(new.marks) <= most:
        needs = "two marks or more" if new.what == "split" else "one mark" if least else "no marks"
        raise ProblemError("refused", f"This decision takes {needs}, not {len(new.marks)}.")
    if new.what == "taken":
        if taken is None:
            raise ProblemError("refused", "Say which reading is taken.")
        return (taken,)
    if new.what == "merged":
        if place.merged is None:
            raise ProblemError("refused", "These readings cannot be merged; take one of them or change it.")
        if place.merged.label_votes:
            raise ProblemError("refused", "No label was given by most. Choose one.")
        return (place.merged,)
    return [_parse_mark(f"{place.key}.{at}", mark) for at, mark in enumerate(new.marks, 1)]


def _parse_mark(id: str, mark: schema.AdjudicatedMark) -> Mark:
    try:
        return Mark(id=id, **browser_mark_fields(mark))
    except ValidationError as error:
        raise validation_problem("This mark", error) from None


def _iter_checked_marks(text: DisputedText, key: str, marks: Iterable[Mark], sent: bool) -> Iterator[Mark]:
    """The marks, each checked like everybody's; `sent` ones may only answer what is asked."""
    for mark in marks:
        if mark.label is None and not text.protocol.unlabelled:
            raise ProblemError("refused", "This mark has no label. Choose one.")
        strange = set(mark.answers) - {question.name for question in text.protocol.questions_of(mark.label)}
        if sent and strange:
            raise ProblemError("refused", f"This mark was not accepted: {min(strange)!r} is not asked there.")
        alone = Annotation(id=key, document=text.document.id, annotator=GOLD, protocol=text.protocol.id, marks=(mark,))
        for problems in (placement_problems(alone, text.document), protocol_problems(alone, text.protocol)):
            for level, message in problems:
                if level == "error":
                    raise ProblemError("refused", f"This mark was not accepted: {message.partition(': ')[2]}.")
        yield mark


# --- the second pass ----------------------------------------------------------------------------------------------


@router.get("/rounds")
def second_pass(snapshots: Snapshots, _: Viewer) -> schema.SecondPass:
    """How far the second pass is, and what it changed."""
    return second_pass_view(snapshots.read(lambda pages: pages.snapshot))
