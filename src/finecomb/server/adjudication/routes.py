"""API routes of the adjudication page: texts, disputes, decisions and the second pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from finecomb.api.judges import GoldAlignment, rounds
from finecomb.api.monitoring import second_pass_progress
from finecomb.collection import adjudication_storage
from finecomb.collection.adjudication_storage import DecisionConflictError, DecisionRequest
from finecomb.core.records import Annotation, Mark
from finecomb.core.study_checks import placement_problems, protocol_problems
from finecomb.server.adjudication import schema
from finecomb.server.adjudication.view import (
    DisputeCache,
    DisputedText,
    browser_mark_fields,
    build_adjudication_list,
    build_adjudication_page,
    load_disputed_text,
    numbered_opinions,
)
from finecomb.server.error_responses import ProblemError, validation_problem
from finecomb.server.researchers.routes import Editor, Id, Snapshots, Viewer
from finecomb.server.researchers.schema import Figure
from finecomb.statistics.gold.disputes import Dispute
from finecomb.statistics.gold.gold_merge import GOLD_ANNOTATOR_ID

router = APIRouter(prefix="/api/admin/adjudicate", tags=["researchers"])
DisputeKey = Annotated[str, Query(pattern=f"^({schema.DISPUTE_KEY_PATTERN})$")]


# --- list of texts ------------------------------------------------------------------------------------------------


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
    """List the submitted texts, those with the most open disputes first."""
    snapshot = snapshots.compute_page(lambda pages: pages.snapshot)
    # Outside the snapshot lock, because the first computation over many texts is slow
    return build_adjudication_list(snapshot, cache)


# --- one text -----------------------------------------------------------------------------------------------------


@router.get("/document")
def get_adjudication_page(
    snapshots: Snapshots, _: Viewer, id: Id, align: GoldAlignment = "auto"
) -> schema.AdjudicatePage:
    """Return one text with its disputes. Annotators appear as numbers in a shuffled order."""
    return build_adjudication_page(load_disputed_text(snapshots.store, id, align))


# --- decisions ----------------------------------------------------------------------------------------------------


@router.put("/place")
async def decide_dispute(
    snapshots: Snapshots,
    session: Editor,
    id: Id,
    place: DisputeKey,
    new: schema.NewRuling,
    align: GoldAlignment = "auto",
) -> schema.AdjudicatePage:
    """Decide one dispute, or change the decision. Repeating the request changes nothing."""
    text = await run_in_threadpool(load_disputed_text, snapshots.store, id, align)
    dispute = next((decided.dispute for decided in text.decisions if decided.dispute.key == place), None)
    if dispute is None and new.what == "added" and place.startswith("new-"):
        dispute = Dispute(place, (), len(text.shuffled_annotators))
    if dispute is None:
        raise ProblemError("conflict", "The marks have changed since you opened the text. Review them again.")
    rulings = [_build_decision_request(text, dispute, new)]
    return await _save_decisions_and_reload(snapshots, session.who, text, rulings, align)


@router.delete("/place")
async def undo_decision(
    snapshots: Snapshots,
    session: Editor,
    id: Id,
    place: DisputeKey,
    base: Annotated[int, Query(ge=0)],
    align: GoldAlignment = "auto",
) -> schema.AdjudicatePage:
    """Undo a decision and reopen the dispute."""
    text = await run_in_threadpool(load_disputed_text, snapshots.store, id, align)
    dispute = next((decided.dispute for decided in text.decisions if decided.dispute.key == place), None)
    return (
        await _save_decisions_and_reload(snapshots, session.who, text, [DecisionRequest(dispute, base, None)], align)
        if dispute
        else build_adjudication_page(text)
    )


@router.put("/agreed")
async def accept_unanimous_marks(
    snapshots: Snapshots, session: Editor, id: Id, wanted: schema.UnanimousDisputes, align: GoldAlignment = "auto"
) -> schema.AdjudicatePage:
    """Accept the marks that all annotators agree on, or confirm that a text without marks has no errors."""
    text = await run_in_threadpool(load_disputed_text, snapshots.store, id, align)
    open_ = {decided.dispute.key: decided.dispute for decided in text.decisions if decided.decision is None}
    settled = {decided.dispute.key for decided in text.decisions if decided.decision is not None}
    rulings = []
    for key in dict.fromkeys(wanted.places):
        if key in settled:
            continue
        if key not in open_ or not open_[key].agreed:
            raise ProblemError("conflict", "The annotators no longer agree on all of these marks. Review them again.")
        rulings.append(_build_decision_request(text, open_[key], schema.NewRuling(base=0, what="merged")))
    if not rulings and not settled and text.decisions:
        raise ProblemError("refused", "This text has marks. Select the ones to accept.")
    return await _save_decisions_and_reload(snapshots, session.who, text, rulings, align)


async def _save_decisions_and_reload(
    snapshots: Snapshots, by: str, text: DisputedText, rulings: Sequence[DecisionRequest], align: GoldAlignment
) -> schema.AdjudicatePage:
    try:
        await snapshots.store.run_job(adjudication_storage.save_decisions, by, text.adjudication_text, rulings)
    except DecisionConflictError as error:
        raise ProblemError("conflict", str(error)) from None
    snapshots.invalidate()
    return build_adjudication_page(
        await run_in_threadpool(load_disputed_text, snapshots.store, text.document.id, align)
    )


def _build_decision_request(text: DisputedText, place: Dispute, new: schema.NewRuling) -> DecisionRequest:
    """Build a decision request, and check it against the text and the protocol."""
    numbers = {id: number for number, id in enumerate(text.shuffled_annotators, 1)}
    readings = [mark for _, mark in numbered_opinions(place, numbers)]
    if new.reading is not None and new.reading > len(readings):
        raise ProblemError("refused", f"Mark {new.reading} does not exist in this dispute.")
    taken = readings[new.reading - 1] if new.reading is not None else None
    if (new.what == "added") != (not place.opinions) and new.what in ("added", "taken", "merged"):
        raise ProblemError(
            "refused",
            "“Added” is only for errors that no annotator marked. Accept or change an existing mark instead."
            if new.what == "added"
            else "No annotator marked this error, so there is no mark to accept. Add the mark instead.",
        )
    marks = tuple(_gold_marks_for_decision(place, taken, new))
    for mark in marks:
        if mark.label is None and not text.protocol.unlabelled:
            raise ProblemError("refused", "This mark has no label. Select one.")
        # Marks sent by the page may answer only the questions of their label. Annotators' marks may have other answers.
        strange = set(mark.answers) - {question.name for question in text.protocol.questions_for_label(mark.label)}
        if new.marks and strange:
            raise ProblemError("refused", f"This mark was not accepted: its label has no question {min(strange)!r}.")
        alone = Annotation(
            id=place.key,
            document=text.document.id,
            annotator=GOLD_ANNOTATOR_ID,
            protocol=text.protocol.id,
            marks=(mark,),
        )
        for problems in (placement_problems(alone, text.document), protocol_problems(alone, text.protocol)):
            for level, message in problems:
                if level == "error":
                    raise ProblemError("refused", f"This mark was not accepted: {message.partition(': ')[2]}.")
    return DecisionRequest(place, new.base, new.what, marks, taken.id if taken else None)


_MARK_COUNT_LIMITS = {"changed": (1, 1), "added": (1, 1), "split": (2, 20)}


def _gold_marks_for_decision(place: Dispute, taken: Mark | None, new: schema.NewRuling) -> Sequence[Mark]:
    """Return the marks that a decision adds to the gold annotation."""
    least, most = _MARK_COUNT_LIMITS.get(new.what, (0, 0))
    if not least <= len(new.marks) <= most:
        needs = f"{least} to {most} marks" if new.what == "split" else "one mark" if least else "no marks"
        raise ProblemError("refused", f"This decision requires {needs}, found {len(new.marks)}.")
    if new.what == "taken":
        if taken is None:
            raise ProblemError("refused", "Select the mark to accept.")
        return (taken,)
    if new.what == "merged":
        if place.merged is None:
            raise ProblemError("refused", "These marks cannot be merged. Accept or change one of them.")
        if place.merged.label_votes:
            raise ProblemError("refused", "No label has a majority. Select one.")
        return (place.merged,)
    try:
        return [
            Mark(id=f"{place.key}.{number}", **browser_mark_fields(mark)) for number, mark in enumerate(new.marks, 1)
        ]
    except ValidationError as error:
        raise validation_problem("This mark", error) from None


# --- the second pass ----------------------------------------------------------------------------------------------


@router.get("/rounds")
def second_pass(snapshots: Snapshots, _: Viewer) -> schema.SecondPass:
    """Return the progress of the second pass and the changes made in it."""
    snapshot = snapshots.compute_page(lambda pages: pages.snapshot)
    protocol = snapshot.protocol.id
    far = second_pass_progress(snapshot.study, protocol)
    compared = rounds(snapshot.study, protocol=protocol).comparison if far.done else None
    rows = compared.marks.iter_rows(named=True) if compared else ()
    return schema.SecondPass(
        round=snapshot.study.settings.round,
        wanted=far.wanted,
        begun=far.begun,
        done=far.done,
        rows=tuple(
            schema.SecondPassRow(**row | {"annotator": snapshot.name_by_annotator.get(row["annotator"], "")})
            for row in rows
        ),
        agreement={finding.columns["pass"]: Figure.from_estimate(finding.estimate) for finding in compared.agreement}
        if compared
        else {},
        notes=compared.notes if compared else (),
    )
