"""API routes of the recruitment page: participants, screening signals, qualification, pay and cost."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated
from urllib.parse import quote

import polars as pl
from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from finecomb.collection import (
    arrivals_storage,
    audit_log_storage,
    design_cells_storage,
    onboarding,
    researcher_actions_storage,
)
from finecomb.collection import pay as pay_rules
from finecomb.collection.pay import CellHourlyPay, Earnings, PayFileFormat
from finecomb.collection.screened_annotators import people_to_review
from finecomb.collection.screening_signals import ScreeningSignal
from finecomb.core.errors import did_you_mean
from finecomb.core.frames import iter_annotations
from finecomb.core.practice import Choice, Exercise
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import grade_choice, grade_exercise
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study
from finecomb.server.error_responses import ProblemError
from finecomb.server.researchers import recruitment_schema as schema
from finecomb.server.researchers.routes import Editor, Id, RecentEditor, Snapshots, Viewer
from finecomb.server.researchers.snapshot import Snapshot
from finecomb.server.researchers.snapshot_cache import StudyPages

router = APIRouter(prefix="/api/admin", tags=["researchers"])


# --- participants -------------------------------------------------------------------------------------------------


@router.get("/recruiting")
def show_recruitment(snapshots: Snapshots, _: Viewer) -> schema.Recruiting:
    """Return all participants with their progress, screening signals and cost."""
    return snapshots.compute_page(build_recruiting_page)


def build_recruiting_page(pages: StudyPages) -> schema.Recruiting:
    """Build the recruitment page from a snapshot."""
    snapshot, signs = pages.snapshot, pages.signals
    people = pay_rules.compute_earnings(snapshot.study, pages.arrivals, snapshot.protocol)
    cost = pay_rules.study_cost_so_far(snapshot.study.settings, people)
    records = {person.id: person for person in snapshot.study.iter_annotators()}
    reached = _phase_by_annotator(snapshot, records.values())
    first = sorted(pages.arrivals, key=lambda arrival: -arrival.at)
    came = {arrival.annotator: datetime.fromtimestamp(arrival.at, UTC) for arrival in first}
    test = snapshot.protocol.qualification
    results = [onboarding.find_qualification_record(snapshot.protocol, person) for person in records.values()]
    return schema.Recruiting(
        people=tuple(
            _recruit_row(
                person,
                records[person.annotator],
                snapshot,
                signs.get(person.annotator, ()),
                reached,
                came.get(person.annotator),
            )
            for person in people
        ),
        costs=schema.Costs(
            pay=cost.pay,
            bonus=cost.bonus,
            fees=cost.fees,
            staff=cost.staff,
            total=cost.total,
            per_hour=cost.per_hour,
        ),
        currency=snapshot.study.settings.effective_currency,
        cells=tuple(map(_cell_pay_row, pay_rules.cell_hourly_pay(people, snapshot.study.settings.pay_floor))),
        pay_floor=snapshot.study.settings.pay_floor,
        budget=snapshot.study.settings.budget,
        qualification=schema.QualificationScores(
            scores=tuple(result.score for result in results if result),
            needed=test.pass_at,
            of=test.max_points,
            attempts=test.attempts,
        )
        if test
        else None,
        as_of=snapshot.now,
    )


@router.get("/design")
def design(snapshots: Snapshots, _: Viewer) -> schema.DesignPage:
    """Return the current state of each cell of the design; empty without a design."""
    store = snapshots.store
    states = store.read(design_cells_storage.read_cell_states)
    rows = (
        schema.DesignCellRow(
            cell=state.cell.name,
            factors=state.cell.factors,
            people=state.cell.people,
            accepted=state.accepted,
            working=state.working,
            gone=state.gone,
            excluded=state.excluded,
            closed=state.closed_place_count,
            open=state.open_place_count,
            pay=state.cell.pay,
            texts=store.assignment_plan().cells[state.cell.name].texts_per_person,
        )
        for state in states
    )
    titles = {condition.name: condition.title for condition in store.head.protocol.conditions if condition.title}
    settings = store.head.settings
    reopen = settings.design is None or settings.design.reopen
    return schema.DesignPage(
        cells=tuple(rows), currency=settings.effective_currency, titles=titles, reopen=reopen, lease=settings.lease
    )


@router.put("/design/reopen")
async def set_reopen(snapshots: Snapshots, session: Editor, wanted: schema.ReopenRequest) -> None:
    """Reopen the places of excluded people, or keep them closed."""
    settings = snapshots.store.head.settings
    if settings.design is None:
        raise ProblemError("not-found", "This study has no design, so it has no slots to reopen.")
    changed = settings.model_copy(update={"design": settings.design.model_copy(update={"reopen": wanted.reopen})})
    await snapshots.change_study(researcher_actions_storage.update_settings, session.who, changed)


def _recruit_row(
    earned: Earnings,
    annotator: Annotator,
    snapshot: Snapshot,
    signs: tuple[ScreeningSignal, ...],
    reached: dict[str, schema.ReachedPhase],
    came: datetime | None,
) -> schema.Recruit:
    test = onboarding.find_qualification_record(snapshot.protocol, annotator)
    return schema.Recruit(
        id=annotator.id,
        name=snapshot.name_by_annotator[annotator.id],
        condition=annotator.condition,
        platform=annotator.platform,
        stage=earned.stage,
        reached="" if earned.stage == "invited" else reached[annotator.id],
        score=test.score if test else None,
        passed=test.passed if test else None,
        noticed=tuple(schema.NoticedSignal(sign=signal.sign, say=signal.say, weak=signal.weak) for signal in signs),
        texts=earned.texts,
        minutes=earned.minutes,
        pay=earned.pay,
        bonus=schema.BonusRequest(amount=earned.bonus.amount, reason=earned.bonus.reason),
        per_hour=earned.per_hour,
        excluded=earned.excluded,
        cell=annotator.cell,
        came=came,
        why=annotator.excluded.reason if annotator.excluded else "",
    )


def _phase_by_annotator(snapshot: Snapshot, people: Iterable[Annotator]) -> dict[str, schema.ReachedPhase]:
    """Return the onboarding or work phase that each person has reached."""
    practice = snapshot.study.annotations.filter(
        (pl.col("phase") != "work") & (pl.col("protocol") == snapshot.protocol.id)
    )
    finished_practice = practice.filter((pl.col("status") != "draft") | pl.col("excluded").is_not_null())
    finished: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for who, document, round in finished_practice.select("annotator", "document", "round").iter_rows():
        finished[who].add((document, round))
    phases: dict[str, schema.ReachedPhase] = {}
    for person in people:
        step = onboarding.next_onboarding_step(snapshot.protocol, snapshot.study.settings, person, finished[person.id])
        phase = (
            step.phase
            if isinstance(step, onboarding.Step | onboarding.PracticeItem)
            else "work"
            if step == "work"
            else "qualification"
        )
        phases[person.id] = "" if phase == "consent" else phase
    return phases


# --- attempts -----------------------------------------------------------------------------------------------------


@router.get("/attempts")
def attempts(snapshots: Snapshots, _: Viewer, id: Id) -> tuple[schema.AttemptResult, ...]:
    """Return the training and all qualification attempts of a person, with each exercise and its solution."""

    def page(study: Study) -> tuple[schema.AttemptResult, ...]:
        rows = study.annotators.filter(pl.col("id") == id)
        if rows.is_empty():
            near = did_you_mean(id, study.annotators["id"].head(5000))
            raise ProblemError("not-found", f"Unknown annotator {id!r}{near}")
        return tuple(practice_attempts(study, id))

    return snapshots.compute_page(lambda pages: page(pages.snapshot.study))


def practice_attempts(study: Study, annotator: str) -> Iterable[schema.AttemptResult]:
    """Yield all training and qualification attempts of a person, under any protocol, in order."""
    practice = study.filter_annotations((pl.col("annotator") == annotator) & (pl.col("phase") != "work"))
    annotations = list(iter_annotations(practice.annotations, practice.marks, practice.units))
    person = next(annotation for annotation in study.iter_annotators() if annotation.id == annotator)
    order = {"training": 0, "qualification": 1}
    annotations.sort(key=lambda annotation: (annotation.protocol, order[annotation.phase], annotation.round))
    for (id, phase, round), group in groupby(
        annotations, key=lambda annotation: (annotation.protocol, annotation.phase, annotation.round)
    ):
        protocol = study.protocols.get(id)
        if protocol is not None:
            tested = phase == "qualification"
            given = list(group)
            items = onboarding.practice_items_by_document(protocol, round)
            exercises = tuple(
                _exercise_result(items[annotation.document], annotation, protocol)
                for annotation in given
                if annotation.document in items
            )
            result = onboarding.find_qualification_record(protocol, person) if tested else None
            results = result.attempts if result else ()
            graded = next((attempt for attempt in results if attempt.round == round), None)
            # Only the last attempt can have been passed.
            is_last = graded is not None and round == max(attempt.round for attempt in results)
            test = protocol.qualification
            yield schema.AttemptResult(
                phase="qualification" if tested else "training",
                attempt=round + 1,
                score=graded.score if graded else None,
                of=test.max_points if test and tested else 0,
                passed=result.passed and is_last if result and graded else None,
                when=(
                    graded.when
                    if graded
                    else max((annotation.submitted for annotation in given if annotation.submitted), default=None)
                ),
                exercises=exercises,
            )


def _exercise_result(
    item: onboarding.PracticeItem, annotation: Annotation, protocol: Protocol
) -> schema.ExerciseResult:
    if isinstance(item.given, Choice):
        graded = grade_choice(item.given, annotation.answers.get("answer"), item.part.points if item.part else 0)
    else:
        graded = grade_exercise(item.given, annotation.marks, item.part)
    choice = item.given if isinstance(item.given, Choice) else None
    label = protocol.find_label(item.given.label) if isinstance(item.given, Exercise) and item.given.label else None
    part = (item.part.title or item.part.name) if item.part else ""
    return schema.ExerciseResult(
        document=annotation.document,
        title=label.display_title if label else f"{part} {item.number}".strip(),
        points=round(graded.points, 6),
        of=graded.of,
        found=len(graded.found),
        missed=len(graded.missed),
        extra=len(graded.extra),
        chosen=str(annotation.answers.get("answer", "–")) if choice else None,
        right=str(choice.answer) if choice else None,
        seconds=annotation.active_seconds,
    )


# --- screening ----------------------------------------------------------------------------------------------------


@router.get("/screen")
def screening_suggestions(snapshots: Snapshots, _: Viewer) -> tuple[schema.SuggestionRow, ...]:
    """Return the suggested exclusions with their reasons. Nothing is excluded automatically."""

    def page(pages: StudyPages) -> tuple[schema.SuggestionRow, ...]:
        return tuple(
            schema.SuggestionRow(
                name=pages.snapshot.name_by_annotator[suggestion.annotator], **dataclasses.asdict(suggestion)
            )
            for suggestion in pages.suggestions
        )

    return snapshots.compute_page(page)


@router.get("/screen/people")
def list_screened_people(snapshots: Snapshots, _: Viewer) -> tuple[schema.ScreenedPersonRow, ...]:
    """Return the people who need review, with suggested texts and screening signals."""

    def page(pages: StudyPages) -> tuple[schema.ScreenedPersonRow, ...]:
        people = people_to_review(pages.snapshot.study, pages.suggestions, pages.arrivals)
        names = pages.snapshot.name_by_annotator
        return tuple(
            schema.ScreenedPersonRow(name=names[person.annotator], **dataclasses.asdict(person)) for person in people
        )

    return snapshots.compute_page(page)


@router.put("/screen/decisions")
async def decide_suggestions(snapshots: Snapshots, session: Editor, decided: schema.BulkDecision) -> None:
    """Apply many screening decisions at once: exclude work or people, or keep work despite rules."""
    await snapshots.change_study(
        researcher_actions_storage.apply_screening_decisions,
        session.who,
        decided.exclude,
        decided.exclude_annotators,
        decided.keep,
        decided.reason,
    )


@router.put("/annotation/kept")
async def keep_annotation(snapshots: Snapshots, session: Editor, id: Id, decided: schema.KeepDecision) -> None:
    """Keep an annotation despite some screening rules, so that it is not suggested again."""
    await snapshots.change_study(
        researcher_actions_storage.keep_annotation_despite_rules, session.who, id, decided.rules
    )


# --- pay ----------------------------------------------------------------------------------------------------------


@router.put("/annotator/bonus")
async def set_bonus(snapshots: Snapshots, session: Editor, id: Id, bonus: schema.BonusRequest) -> None:
    """Give an annotator a bonus, or remove it with an amount of 0."""
    await snapshots.change_study(researcher_actions_storage.set_bonus, session.who, id, bonus.amount, bonus.reason)


@router.post("/design/bonus")
async def pay_floor_bonus(snapshots: Snapshots, session: Editor, cell: Annotated[str, Query()]) -> schema.CellPayRow:
    """Give all people who completed a cell the bonus that raises its median pay per hour to the minimum."""
    rows = await run_in_threadpool(snapshots.compute_page, _compute_cell_hourly_pay)
    row = next((row for row in rows if row.cell == cell), None)
    if row is None or not row.lacking:
        raise ProblemError("conflict", f"No bonus is needed in {cell or 'that cell'}. It may have been paid already.")
    bonuses = {person.annotator: pay_rules.top_up_bonus(person.bonus, row.lacking) for person in row.people}
    await snapshots.change_study(researcher_actions_storage.set_bonuses, session.who, bonuses)
    return _cell_pay_row(row)


def _cell_pay_row(row: CellHourlyPay) -> schema.CellPayRow:
    return schema.CellPayRow(cell=row.cell, per_hour=row.per_hour, lacking=row.lacking, people=len(row.people))


def _compute_cell_hourly_pay(pages: StudyPages) -> list[CellHourlyPay]:
    snapshot = pages.snapshot
    people = pay_rules.compute_earnings(snapshot.study, pages.arrivals, snapshot.protocol)
    return pay_rules.cell_hourly_pay(people, snapshot.study.settings.pay_floor)


@router.get("/pay", response_class=Response)
def download_pay_file(
    snapshots: Snapshots, session: RecentEditor, form: Annotated[PayFileFormat, Query()] = "pay"
) -> Response:
    """Download a pay file with worker IDs: all payments, or bonuses in a platform's format."""
    # Read again, because IDs may have been removed since the snapshot.
    arrivals = snapshots.store.read(arrivals_storage.read_all_arrivals)
    people = snapshots.compute_page(
        lambda pages: pay_rules.compute_earnings(pages.snapshot.study, arrivals, pages.snapshot.protocol)
    )
    snapshots.store.run_job_sync(
        audit_log_storage.record_standalone_action, session.who, "took a pay file", {"form": form}
    )
    name = pay_rules.FILENAME_BY_FORMAT[form]
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return Response(pay_rules.format_pay_file(form, people), media_type="text/csv; charset=utf-8", headers=headers)
