"""Pretended people for any protocol: they mark, rate, compare and judge part by part, with known skill and habits.

What is true of a text is given (gold, or what the protocol's `meta.truth` says), else invented from the seed, the same
for everybody. A person finds it as often as their skill says. So a study of such people has a known answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, plant_errors, simulate_annotations
from finecomb.core.design import HUMAN
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Answer, Document, Mark
from finecomb.core.scales import is_among
from finecomb.engine.seeds import seeded_generator

Habit = Literal["careful", "copies", "careless"]
"""`copies` writes words of the text in place of reasons, `careless` clicks without reading."""
_ERRORS_PER_100_WORDS = 3.0  # per 100 words, where nobody says what is wrong with a text
_REASON_TEMPLATE = "The {ordinal} sentence decided it for me, because of what it says about {word}."
_ORDINALS = ("first", "second", "third", "last", "longest", "shortest")


@dataclass(frozen=True, slots=True)
class CrowdTraits:
    """What is known about everybody who comes."""

    skill: Mapping[str, float] = field(default_factory=lambda: {"": 0.6})
    """How often somebody is right, by condition; under an empty name, in all others."""
    bias: float = 0.0
    """How often somebody who is wrong, or does not read, takes the highest answer rather than any."""
    copies: float = 0.0
    """Share of people who copy the text in place of reasons."""
    careless: float = 0.0
    """Share of people who click without reading."""
    leaves: float = 0.0
    """Share of people who stop before they are done."""

    def __post_init__(self) -> None:
        shares = {"bias": self.bias, "copies": self.copies, "careless": self.careless, "leaves": self.leaves}
        for name, share in {**shares, **{f"skill {name}": value for name, value in self.skill.items()}}.items():
            if not 0 <= share <= 1:
                raise FinecombError(f"{name.strip()} of simulated people lies between 0 and 1, not {share:g}")
        if self.copies + self.careless > 1:
            raise FinecombError("the shares of people who copy and who are careless are more than everybody")

    def condition_skill(self, condition: str) -> float:
        """How often somebody in that condition is right."""
        return self.skill.get(condition, self.skill.get("", 0.6))


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """One pretended person on their way through a study."""

    number: int
    habit: Habit
    leaves_after: int | None
    """How many texts they hand in before they stop; None for who goes on to the end."""
    seed: int

    @property
    def is_honest(self) -> bool:
        """Whether a researcher who reads their reasons would accept their work."""
        return self.habit == "careful"


def make_person(number: int, traits: CrowdTraits, texts: int, seed: int) -> SimulatedPerson:
    """The person who comes as number so and so; depends on the seed and the number only."""
    rng = seeded_generator(seed, "person", number)
    habit_draw, leave_draw = rng.random(), rng.random()
    habit: Habit = "careful"
    if habit_draw < traits.copies + traits.careless:
        habit = "copies" if habit_draw < traits.copies else "careless"
    leaves_after = int(rng.integers(0, max(1, texts))) if leave_draw < traits.leaves else None
    return SimulatedPerson(number, habit, leaves_after, seed)


# --- what is true of a text --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What is true of one text, or of one thing to be judged."""

    answers: Mapping[str, Answer]
    """To the questions about the whole text."""
    marks: Sequence[Mark] = ()
    units: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)
    """To the questions about parts, by `start-end`."""


def ground_truth(
    document: Document, protocol: Protocol, parts: Iterable[str], gold: Annotation | None, seed: int, about: str = ""
) -> GroundTruth:
    """What is true of a text: what gold says, else what the protocol says of its meta, else an invention."""
    key = about or document.id
    answers = _invent_answers(protocol.document_questions, seed, key) | _protocol_answers(protocol, document)
    units = {part: _invent_answers(protocol.unit_questions, seed, key, part) for part in parts}
    if gold is not None:
        answers |= dict(gold.answers)
        units |= {f"{unit.start}-{unit.end}": {**unit.answers} for unit in gold.units}
    return GroundTruth(answers, _true_marks(document, protocol, gold, seed), units)


def _true_marks(document: Document, protocol: Protocol, gold: Annotation | None, seed: int) -> Sequence[Mark]:
    if gold is not None:
        return gold.marks
    if not protocol.labels or not document.text:
        return ()
    (planted,) = plant_errors([document], protocol, _ERRORS_PER_100_WORDS, seed)
    return planted.marks


def _invent_answers(questions: Iterable[Question], seed: int, *key: str) -> dict[str, Answer]:
    return {
        question.name: question.scale_type.example(question, seeded_generator(seed, "truth", *key, question.name))
        for question in questions
    }


def _protocol_answers(protocol: Protocol, document: Document) -> dict[str, Answer]:
    """What the protocol's `meta.truth` says: who wrote a text, by its model."""
    fields = protocol.meta.get("truth")
    if not isinstance(fields, Mapping) or "model" not in document.meta:
        return {}
    listed = fields.get("human_answers" if document.meta["model"] == HUMAN else "machine_answers")
    question = next((one for one in protocol.document_questions if one.name == fields.get("question")), None)
    if question is None or not isinstance(listed, list) or not listed:
        return {}
    return {question.name: listed[0] if document.meta["model"] == HUMAN else listed[-1]}  # type: ignore[dict-item]


# --- what a person does with it ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimulatedResponse:
    """What a person marks and answers in one text, and how long it takes them."""

    marks: Sequence[Mark]
    answers: Mapping[str, Answer]
    units: Mapping[str, Mapping[str, Answer]]
    seconds: float


def simulate_response(
    person: SimulatedPerson,
    traits: CrowdTraits,
    condition: str,
    document: Document,
    protocol: Protocol,
    truth: GroundTruth,
) -> SimulatedResponse:
    """One person's reading of a text of which the truth is known."""
    rng = seeded_generator(person.seed, "reading", person.number, document.id)
    skill = 0.0 if person.habit == "careless" else traits.condition_skill(condition)
    chooser = _AnswerChooser(person, traits.bias, skill, document, protocol, rng)
    marks = _simulate_marks(person, skill, document, protocol, truth)
    words = len(document.text.split()) + sum(len(text.split()) for text in document.context.values())
    pace = 0.05 if person.habit == "careless" else 0.3
    return SimulatedResponse(
        marks=marks,
        answers=chooser.choose_answers(protocol.document_questions, truth.answers),
        units={part: chooser.choose_answers(protocol.unit_questions, right) for part, right in truth.units.items()},
        seconds=round(float(rng.gamma(8, (pace * words + 12 * len(marks) + 10) / 8)), 1),
    )


def _simulate_marks(
    person: SimulatedPerson, skill: float, document: Document, protocol: Protocol, truth: GroundTruth
) -> Sequence[Mark]:
    if not protocol.labels or not document.text:
        return ()
    reader = SimulatedAnnotator(f"person-{person.number}", recall=skill, precision=max(0.3, skill))
    annotation = Annotation(id="t", document=document.id, annotator="t", protocol=protocol.id, marks=tuple(truth.marks))
    (done,) = simulate_annotations([document], {document.id: annotation}, [reader], protocol, person.seed)
    return done.marks


@dataclass(frozen=True, slots=True)
class _AnswerChooser:
    """Answers questions as one person would."""

    person: SimulatedPerson
    bias: float
    skill: float
    document: Document
    protocol: Protocol
    rng: np.random.Generator

    def choose_answers(self, questions: Iterable[Question], right: Mapping[str, Answer]) -> dict[str, Answer]:
        """An answer to each question that is asked, given those before it."""
        answers: dict[str, Answer] = {}
        for question in questions:
            is_asked = question.when is None or is_among(answers.get(question.when.question), question.when.among)
            if is_asked and question.required:
                answers[question.name] = self._choose_answer(question, right.get(question.name))
        return answers

    def _choose_answer(self, question: Question, right: Answer | None) -> Answer:
        if question.scale_type.prose:
            return self._write_reason()
        if right is not None and self.rng.random() < self.skill:
            return right
        values: Sequence[Answer] = question.values or question.scale_type.values
        if not values:
            return question.scale_type.example(question, self.rng)
        if self.rng.random() < self.bias:
            return (str(values[-1]),) if question.scale_type.many else values[-1]
        wrong = self._wrong_answers(question, values, right)
        chosen = wrong[int(self.rng.integers(len(wrong)))]
        return (str(chosen),) if question.scale_type.many else chosen

    def _wrong_answers(self, question: Question, values: Sequence[Answer], right: Answer | None) -> Sequence[Answer]:
        """Answers that are not right; of a question about the author, those on the other side of the scale."""
        truth = self.protocol.meta.get("truth")
        if self.skill and isinstance(truth, Mapping) and truth.get("question") == question.name and right is not None:
            sides = [truth.get("human_answers"), truth.get("machine_answers")]
            other = next((side for side in sides if isinstance(side, list) and right not in side), None)
            if other:
                return [value for value in values if is_among(value, other)]
        others = [value for value in values if value != right] if self.skill else list(values)
        return others or list(values)

    def _write_reason(self) -> str:
        words = self.document.text.split() or ["it"]
        if self.person.habit == "copies":
            start = int(self.rng.integers(max(1, len(words) - 12)))
            return " ".join(words[start : start + 12])
        if self.person.habit == "careless":
            return "good text"
        word = words[int(self.rng.integers(len(words)))].strip(".,;:!?\"'()")
        ordinal = _ORDINALS[int(self.rng.integers(len(_ORDINALS)))]
        return _REASON_TEMPLATE.format(ordinal=ordinal, word=f'"{word}"' if word else "it")
