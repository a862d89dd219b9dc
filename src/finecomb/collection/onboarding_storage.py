"""Storage of onboarding: pages, exercises and the qualification. Runs on the writer thread."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from finecomb.collection import annotator_storage, assignment_storage, grading, onboarding
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.rows import RejectedChange, iso_timestamp
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.onboarding import OnboardingOutcome, PracticeItem, Step
from finecomb.collection.practice_rounds import (
    annotator_practice_rounds,
    find_guess_problem,
    is_guess_right,
    practised_condition,
)
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Answer, Answers
from finecomb.core.study_checks import unanswered_questions

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A = tables.annotation.c


@dataclass(frozen=True, slots=True)
class PracticeTask:
    """Exercise or question assigned to an annotator."""

    id: str
    document: str
    round: int
    status: Literal["draft", "submitted", "excluded"]
    excluded: bool
    number: int | None
    """Task number; None for a task imported with the study's files."""


@dataclass(frozen=True, slots=True)
class OnboardingState:
    """Progress of an annotator in the onboarding."""

    annotator: Annotator
    practice: Sequence[PracticeTask]
    step: Step | PracticeItem | OnboardingOutcome
    """Next page or exercise, or the outcome of the onboarding."""

    @property
    def finished_items(self) -> set[tuple[str, int]]:
        """Document ID and round of each exercise that was submitted or excluded."""
        return _finished_items(self.practice)


def _finished_items(practice: Sequence[PracticeTask]) -> set[tuple[str, int]]:
    return {(task.document, task.round) for task in practice if task.status != "draft" or task.excluded}


_SELECT_PRACTICE_TASKS = (
    sa.select(_A.id, _A.document, _A.round, _A.status, _A.excluded, _A.number)
    .where(
        _A.study == named_sql_placeholder("study"),
        _A.annotator == named_sql_placeholder("annotator"),
        _A.protocol == named_sql_placeholder("protocol"),
        _A.phase != "work",
    )
    .order_by(_A.key)
)


def read_onboarding_state(store: Store, transaction: Transaction, annotator: str) -> OnboardingState:
    """Return the onboarding progress of an annotator under the current protocol, without changing anything."""
    protocol, settings = store.head.protocol, store.head.settings
    tasks = transaction.fetch_all(_SELECT_PRACTICE_TASKS, study=store.key, annotator=annotator, protocol=protocol.id)
    practice = tuple(PracticeTask(*row) for row in tasks)
    person = annotator_storage.get_annotator(store, transaction, annotator)
    return OnboardingState(
        person, practice, onboarding.next_onboarding_step(protocol, settings, person, _finished_items(practice))
    )


# --- pages -------------------------------------------------------------------------------------------------------


def record_step_shown(store: Store, transaction: Transaction, annotator: Annotator, step: Step) -> None:
    """Record the time at which a page was first shown."""
    protocol = store.head.protocol
    if onboarding.find_step_record(protocol, annotator, step.id) is None:
        person = onboarding.with_updated_step_record(protocol, annotator, step.id, shown=iso_timestamp(store.clock()))
        annotator_storage.replace_annotator(store, transaction, person)


def complete_step(
    store: Store, transaction: Transaction, annotator: str, step: str, answers: Answers, active: float
) -> int | RejectedChange:
    """Record that an onboarding page was completed. Repeating the request changes nothing."""
    protocol, state = store.head.protocol, read_onboarding_state(store, transaction, annotator)
    if state.annotator.excluded:
        return RejectedChange("not-allowed")
    route = onboarding.list_steps_with_completion(protocol, store.head.settings, state.annotator, state.finished_items)
    if any(is_done for stop, is_done in route if isinstance(stop, Step) and stop.id == step):
        return 0
    record = onboarding.find_step_record(protocol, state.annotator, step)
    if not isinstance(state.step, Step) or state.step.id != step or record is None or record.shown is None:
        return RejectedChange("not-allowed", say="This is not your current page. Reload the page to continue.")
    if state.step.number and record.guessed is None:
        return RejectedChange("not-allowed", say="Select an answer first. You can continue after seeing the solution.")
    is_survey = state.step.kind == "survey"
    if is_survey:
        by_name = {question.name: question for question in protocol.survey}
        for name, answer in answers.items():
            unknown = f"{name!r} is not a question in this survey"
            problem = by_name[name].answer_problem(answer) if name in by_name else unknown
            if problem:
                return RejectedChange("refused", say=f"Your answer was not accepted: {problem}.")
        missing = tuple(f"steps/survey: {name}" for name in unanswered_questions(answers, protocol.survey))
        if missing:
            return RejectedChange("incomplete", missing=missing)
    wall = store.clock() - datetime.fromisoformat(record.shown).timestamp()
    facts = {"done": iso_timestamp(store.clock()), "seconds": round(max(0.0, min(active, wall)), 3)}
    survey = {"survey": {**state.annotator.survey, **answers}} if is_survey else {}
    person = state.annotator.model_copy(update=survey)
    annotator_storage.replace_annotator(
        store, transaction, onboarding.with_updated_step_record(protocol, person, step, **facts)
    )
    return 0


def record_guess(
    store: Store, transaction: Transaction, annotator: str, step: str, guess: Answer | None, active: float
) -> tuple[Annotator, Step] | RejectedChange:
    """Record an annotator's guess in a practice round. Only the first guess counts."""
    protocol, settings = store.head.protocol, store.head.settings
    state = read_onboarding_state(store, transaction, annotator)
    if state.annotator.excluded:
        return RejectedChange("not-allowed")
    record = onboarding.find_step_record(protocol, state.annotator, step)
    now = state.step
    if not isinstance(now, Step) or now.id != step or not now.number or record is None or record.shown is None:
        return RejectedChange("not-allowed", say="This is not your current page. Reload the page to continue.")
    if record.guessed is not None:
        return state.annotator, now
    condition = practised_condition(protocol, settings, state.annotator)
    examples = annotator_practice_rounds(condition, state.annotator)[now.number - 1]
    if problem := find_guess_problem(protocol, examples, guess):
        return RejectedChange("refused", say=f"Your answer was not accepted: {problem}.")
    wall = store.clock() - datetime.fromisoformat(record.shown).timestamp()
    seconds = round(max(0.0, min(active, wall)), 3)
    facts = {"guess": guess, "guessed": iso_timestamp(store.clock()), "guess_seconds": seconds}
    person = onboarding.with_updated_step_record(
        protocol, state.annotator, step, **facts, right=is_guess_right(protocol, examples, guess)
    )
    annotator_storage.replace_annotator(store, transaction, person)
    return person, now


# --- exercises ---------------------------------------------------------------------------------------------------

_UPDATE_ADOPTED_TASK = (
    sa.update(tables.annotation)
    .values(number=named_sql_placeholder("new"), started=sa.func.coalesce(_A.started, named_sql_placeholder("now")))
    .where(_A.study == named_sql_placeholder("of"), _A.id == named_sql_placeholder("task"))
)


def assign_practice_item(store: Store, transaction: Transaction, state: OnboardingState, item: PracticeItem) -> str:
    """Return the task of an exercise, assigning it if needed. It has no lease, because annotators do not share it."""
    tasks = [task for task in state.practice if (task.document, task.round) == (item.document, item.round)]
    id, number = tasks[0].id if tasks else secrets.token_hex(12), len(state.practice) + 1
    if not tasks:
        values = {"annotator": state.annotator.id, "document": item.document, "number": number, "round": item.round}
        rest = {"meta": TaskMeta(order=number).to_meta()}
        assignment_storage.insert_task(
            store, transaction, id=id, phase=item.phase, about="", lease=None, rest=rest, **values
        )
    elif tasks[0].number is None:
        transaction.execute(_UPDATE_ADOPTED_TASK, of=store.key, task=id, new=number, now=iso_timestamp(store.clock()))
    return id


# --- qualification -----------------------------------------------------------------------------------------------


def read_attempt_annotations(
    store: Store, transaction: Transaction, annotator: str, protocol: Protocol, round: int
) -> dict[str, Annotation]:
    """Return the annotations of one qualification attempt, by document ID."""
    attempt = sa.and_(
        _A.annotator == annotator, _A.protocol == protocol.id, _A.phase == "qualification", _A.round == round
    )
    return {
        annotation.document: annotation
        for annotation in rows.read_matching_annotations(transaction, store.key, attempt)
    }


def grade_attempt_if_complete(
    store: Store, transaction: Transaction, annotator: str, protocol: str, round: int
) -> None:
    """Grade a qualification attempt once all its items are submitted, and store the result with the annotator.

    Attempts under an earlier protocol are not graded, because they no longer determine who qualifies.
    """
    in_force = store.head.protocol
    if in_force.id != protocol:
        return
    annotations = read_attempt_annotations(store, transaction, annotator, in_force, round)
    if grading.is_attempt_complete(in_force, annotations):
        person, when = (
            annotator_storage.get_annotator(store, transaction, annotator),
            datetime.fromtimestamp(store.clock(), UTC),
        )
        grade = grading.grade_attempt(in_force, annotations)
        annotator_storage.replace_annotator(
            store, transaction, grading.with_graded_attempt(in_force, person, grade, round, when)
        )
