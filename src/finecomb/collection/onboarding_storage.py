"""Before the work: pages, exercises and the test, as jobs for the writer."""

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
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.onboarding import OnboardingOutcome, PracticeItem, Step
from finecomb.collection.practice_rounds import (
    annotator_practice_rounds,
    guess_problem,
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
    """An exercise or question that somebody was given."""

    id: str
    document: str
    round: int
    status: Literal["draft", "submitted", "excluded"]
    excluded: bool
    number: int | None
    """Absent for one that came with a study's files."""


@dataclass(frozen=True, slots=True)
class OnboardingState:
    """How far somebody is before the work."""

    annotator: Annotator
    practice: Sequence[PracticeTask]
    step: Step | PracticeItem | OnboardingOutcome
    """What comes next: a page, an exercise, the work, or nothing for who did not pass."""

    @property
    def finished_items(self) -> set[tuple[str, int]]:
        """Document and round of every exercise that was handed in or set aside."""
        return _finished_items(self.practice)


def _finished_items(practice: Sequence[PracticeTask]) -> set[tuple[str, int]]:
    return {(task.document, task.round) for task in practice if task.status != "draft" or task.excluded}


_SELECT_PRACTICE_TASKS = (
    sa.select(_A.id, _A.document, _A.round, _A.status, _A.excluded, _A.number)
    .where(
        _A.study == bind_parameter("study"),
        _A.annotator == bind_parameter("annotator"),
        _A.protocol == bind_parameter("protocol"),
        _A.phase != "work",
    )
    .order_by(_A.key)
)


def read_onboarding_state(store: Store, transaction: Transaction, annotator: str) -> OnboardingState:
    """How far somebody is on the way of the protocol in force; reads only."""
    protocol, settings = store.head.protocol, store.head.settings
    tasks = transaction.all(_SELECT_PRACTICE_TASKS, study=store.key, annotator=annotator, protocol=protocol.id)
    practice = tuple(PracticeTask(*row) for row in tasks)
    person = annotator_storage.get_annotator(store, transaction, annotator)
    return OnboardingState(
        person, practice, onboarding.next_onboarding_step(protocol, settings, person, _finished_items(practice))
    )


# --- pages -------------------------------------------------------------------------------------------------------


def record_step_shown(store: Store, transaction: Transaction, annotator: Annotator, step: Step) -> None:
    """Remember when a page was first shown."""
    protocol = store.head.protocol
    if onboarding.find_step_record(protocol, annotator, step.id) is None:
        person = onboarding.with_updated_step_record(protocol, annotator, step.id, shown=iso_timestamp(store.clock()))
        annotator_storage.replace_annotator(store, transaction, person)


def complete_step(
    store: Store, transaction: Transaction, annotator: str, step: str, answers: Answers, active: float
) -> int | RejectedChange:
    """A page was read or answered; saying so twice is saying so once."""
    protocol, state = store.head.protocol, read_onboarding_state(store, transaction, annotator)
    if state.annotator.excluded:
        return RejectedChange("not-allowed")
    route = onboarding.list_steps_with_completion(protocol, store.head.settings, state.annotator, state.finished_items)
    if any(is_done for stop, is_done in route if isinstance(stop, Step) and stop.id == step):
        return 0
    record = onboarding.find_step_record(protocol, state.annotator, step)
    if not isinstance(state.step, Step) or state.step.id != step or record is None or record.shown is None:
        return RejectedChange("not-allowed", say="This page does not come now. Reload to go on where you are.")
    if state.step.number and record.guessed is None:
        return RejectedChange("not-allowed", say="Decide for yourself first. Then you see the answer, and can go on.")
    is_survey = state.step.kind == "survey"
    if is_survey and (declined := _survey_answers_rejection(protocol, answers)):
        return declined
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
    """Keep what somebody guesses in a practice round; a later guess does not replace the first."""
    protocol, settings = store.head.protocol, store.head.settings
    state = read_onboarding_state(store, transaction, annotator)
    if state.annotator.excluded:
        return RejectedChange("not-allowed")
    record = onboarding.find_step_record(protocol, state.annotator, step)
    now = state.step
    if not isinstance(now, Step) or now.id != step or not now.number or record is None or record.shown is None:
        return RejectedChange("not-allowed", say="This page does not come now. Reload to go on where you are.")
    if record.guessed is not None:
        return state.annotator, now
    condition = practised_condition(protocol, settings, state.annotator)
    examples = annotator_practice_rounds(condition, state.annotator)[now.number - 1]
    if problem := guess_problem(protocol, examples, guess):
        return RejectedChange("refused", say=f"This guess was not accepted: {problem}.")
    wall = store.clock() - datetime.fromisoformat(record.shown).timestamp()
    seconds = round(max(0.0, min(active, wall)), 3)
    facts = {"guess": guess, "guessed": iso_timestamp(store.clock()), "guess_seconds": seconds}
    person = onboarding.with_updated_step_record(
        protocol, state.annotator, step, **facts, right=is_guess_right(protocol, examples, guess)
    )
    annotator_storage.replace_annotator(store, transaction, person)
    return person, now


def _survey_answers_rejection(protocol: Protocol, answers: Answers) -> RejectedChange | None:
    by_name = {question.name: question for question in protocol.survey}
    for name, answer in answers.items():
        problem = by_name[name].problem(answer) if name in by_name else f"{name!r} is not asked"
        if problem:
            return RejectedChange("refused", say=f"This answer was not accepted: {problem}.")
    missing = tuple(f"steps/survey: {name}" for name in unanswered_questions(answers, protocol.survey))
    return RejectedChange("incomplete", missing=missing) if missing else None


# --- exercises ---------------------------------------------------------------------------------------------------

_UPDATE_ADOPTED_TASK = (
    sa.update(tables.annotation)
    .values(number=bind_parameter("new"), started=sa.func.coalesce(_A.started, bind_parameter("now")))
    .where(_A.study == bind_parameter("of"), _A.id == bind_parameter("task"))
)


def assign_practice_item(store: Store, transaction: Transaction, state: OnboardingState, item: PracticeItem) -> str:
    """The task of an exercise: the open one, else a new one. Its place is nobody else's, so it has no lease."""
    tasks = [task for task in state.practice if (task.document, task.round) == (item.document, item.round)]
    id, number = tasks[0].id if tasks else secrets.token_hex(12), len(state.practice) + 1
    if not tasks:
        values = {"annotator": state.annotator.id, "document": item.document, "number": number, "round": item.round}
        rest = {"meta": TaskMeta(order=number).to_meta()}
        assignment_storage.insert_task(
            store, transaction, id=id, phase=item.phase, about="", lease=None, rest=rest, **values
        )
    elif tasks[0].number is None:
        transaction.run(_UPDATE_ADOPTED_TASK, of=store.key, task=id, new=number, now=iso_timestamp(store.clock()))
    return id


# --- the test ----------------------------------------------------------------------------------------------------


def read_attempt_annotations(
    store: Store, transaction: Transaction, annotator: str, protocol: Protocol, round: int
) -> dict[str, Annotation]:
    """What somebody did in one attempt, by the ids of its texts."""
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
    """After the last item of an attempt, keep its grade with the annotator.

    An attempt under a protocol that is no longer in force is left as it is: it decides nothing any more.
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
        grade = grading.attempt_grade(in_force, annotations)
        annotator_storage.replace_annotator(
            store, transaction, grading.with_graded_attempt(in_force, person, grade, round, when)
        )
