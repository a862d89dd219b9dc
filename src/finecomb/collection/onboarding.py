"""Onboarding: what an annotator reads, practises and is tested on before the work, and in which order.

Everything that says how far somebody is stands in their `Annotator` record (`survey`, `qualification`, `AnnotatorMeta`)
and in the exercises they handed in. So what comes next is a function of records, and nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from finecomb.collection.annotator_meta import AnnotatorMeta, StepRecord, with_other_qualifications, with_step_records
from finecomb.collection.practice_rounds import annotator_practice_rounds, practised_condition
from finecomb.core.practice import Choice, Exercise, QualificationPart
from finecomb.core.protocol import Condition, Protocol
from finecomb.core.records import Annotator, OnboardingPhase, QualificationRecord, Settings

FinishedItems = Collection[tuple[str, int]]
"""Document and round of every exercise and question that was handed in (or set aside)."""


@dataclass(frozen=True, slots=True)
class Step:
    """A page to read or to answer; done when its reader says so."""

    id: str
    kind: Literal["survey", "instructions", "examples", "intro", "label", "result"]
    phase: OnboardingPhase
    part: QualificationPart | None = None
    """Of the qualification."""
    round: int = 0
    """Of the qualification: the attempt, counted from 0."""
    label: str = ""
    """The label that a page is about."""
    number: int = 0
    """Of a practice round: counted from 1; 0 for any other page."""
    of: int = 0
    """Of a practice round: how many there are."""


@dataclass(frozen=True, slots=True)
class PracticeItem:
    """An exercise or a multiple-choice question; done when it was handed in."""

    document: str
    phase: Literal["training", "qualification"]
    given: Exercise | Choice
    number: int
    """Counted from 1 in its part."""
    of: int
    part: QualificationPart | None = None
    """Of the qualification."""
    round: int = 0
    """The attempt, counted from 0."""


StepOrItem: TypeAlias = Step | PracticeItem
OnboardingOutcome = Literal["work", "screened-out"]
SectionState = Literal["done", "now", "ahead"]


@dataclass(frozen=True, slots=True)
class OnboardingSection:
    """A section of the progress bar: a phase of the way, and whether it is done."""

    phase: Literal["survey", "instructions", "training", "qualification", "work"]
    state: SectionState


# --- the next step -----------------------------------------------------------------------------------------------


def next_onboarding_step(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems
) -> StepOrItem | OnboardingOutcome:
    """The first stop that is not done; after the last one `work`, or `screened-out` for who did not pass."""
    return _first_open_step(
        protocol, settings, annotator, list_steps_with_completion(protocol, settings, annotator, finished)
    )


def _first_open_step(
    protocol: Protocol, settings: Settings, annotator: Annotator, route: Sequence[tuple[StepOrItem, bool]]
) -> StepOrItem | OnboardingOutcome:
    for stop, is_done in route:
        if not is_done:
            return stop
    return "screened-out" if _has_failed_qualification(protocol, settings, annotator) else "work"


def list_steps_with_completion(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems
) -> list[tuple[StepOrItem, bool]]:
    """Every stop before the work in order, and whether it is done; a further attempt is there once it is needed."""
    done_steps = AnnotatorMeta.from_annotator(annotator).done_steps(protocol.id)
    return [
        (stop, _is_step_done(stop, protocol, annotator, done_steps, finished))
        for stop in _iter_steps(protocol, settings, annotator, finished)
    ]


def progress_bar_sections(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems, is_over: bool
) -> list[OnboardingSection]:
    """The sections of the progress bar; `is_over` says that there is no work left."""
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


def _is_step_done(
    stop: StepOrItem, protocol: Protocol, annotator: Annotator, done_steps: set[str], finished: FinishedItems
) -> bool:
    if stop.phase == "training" and _has_passed_qualification(protocol, annotator) and not _is_condition_step(stop):
        return True
    if isinstance(stop, Step):
        return stop.id in done_steps or (stop.number > 0 and "examples" in done_steps)  # one page for all, before
    return (stop.document, stop.round) in finished


def _is_condition_step(stop: StepOrItem) -> bool:
    """Whether it is what an arm of an experiment is about; nothing but the settings spares it anybody."""
    return isinstance(stop, Step) and stop.kind == "examples"


# --- the qualification -------------------------------------------------------------------------------------------


def qualification_result(protocol: Protocol, annotator: Annotator) -> QualificationRecord | None:
    """The result of somebody in the qualification of exactly this protocol."""
    return next((result for result in _all_qualification_records(annotator) if result.protocol == protocol.id), None)


def with_qualification(annotator: Annotator, result: QualificationRecord) -> Annotator:
    """The annotator with a result; those under other protocols are kept in their `AnnotatorMeta`."""
    others = [other for other in _all_qualification_records(annotator) if other.protocol != result.protocol]
    return with_other_qualifications(annotator, others).model_copy(update={"qualification": result})


def _all_qualification_records(annotator: Annotator) -> list[QualificationRecord]:
    latest = [annotator.qualification] if annotator.qualification else []
    return [*latest, *AnnotatorMeta.from_annotator(annotator).qualifications]


def _has_failed_qualification(protocol: Protocol, settings: Settings, annotator: Annotator) -> bool:
    test = protocol.qualification
    if test is None or "qualification" in settings.skip or _has_passed_qualification(protocol, annotator):
        return False
    return _graded_attempt_count(protocol, annotator) >= test.attempts


def _has_passed_qualification(protocol: Protocol, annotator: Annotator) -> bool:
    result = qualification_result(protocol, annotator)
    return result is not None and result.passed


def _graded_rounds(protocol: Protocol, annotator: Annotator) -> set[int]:
    """The attempts that were graded."""
    result = qualification_result(protocol, annotator)
    return {attempt.round for attempt in result.attempts} if result else set()


def _graded_attempt_count(protocol: Protocol, annotator: Annotator) -> int:
    return max(_graded_rounds(protocol, annotator), default=-1) + 1


# --- the whole way -----------------------------------------------------------------------------------------------


def _iter_steps(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: FinishedItems
) -> Iterator[StepOrItem]:
    phases = {phase for phase in _PHASES if phase not in settings.skip}
    if protocol.survey and "survey" in phases:
        yield Step("survey", "survey", "survey")
    if protocol.instructions and "instructions" in phases:
        yield Step("instructions", "instructions", "instructions")
    if "training" in phases:
        yield from _condition_steps(practised_condition(protocol, settings, annotator), annotator)
    attempts = [stop for round in _attempt_rounds(protocol, annotator) for stop in _attempt_steps(protocol, round)]
    begun = {
        stop.round for stop in attempts if isinstance(stop, PracticeItem) and (stop.document, stop.round) in finished
    }
    if _has_passed_qualification(protocol, annotator) and not begun:
        return  # somewhere else
    if "training" in phases:
        yield from _training_steps(protocol)
    if "qualification" in phases:
        graded = _graded_rounds(protocol, annotator)
        yield from (stop for stop in attempts if stop.round not in graded or stop.round in begun)


_PHASES: tuple[OnboardingPhase, ...] = ("survey", "instructions", "training", "qualification")


def _condition_steps(condition: Condition | None, annotator: Annotator) -> Iterator[Step]:
    """The pages of an arm of the experiment: one for each practice round, or one with something to read."""
    rounds = len(annotator_practice_rounds(condition, annotator))
    if not rounds and condition is not None and condition.instructions:
        yield Step("examples", "examples", "training")
    for number in range(1, rounds + 1):
        yield Step(f"examples-{number}", "examples", "training", number=number, of=rounds)


def _training_steps(protocol: Protocol) -> Iterator[StepOrItem]:
    training = protocol.training
    if training is None:
        return
    if training.intro:
        yield Step("training", "intro", "training")
    for number, exercise in enumerate(training.exercises, 1):
        yield PracticeItem(f"{protocol.id}/{exercise.name}", "training", exercise, number, len(training.exercises))


def _attempt_rounds(protocol: Protocol, annotator: Annotator) -> range:
    """Attempts that were made or are due; whoever passed or has none left gets no other."""
    if protocol.qualification is None:
        return range(0)
    count = _graded_attempt_count(protocol, annotator)
    more = 0 if _has_passed_qualification(protocol, annotator) or count >= protocol.qualification.attempts else 1
    return range(count + more)


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
    """Every exercise and question of training and of one attempt, by the ids of their texts."""
    parts = protocol.qualification.parts if protocol.qualification else ()
    tested = (item for part in parts for item in _qualification_part_items(protocol, part, round))
    return {item.document: item for item in (*_training_steps(protocol), *tested) if isinstance(item, PracticeItem)}


# --- the records of steps ----------------------------------------------------------------------------------------


def find_step_record(protocol: Protocol, annotator: Annotator, step: str) -> StepRecord | None:
    """The record of when a step was shown and done under a protocol."""
    return AnnotatorMeta.from_annotator(annotator).find_step_record(protocol.id, step)


def with_updated_step_record(protocol: Protocol, annotator: Annotator, step: str, **facts: Any) -> Annotator:
    """The annotator with facts about a step added: `shown`, `done`, `seconds`."""
    progress = AnnotatorMeta.from_annotator(annotator)
    before = progress.find_step_record(protocol.id, step)
    record = replace(before or StepRecord(step, protocol.id), **facts)
    if before is None:
        return with_step_records(annotator, (*progress.steps, record))
    return with_step_records(annotator, [record if other is before else other for other in progress.steps])
