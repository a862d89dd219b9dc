"""Where researchers see who came, what is noticed about them, how they did in the qualification, and what it costs."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
from finecomb.core.qualification import GradedItem, grade_choice, grade_exercise
from finecomb.core.records import Annotation, Annotator, Attempt
from finecomb.core.study import Study
from finecomb.server.error_responses import ProblemError
from finecomb.server.researchers import recruitment_schema as schema
from finecomb.server.researchers.routes import Editor, Id, RecentEditor, Snapshots, Viewer
from finecomb.server.researchers.snapshot import Snapshot
from finecomb.server.researchers.snapshot_cache import StudyPages

router = APIRouter(prefix="/api/admin", tags=["researchers"])


# --- everybody ----------------------------------------------------------------------------------------------------


@router.get("/recruiting")
def show_recruitment(snapshots: Snapshots, _: Viewer) -> schema.Recruiting:
    """Who came, how far they are, what is noticed about them, and what it costs."""
    return snapshots.read(build_recruiting_page)


def build_recruiting_page(pages: StudyPages) -> schema.Recruiting:
    """The page of one moment."""
    snapshot, signs = pages.snapshot, pages.signals
    people = pay_rules.compute_earnings(snapshot.study, pages.arrivals, snapshot.protocol)
    cost = pay_rules.study_cost(snapshot.study.settings, people)
    records = {person.id: person for person in snapshot.study.iter_annotators()}
    reached = _phase_by_annotator(snapshot, records.values())
    first = sorted(pages.arrivals, key=lambda arrival: -arrival.at)
    came = {arrival.annotator: datetime.fromtimestamp(arrival.at, UTC) for arrival in first}
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
        qualification=_qualification_scores(snapshot.protocol, records.values()),
        as_of=snapshot.now,
    )


@router.get("/design")
def design(snapshots: Snapshots, _: Viewer) -> schema.DesignPage:
    """How each cell of the study's design is filled now; no cells where the study has no design."""
    store = snapshots.store
    with store.database.read_transaction() as transaction:
        states = design_cells_storage.read_cell_states(store, transaction)
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
    """Give the places of people who are excluded to others, or keep them closed."""
    settings = snapshots.store.head.settings
    if settings.design is None:
        raise ProblemError("not-found", "This study has no design, so no places are kept in it.")
    changed = settings.model_copy(update={"design": settings.design.model_copy(update={"reopen": wanted.reopen})})
    await snapshots.store.change_study(researcher_actions_storage.set_settings, session.who, changed)
    snapshots.invalidate()


def _recruit_row(
    earned: Earnings,
    annotator: Annotator,
    snapshot: Snapshot,
    signs: tuple[ScreeningSignal, ...],
    reached: dict[str, schema.ReachedPhase],
    came: datetime | None,
) -> schema.Recruit:
    test = onboarding.qualification_result(snapshot.protocol, annotator)
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
    """The phase that each person is in."""
    practice = snapshot.study.annotations.filter(
        (pl.col("phase") != "work") & (pl.col("protocol") == snapshot.protocol.id)
    )
    over = practice.filter((pl.col("status") != "draft") | pl.col("excluded").is_not_null())
    finished: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for who, document, round in over.select("annotator", "document", "round").iter_rows():
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


def _qualification_scores(protocol: Protocol, people: Iterable[Annotator]) -> schema.QualificationScores | None:
    test = protocol.qualification
    if test is None:
        return None
    took = [result.score for person in people if (result := onboarding.qualification_result(protocol, person))]
    return schema.QualificationScores(
        scores=tuple(took), needed=test.pass_at, of=test.max_points, attempts=test.attempts
    )


# --- one person's attempts ----------------------------------------------------------------------------------------


@router.get("/attempts")
def attempts(snapshots: Snapshots, _: Viewer, id: Id) -> tuple[schema.AttemptResult, ...]:
    """Training and every attempt at the qualification: each exercise against its solution."""

    def page(study: Study) -> tuple[schema.AttemptResult, ...]:
        rows = study.annotators.filter(pl.col("id") == id)
        if rows.is_empty():
            near = did_you_mean(id, study.annotators["id"].head(5000))
            raise ProblemError("not-found", f"No annotator is called {id!r}{near}")
        return tuple(practice_attempts(study, id))

    return snapshots.read(lambda pages: page(pages.snapshot.study))


def practice_attempts(study: Study, annotator: str) -> Iterable[schema.AttemptResult]:
    """Everything that somebody practised, under every protocol, in the order of the way."""
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
            yield _attempt_result(protocol, person, phase == "qualification", round, list(group))


def _attempt_result(
    protocol: Protocol, person: Annotator, tested: bool, round: int, given: Sequence[Annotation]
) -> schema.AttemptResult:
    items = onboarding.practice_items_by_document(protocol, round)
    exercises = tuple(
        _exercise_result(items[annotation.document], annotation, protocol)
        for annotation in given
        if annotation.document in items
    )
    graded = _graded_attempt(protocol, person, round) if tested else None
    test = protocol.qualification
    return schema.AttemptResult(
        phase="qualification" if tested else "training",
        attempt=round + 1,
        score=graded.score if graded else None,
        of=test.max_points if test and tested else 0,
        passed=_has_passed_in_attempt(protocol, person, graded) if graded else None,
        when=_attempt_time(graded, given),
        exercises=exercises,
    )


def _graded_attempt(protocol: Protocol, person: Annotator, round: int) -> Attempt | None:
    result = onboarding.qualification_result(protocol, person)
    return next((attempt for attempt in result.attempts if attempt.round == round), None) if result else None


def _has_passed_in_attempt(protocol: Protocol, person: Annotator, graded: Attempt) -> bool:
    """Whoever passed did so in the last attempt, since nobody is tested again after it."""
    result = onboarding.qualification_result(protocol, person)
    return result is not None and result.passed and graded.round == max(attempt.round for attempt in result.attempts)


def _attempt_time(graded: Attempt | None, given: Sequence[Annotation]) -> datetime | None:
    return (
        graded.when
        if graded
        else max((annotation.submitted for annotation in given if annotation.submitted), default=None)
    )


def _exercise_result(
    item: onboarding.PracticeItem, annotation: Annotation, protocol: Protocol
) -> schema.ExerciseResult:
    graded = _grade_item(item, annotation)
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


def _grade_item(item: onboarding.PracticeItem, annotation: Annotation) -> GradedItem:
    if isinstance(item.given, Choice):
        return grade_choice(item.given, annotation.answers.get("answer"), item.part.points if item.part else 0)
    return grade_exercise(item.given, annotation.marks, item.part)


# --- what one might set aside -------------------------------------------------------------------------------------


@router.get("/screen")
def screening_suggestions(snapshots: Snapshots, _: Viewer) -> tuple[schema.SuggestionRow, ...]:
    """Work that one might not want to count, with reasons; excluding is done elsewhere, by a person."""

    def page(pages: StudyPages) -> tuple[schema.SuggestionRow, ...]:
        return tuple(
            schema.SuggestionRow(
                name=pages.snapshot.name_by_annotator[suggestion.annotator], **dataclasses.asdict(suggestion)
            )
            for suggestion in pages.suggestions
        )

    return snapshots.read(page)


@router.get("/screen/people")
def list_screened_people(snapshots: Snapshots, _: Viewer) -> tuple[schema.ScreenedPersonRow, ...]:
    """People whose work one might not want to count: suggested texts, and what else is noticed."""

    def page(pages: StudyPages) -> tuple[schema.ScreenedPersonRow, ...]:
        people = people_to_review(pages.snapshot.study, pages.suggestions, pages.arrivals)
        names = pages.snapshot.name_by_annotator
        return tuple(
            schema.ScreenedPersonRow(name=names[person.annotator], **dataclasses.asdict(person)) for person in people
        )

    return snapshots.read(page)


@router.put("/screen/decisions")
async def decide_suggestions(snapshots: Snapshots, session: Editor, decided: schema.BulkDecision) -> None:
    """Decide about many suggestions at once: set work or people aside, or keep work in spite of rules."""
    await snapshots.store.change_study(
        researcher_actions_storage.apply_screening_decisions,
        session.who,
        decided.exclude,
        decided.exclude_annotators,
        decided.keep,
        decided.reason,
    )
    snapshots.invalidate()


@router.put("/annotation/kept")
async def keep_annotation(snapshots: Snapshots, session: Editor, id: Id, decided: schema.KeepDecision) -> None:
    """Keep an annotation in spite of what some rules say; nobody is asked about them again."""
    await snapshots.store.change_study(
        researcher_actions_storage.keep_annotation_despite_rules, session.who, id, decided.rules
    )
    snapshots.invalidate()


# --- money --------------------------------------------------------------------------------------------------------


@router.put("/annotator/bonus")
async def set_bonus(snapshots: Snapshots, session: Editor, id: Id, bonus: schema.BonusRequest) -> None:
    """Give an annotator a bonus, or take it away with an amount of 0."""
    await snapshots.store.change_study(
        researcher_actions_storage.set_bonus, session.who, id, bonus.amount, bonus.reason
    )
    snapshots.invalidate()


@router.post("/design/bonus")
async def pay_floor_bonus(snapshots: Snapshots, session: Editor, cell: Annotated[str, Query()]) -> schema.CellPayRow:
    """Give everybody who is done in a cell the bonus that brings its median pay per hour up to the study's floor."""
    rows = await run_in_threadpool(snapshots.read, _compute_cell_hourly_pay)
    row = next((row for row in rows if row.cell == cell), None)
    if row is None or not row.lacking:
        raise ProblemError("conflict", f"Nobody in {cell or 'that cell'} lacks pay: somebody may have paid it already.")
    bonuses = {person.annotator: pay_rules.top_up_bonus(person.bonus, row.lacking) for person in row.people}
    await snapshots.store.change_study(researcher_actions_storage.set_bonuses, session.who, bonuses)
    snapshots.invalidate()
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
    """Who is to be paid what, with worker ids: all of it, or bonuses as a platform takes them."""
    with (
        snapshots.store.database.read_transaction() as transaction
    ):  # not what is remembered, should ids have been forgotten since
        arrivals = arrivals_storage.read_all_arrivals(snapshots.store, transaction)
    people = snapshots.read(
        lambda pages: pay_rules.compute_earnings(pages.snapshot.study, arrivals, pages.snapshot.protocol)
    )
    snapshots.store.run_job_sync(audit_log_storage.record_single_action, session.who, "took a pay file", {"form": form})
    name = pay_rules.FILENAME_BY_FORMAT[form]
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return Response(pay_rules.format_pay_file(form, people), media_type="text/csv; charset=utf-8", headers=headers)
