"""The way of an annotator: what comes before the work, and in which order.

Everything that says how far somebody is stands in their `Annotator` record (`survey`, `qualification`, `meta.steps`)
and in the exercises they handed in. So what comes next is a function of records, and nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from finecomb.core.practice import Choice, Exercise, QualificationPart
from finecomb.core.protocol import Condition, Protocol
from finecomb.core.records import Annotator, Qualified, Settings, WayPhase

Finished = Collection[tuple[str, int]]
"""Document and round of every exercise and question that was handed in (or set aside)."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something to read or to answer; done when its reader says so."""

    id: str
    kind: Literal["survey", "instructions", "examples", "intro", "result"]
    phase: WayPhase
    part: QualificationPart | None = None
    """Of the qualification."""
    round: int = 0
    """Of the qualification: the attempt, counted from 0."""


@dataclass(frozen=True, slots=True)
class Item:
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


Stop: TypeAlias = Step | Item
Beyond = Literal["work", "screened-out"]


@dataclass(frozen=True, slots=True)
class OnboardingSection:
    """A stretch of the way."""

    phase: Literal["survey", "instructions", "training", "qualification", "work"]
    state: Literal["done", "now", "ahead"]


# --- where somebody is -------------------------------------------------------------------------------------------


def here(protocol: Protocol, settings: Settings, annotator: Annotator, finished: Finished) -> Stop | Beyond:
    """What comes now: the first stop that is not done, else the work, or nothing for who did not pass."""
    for stop, is_done in stops(protocol, settings, annotator, finished):
        if not is_done:
            return stop
    return "screened-out" if _failed(protocol, settings, annotator) else "work"


def stops(protocol: Protocol, settings: Settings, annotator: Annotator, finished: Finished) -> list[tuple[Stop, bool]]:
    """Everything before the work in order, and whether it is done; a further attempt is there once it is needed."""
    said = _said(protocol, annotator)
    return [
        (stop, _is_done(stop, protocol, annotator, said, finished))
        for stop in _route(protocol, settings, annotator, finished)
    ]


def legs(
    protocol: Protocol, settings: Settings, annotator: Annotator, finished: Finished, over: bool
) -> list[OnboardingSection]:
    """The way in stretches; `over` says that there is no work left."""
    every = stops(protocol, settings, annotator, finished)
    now = here(protocol, settings, annotator, finished)
    open_ = [stop.phase for stop, is_done in every if not is_done]
    made = []
    for phase in dict.fromkeys(stop.phase for stop, _ in every):
        assert phase != "consent"
        state: Literal["done", "now", "ahead"] = "ahead" if phase in open_ else "done"
        made.append(OnboardingSection(phase, "now" if isinstance(now, Stop) and now.phase == phase else state))
    return [*made, OnboardingSection("work", ("done" if over else "now") if now == "work" else "ahead")]


def qualified(protocol: Protocol, annotator: Annotator) -> Qualified | None:
    """How somebody did in the qualification of exactly this protocol."""
    return next((each for each in _qualifications(annotator) if each.protocol == protocol.id), None)


def with_qualification(annotator: Annotator, made: Qualified) -> Annotator:
    """The annotator with `made`; what was reached under other protocols is kept in `meta.qualifications`."""
    others = [each for each in _qualifications(annotator) if each.protocol != made.protocol]
    meta = {name: value for name, value in annotator.meta.items() if name != "qualifications"}
    kept = {"qualifications": [each.model_dump(mode="json") for each in others]} if others else {}
    return annotator.model_copy(update={"qualification": made, "meta": {**meta, **kept}})


def _qualifications(annotator: Annotator) -> list[Qualified]:
    before = annotator.meta.get("qualifications")
    earlier = [Qualified.model_validate(each) for each in before] if isinstance(before, list | tuple) else []
    return [*([annotator.qualification] if annotator.qualification else []), *earlier]


def _failed(protocol: Protocol, settings: Settings, annotator: Annotator) -> bool:
    test = protocol.qualification
    if test is None or "qualification" in settings.skip or _passed(protocol, annotator):
        return False
    return _attempts(protocol, annotator) >= test.attempts


def _passed(protocol: Protocol, annotator: Annotator) -> bool:
    found = qualified(protocol, annotator)
    return found is not None and found.passed


def _rounds(protocol: Protocol, annotator: Annotator) -> set[int]:
    """The attempts that were graded."""
    found = qualified(protocol, annotator)
    return {attempt.round for attempt in found.attempts} if found else set()


def _attempts(protocol: Protocol, annotator: Annotator) -> int:
    return max(_rounds(protocol, annotator), default=-1) + 1


def _is_done(stop: Stop, protocol: Protocol, annotator: Annotator, said: set[str], finished: Finished) -> bool:
    if stop.phase == "training" and _passed(protocol, annotator) and not _is_examples(stop):
        return True
    if isinstance(stop, Step):
        return stop.id in said
    return (stop.document, stop.round) in finished


def _is_examples(stop: Stop) -> bool:
    """What an arm of an experiment is about; nothing but the settings spares it anybody."""
    return isinstance(stop, Step) and stop.kind == "examples"


# --- the whole way -----------------------------------------------------------------------------------------------


def _route(protocol: Protocol, settings: Settings, annotator: Annotator, finished: Finished) -> Iterator[Stop]:
    asked = {phase for phase in _PHASES if phase not in settings.skip}
    if protocol.survey and "survey" in asked:
        yield Step("survey", "survey", "survey")
    if protocol.instructions and "instructions" in asked:
        yield Step("instructions", "instructions", "instructions")
    if "training" in asked and has_examples(arm(protocol, annotator.condition)):
        yield Step("examples", "examples", "training")
    tested = [each for round in _tries(protocol, annotator) for each in _attempt(protocol, round)]
    met = any((each.document, each.round) in finished for each in tested if isinstance(each, Item))
    if _passed(protocol, annotator) and not met:
        return  # somewhere else
    if "training" in asked:
        yield from _training(protocol)
    if "qualification" in asked:
        graded = _rounds(protocol, annotator)
        begun = {each.round for each in tested if isinstance(each, Item) and (each.document, each.round) in finished}
        yield from (each for each in tested if each.round not in graded or each.round in begun)


_PHASES: tuple[WayPhase, ...] = ("survey", "instructions", "training", "qualification")


def arm(protocol: Protocol, condition: str) -> Condition | None:
    """The arm of the experiment with that name."""
    return next((each for each in protocol.conditions if each.name == condition), None)


def has_examples(found: Condition | None) -> bool:
    """Whether an arm has anything of its own to read before the work."""
    return found is not None and bool(found.instructions or found.examples or found.pairs)


def _training(protocol: Protocol) -> Iterator[Stop]:
    training = protocol.training
    if training is None:
        return
    if training.intro:
        yield Step("training", "intro", "training")
    for number, each in enumerate(training.exercises, 1):
        yield Item(f"{protocol.id}/{each.name}", "training", each, number, len(training.exercises))


def _tries(protocol: Protocol, annotator: Annotator) -> range:
    """Attempts that were made or are due; whoever passed or has none left gets no other."""
    if protocol.qualification is None:
        return range(0)
    taken = _attempts(protocol, annotator)
    more = 0 if _passed(protocol, annotator) or taken >= protocol.qualification.attempts else 1
    return range(taken + more)


def _attempt(protocol: Protocol, round: int) -> Iterator[Stop]:
    assert protocol.qualification is not None
    for index, part in enumerate(protocol.qualification.parts, 1):
        yield Step(f"part-{round + 1}-{index}", "intro", "qualification", part, round)
        yield from _items(protocol, part, round)
    yield Step(f"result-{round + 1}", "result", "qualification", round=round)


def _items(protocol: Protocol, part: QualificationPart, round: int) -> Iterator[Item]:
    every: Sequence[Exercise | Choice] = part.exercises or part.choices
    for number, each in enumerate(every, 1):
        yield Item(f"{protocol.id}/{each.name}", "qualification", each, number, len(every), part, round)


def items(protocol: Protocol, round: int = 0) -> dict[str, Item]:
    """Every exercise and question of training and of one attempt, by the ids of their texts."""
    parts = protocol.qualification.parts if protocol.qualification else ()
    every = [*_training(protocol), *(item for part in parts for item in _items(protocol, part, round))]
    return {each.document: each for each in every if isinstance(each, Item)}


# --- what is kept of it ------------------------------------------------------------------------------------------


def noted(protocol: Protocol, annotator: Annotator, step: str) -> Mapping[str, Any] | None:
    """When a step was shown and done: `{"step", "protocol", "shown", "done", "seconds"}`."""
    return next(
        (each for each in _notes(annotator) if (each.get("step"), each.get("protocol")) == (step, protocol.id)), None
    )


def with_step(protocol: Protocol, annotator: Annotator, step: str, **facts: object) -> Annotator:
    """The annotator with facts about a step added."""
    before = noted(protocol, annotator, step)
    new = {**(before or {"step": step, "protocol": protocol.id}), **facts}
    steps = [new if each is before else each for each in _notes(annotator)] if before else [*_notes(annotator), new]
    return annotator.model_copy(update={"meta": {**annotator.meta, "steps": steps}})


def _notes(annotator: Annotator) -> list[Mapping[str, Any]]:
    found = annotator.meta.get("steps")
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []


def _said(protocol: Protocol, annotator: Annotator) -> set[str]:
    return {str(each["step"]) for each in _notes(annotator) if each.get("protocol") == protocol.id and each.get("done")}
