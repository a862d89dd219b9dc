"""Onboarding: the pages, exercises and tests that precede the work, and their order.

All progress is stored in the `Annotator` record (`survey`, `qualification`, `AnnotatorMeta`) and in the submitted
exercises. The next step is therefore a function of these records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from finecomb.collection.annotator_meta import AnnotatorMeta, StepRecord, with_other_qualifications, with_step_records
from finecomb.collection.practice_rounds import annotator_practice_rounds, practised_condition
from finecomb.core.practice import Choice, Exercise, QualificationPart
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, OnboardingPhase, QualificationRecord, Settings

FinishedItems = Collection[tuple[str, int]]
"""Document ID and round of each exercise and question that was submitted or excluded."""


@dataclass(frozen=True, slots=True)
class Step:
    """Onboarding page to read or to answer. It is done once the annotator confirms it."""

    id: str
    kind: Literal["survey", "instructions", "examples", "intro", "label", "result"]
    phase: OnboardingPhase
    part: QualificationPart | None = None
    """Part of the qualification to which the page belongs, or None."""
    round: int = 0
    """Number of the qualification attempt, counted from 0."""
    label: str = ""
    """Label that the page explains; empty for other pages."""
    number: int = 0
    """Number of the practice round, counted from 1; 0 for other pages."""
    of: int = 0
    """Total number of practice rounds."""


@dataclass(frozen=True, slots=True)
class PracticeItem:
    """Exercise or multiple-choice question. It is done once it is submitted."""

    document: str
    phase: Literal["training", "qualification"]
    given: Exercise | Choice
    number: int
    """Position in the training or in its part of the qualification, counted from 1."""
    of: int
    part: QualificationPart | None = None
    """Part of the qualification to which the item belongs; None in the training."""
    round: int = 0
    """Number of the qualification attempt, counted from 0."""


StepOrItem: TypeAlias = Step | PracticeItem
OnboardingOutcome = Literal["work", "screened-out"]
SectionState = Literal["done", "now", "ahead"]


@dataclass(frozen=True, slots=True)
class OnboardingSection:
    """Section of the progress bar: a phase and whether it is done, current or ahead."""

    phase: Literal["survey", "instructions", "training", "qualification", "work"]
    state: SectionState


# --- the next step -----------------------------------------------------------------------------------------------


def next_onboarding_step(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems
) -> StepOrItem | OnboardingOutcome:
    """Return the first open step or, when none is open, `work`, or `screened-out` after a failed qualification."""
    return _first_open_step(
        protocol, settings, annotator, list_steps_with_completion(protocol, settings, annotator, finished)
    )


def _first_open_step(
    protocol: Protocol, settings: Settings, annotator: Annotator, route: Sequence[tuple[StepOrItem, bool]]
) -> StepOrItem | OnboardingOutcome:
    for stop, is_done in route:
        if not is_done:
            return stop
    test = protocol.qualification
    if test is None or "qualification" in settings.skip or _has_passed_qualification(protocol, annotator):
        return "work"
    return "screened-out" if _graded_attempt_count(protocol, annotator) >= test.attempts else "work"


def list_steps_with_completion(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems
) -> list[tuple[StepOrItem, bool]]:
    """Return all onboarding steps in order, and whether each is done. A further attempt is listed once it is needed."""
    done_steps = AnnotatorMeta.from_annotator(annotator).done_step_ids(protocol.id)
    has_passed = _has_passed_qualification(protocol, annotator)
    steps = []
    for stop in _iter_steps(protocol, settings, annotator, finished):
        if isinstance(stop, Step):
            # Earlier versions showed all practice rounds on one page, in the step `examples`.
            is_done = stop.id in done_steps or (stop.number > 0 and "examples" in done_steps)
        else:
            is_done = (stop.document, stop.round) in finished
        # Passing the test ends the training, except for a condition's material, which only the settings can skip.
        if stop.phase == "training" and has_passed and not (isinstance(stop, Step) and stop.kind == "examples"):
            is_done = True
        steps.append((stop, is_done))
    return steps


def progress_bar_sections(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems, is_over: bool
) -> list[OnboardingSection]:
    """Return the sections of the progress bar. With `is_over`, the work phase counts as done."""
    route = list_steps_with_completion(protocol, settings, annotator, finished)
    step = _first_open_step(protocol, settings, annotator, route)
    open_phases = {stop.phase for stop, is_done in route if not is_done}
    sections = []
    for phase in dict.fromkeys(stop.phase for stop, _ in route):
        assert phase != "consent"
        state: SectionState = "ahead" if phase in open_phases else "done"
        sections.append(
            OnboardingSection(phase, "now" if isinstance(step, StepOrItem) and step.phase == phase else state)
        )
    return [*sections, OnboardingSection("work", ("done" if is_over else "now") if step == "work" else "ahead")]


# --- the qualification -------------------------------------------------------------------------------------------


def find_qualification_record(protocol: Protocol, annotator: Annotator) -> QualificationRecord | None:
    """Return the qualification result of an annotator for exactly this protocol, or None."""
    return next((result for result in _all_qualification_records(annotator) if result.protocol == protocol.id), None)


def with_qualification_record(annotator: Annotator, result: QualificationRecord) -> Annotator:
    """Return a copy of the annotator with a qualification result. Other protocols' results move to `AnnotatorMeta`."""
    others = [other for other in _all_qualification_records(annotator) if other.protocol != result.protocol]
    return with_other_qualifications(annotator, others).model_copy(update={"qualification": result})


def _all_qualification_records(annotator: Annotator) -> list[QualificationRecord]:
    latest = [annotator.qualification] if annotator.qualification else []
    return [*latest, *AnnotatorMeta.from_annotator(annotator).other_qualifications]


def _has_passed_qualification(protocol: Protocol, annotator: Annotator) -> bool:
    result = find_qualification_record(protocol, annotator)
    return result is not None and result.passed


def _graded_rounds(protocol: Protocol, annotator: Annotator) -> set[int]:
    """Return the numbers of the graded qualification attempts."""
    result = find_qualification_record(protocol, annotator)
    return {attempt.round for attempt in result.attempts} if result else set()


def _graded_attempt_count(protocol: Protocol, annotator: Annotator) -> int:
    return max(_graded_rounds(protocol, annotator), default=-1) + 1


# --- all steps ---------------------------------------------------------------------------------------------------


def _iter_steps(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems
) -> Iterator[StepOrItem]:
    phases = {phase for phase in _PHASES if phase not in settings.skip}
    if protocol.survey and "survey" in phases:
        yield Step("survey", "survey", "survey")
    if protocol.instructions and "instructions" in phases:
        yield Step("instructions", "instructions", "instructions")
    if "training" in phases:
        # Pages of a condition: one page per practice round, or a single page to read
        condition = practised_condition(protocol, settings, annotator)
        rounds = len(annotator_practice_rounds(condition, annotator))
        if not rounds and condition is not None and condition.instructions:
            yield Step("examples", "examples", "training")
        for number in range(1, rounds + 1):
            yield Step(f"examples-{number}", "examples", "training", number=number, of=rounds)
    test, has_passed = protocol.qualification, _has_passed_qualification(protocol, annotator)
    attempts: list[StepOrItem] = []
    if test is not None:
        # There is no further attempt after passing or after the last attempt.
        count = _graded_attempt_count(protocol, annotator)
        due = 0 if has_passed or count >= test.attempts else 1
        attempts = [stop for round in range(count + due) for stop in _attempt_steps(protocol, round)]
    begun = {
        stop.round for stop in attempts if isinstance(stop, PracticeItem) and (stop.document, stop.round) in finished
    }
    if has_passed and not begun:
        return  # the qualification was passed in another study
    if "training" in phases:
        yield from _training_steps(protocol)
    if "qualification" in phases:
        graded = _graded_rounds(protocol, annotator)
        yield from (stop for stop in attempts if stop.round not in graded or stop.round in begun)


_PHASES: tuple[OnboardingPhase, ...] = ("survey", "instructions", "training", "qualification")


def _training_steps(protocol: Protocol) -> Iterator[StepOrItem]:
    training = protocol.training
    if training is None:
        return
    if training.intro:
        yield Step("training", "intro", "training")
    for number, exercise in enumerate(training.exercises, 1):
        yield PracticeItem(f"{protocol.id}/{exercise.name}", "training", exercise, number, len(training.exercises))


def _attempt_steps(protocol: Protocol, round: int) -> Iterator[StepOrItem]:
    assert protocol.qualification is not None
    for index, part in enumerate(protocol.qualification.parts, 1):
        yield Step(f"part-{round + 1}-{index}", "intro", "qualification", part, round)
        for item in _qualification_part_items(protocol, part, round):
            if part.teach and isinstance(item.given, Exercise) and item.given.label:
                id = f"label-{round + 1}-{item.given.name}"
                yield Step(id, "label", "qualification", part, round, item.given.label)
            yield item
    yield Step(f"result-{round + 1}", "result", "qualification", round=round)


def _qualification_part_items(protocol: Protocol, part: QualificationPart, round: int) -> Iterator[PracticeItem]:
    exercises: Sequence[Exercise | Choice] = part.exercises or part.choices
    for number, exercise in enumerate(exercises, 1):
        document = f"{protocol.id}/{exercise.name}"
        yield PracticeItem(document, "qualification", exercise, number, len(exercises), part, round)


def practice_items_by_document(protocol: Protocol, round: int = 0) -> dict[str, PracticeItem]:
    """Return the exercises and questions of the training and of one qualification attempt, by document ID."""
    parts = protocol.qualification.parts if protocol.qualification else ()
    tested = (item for part in parts for item in _qualification_part_items(protocol, part, round))
    return {item.document: item for item in (*_training_steps(protocol), *tested) if isinstance(item, PracticeItem)}


# --- step records ------------------------------------------------------------------------------------------------


def find_step_record(protocol: Protocol, annotator: Annotator, step: str) -> StepRecord | None:
    """Return the record of an onboarding step under a protocol, or None when it was never shown."""
    return AnnotatorMeta.from_annotator(annotator).find_step_record(protocol.id, step)


def with_updated_step_record(protocol: Protocol, annotator: Annotator, step: str, **facts: Any) -> Annotator:
    """Return a copy of the annotator with updated facts about a step, such as `shown`, `done` and `seconds`."""
    progress = AnnotatorMeta.from_annotator(annotator)
    before = progress.find_step_record(protocol.id, step)
    record = replace(before or StepRecord(step, protocol.id), **facts)
    if before is None:
        return with_step_records(annotator, (*progress.steps, record))
    return with_step_records(annotator, [record if other is before else other for other in progress.steps])
