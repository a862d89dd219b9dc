"""Simulated participants for any protocol: they mark, rate, compare and judge texts with known skill and habits.

The ground truth of a text comes from gold or from the protocol's `meta.truth`. Otherwise it is drawn from the seed and
is the same for all participants. Each participant finds it with a probability equal to their skill, so the
expected results of the study are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, plant_errors, simulate_annotations
from finecomb.core.design import HUMAN_MODEL
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Answer, Document, Mark
from finecomb.core.scales import is_among
from finecomb.engine.seeds import seeded_generator

Habit = Literal["careful", "copies", "careless"]
"""Working style: `copies` submits words of the text as reasons, `careless` clicks without reading."""
_ERRORS_PER_100_WORDS = 3.0  # for texts without gold
_REASON_TEMPLATE = "The {ordinal} sentence decided it for me, because of what it says about {word}."
_ORDINALS = ("first", "second", "third", "last", "longest", "shortest")


@dataclass(frozen=True, slots=True)
class CrowdTraits:
    """Characteristics of the simulated participants."""

    skill: Mapping[str, float] = field(default_factory=lambda: {"": 0.6})
    """Probability of a correct answer by condition. The empty name applies to all other conditions."""
    bias: float = 0.0
    """Probability that a participant without the correct answer selects the highest option instead of a random one."""
    copies: float = 0.0
    """Share of participants who copy from the text instead of giving reasons."""
    careless: float = 0.0
    """Share of participants who click without reading."""
    leaves: float = 0.0
    """Share of participants who drop out."""

    def __post_init__(self) -> None:
        shares = {"bias": self.bias, "copies": self.copies, "careless": self.careless, "leaves": self.leaves}
        for name, share in {**shares, **{f"skill {name}": value for name, value in self.skill.items()}}.items():
            if not 0 <= share <= 1:
                raise FinecombError(f"simulated participants: {name.strip()} must be from 0 to 1, found {share:g}")
        if self.copies + self.careless > 1:
            raise FinecombError(
                "the shares of simulated participants who copy and who are careless must add up to at most 1, found "
                f"{self.copies + self.careless:g}"
            )

    def condition_skill(self, condition: str) -> float:
        """Return the probability of a correct answer in a condition."""
        return self.skill.get(condition, self.skill.get("", 0.6))


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """A simulated participant."""

    number: int
    habit: Habit
    leaves_after: int | None
    """Number of texts submitted before dropping out, or None for participants who finish."""
    seed: int

    @property
    def is_careful(self) -> bool:
        """True if a researcher who reads the participant's reasons would accept their work."""
        return self.habit == "careful"


def make_simulated_person(number: int, traits: CrowdTraits, texts: int, seed: int) -> SimulatedPerson:
    """Create the participant with a given number, determined only by the traits, the seed and the number."""
    rng = seeded_generator(seed, "person", number)
    habit_draw, leave_draw = rng.random(), rng.random()
    habit: Habit = "careful"
    if habit_draw < traits.copies + traits.careless:
        habit = "copies" if habit_draw < traits.copies else "careless"
    leaves_after = int(rng.integers(0, max(1, texts))) if leave_draw < traits.leaves else None
    return SimulatedPerson(number, habit, leaves_after, seed)


# --- ground truth ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The correct marks and answers for one text or one item to judge."""

    answers: Mapping[str, Answer]
    """Correct answers to the questions about the whole text."""
    marks: Sequence[Mark] = ()
    units: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)
    """Correct answers to the questions about parts, by `start-end`."""


def build_ground_truth(
    document: Document, protocol: Protocol, parts: Iterable[str], gold: Annotation | None, seed: int, about: str = ""
) -> GroundTruth:
    """Build the ground truth of a text from gold, otherwise from the protocol's `meta.truth`, otherwise at random."""
    key = about or document.id
    answers = _invent_answers(protocol.document_questions, seed, key) | _true_answers_from_meta(protocol, document)
    units = {part: _invent_answers(protocol.unit_questions, seed, key, part) for part in parts}
    marks: Sequence[Mark] = ()
    if gold is not None:
        answers |= dict(gold.answers)
        units |= {f"{unit.start}-{unit.end}": {**unit.answers} for unit in gold.units}
        marks = gold.marks
    elif protocol.labels and document.text:
        (planted,) = plant_errors([document], protocol, _ERRORS_PER_100_WORDS, seed)
        marks = planted.marks
    return GroundTruth(answers, marks, units)


def _invent_answers(questions: Iterable[Question], seed: int, *key: str) -> dict[str, Answer]:
    return {
        question.name: question.scale_type.example(question, seeded_generator(seed, "truth", *key, question.name))
        for question in questions
    }


def _true_answers_from_meta(protocol: Protocol, document: Document) -> dict[str, Answer]:
    """Return the answer that the protocol's `meta.truth` defines for the author of a text, from its meta `model`."""
    fields = protocol.meta.get("truth")
    if not isinstance(fields, Mapping) or "model" not in document.meta:
        return {}
    listed = fields.get("human_answers" if document.meta["model"] == HUMAN_MODEL else "machine_answers")
    question = next(
        (candidate for candidate in protocol.document_questions if candidate.name == fields.get("question")), None
    )
    if question is None or not isinstance(listed, list) or not listed:
        return {}
    return {question.name: listed[0] if document.meta["model"] == HUMAN_MODEL else listed[-1]}  # type: ignore[dict-item]


# --- responses ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimulatedResponse:
    """The marks and answers of a participant for one text, with the time taken in seconds."""

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
    """Simulate the response of one participant to a text with known ground truth."""
    rng = seeded_generator(person.seed, "reading", person.number, document.id)
    skill = 0.0 if person.habit == "careless" else traits.condition_skill(condition)
    chooser = _AnswerChooser(person, traits.bias, skill, document, protocol, rng)
    marks: Sequence[Mark] = ()
    if protocol.labels and document.text:
        # The skill of careless participants is 0, but a precision must be positive.
        annotator = SimulatedAnnotator(f"person-{person.number}", recall=skill, precision=max(0.3, skill))
        true = Annotation(id="t", document=document.id, annotator="t", protocol=protocol.id, marks=tuple(truth.marks))
        (done,) = simulate_annotations([document], {document.id: true}, [annotator], protocol, person.seed)
        marks = done.marks
    words = len(document.text.split()) + sum(len(text.split()) for text in document.context.values())
    pace = 0.05 if person.habit == "careless" else 0.3
    return SimulatedResponse(
        marks=marks,
        answers=chooser.choose_answers(protocol.document_questions, truth.answers),
        units={part: chooser.choose_answers(protocol.unit_questions, right) for part, right in truth.units.items()},
        seconds=round(float(rng.gamma(8, (pace * words + 12 * len(marks) + 10) / 8)), 1),
    )


@dataclass(frozen=True, slots=True)
class _AnswerChooser:
    """Random answers to questions by a simulated participant."""

    person: SimulatedPerson
    bias: float
    skill: float
    document: Document
    protocol: Protocol
    rng: np.random.Generator

    def choose_answers(self, questions: Iterable[Question], right: Mapping[str, Answer]) -> dict[str, Answer]:
        """Answer each required question whose condition is met by the previous answers."""
        answers: dict[str, Answer] = {}
        for question in questions:
            is_asked = question.when is None or is_among(answers.get(question.when.question), question.when.among)
            if is_asked and question.required:
                answers[question.name] = self._choose_answer(question, right.get(question.name))
        return answers

    def _choose_answer(self, question: Question, right: Answer | None) -> Answer:
        if question.scale_type.prose:
            words = self.document.text.split() or ["it"]
            if self.person.habit == "copies":
                start = int(self.rng.integers(max(1, len(words) - 12)))
                return " ".join(words[start : start + 12])
            if self.person.habit == "careless":
                return "good text"
            word = words[int(self.rng.integers(len(words)))].strip(".,;:!?\"'()")
            ordinal = _ORDINALS[int(self.rng.integers(len(_ORDINALS)))]
            return _REASON_TEMPLATE.format(ordinal=ordinal, word=f'"{word}"' if word else "it")
        if right is not None and self.rng.random() < self.skill:
            return right
        values: Sequence[Answer] = question.values or question.scale_type.values
        if not values:
            return question.scale_type.example(question, self.rng)
        if self.rng.random() < self.bias:
            return (str(values[-1]),) if question.scale_type.many else values[-1]
        wrong = [value for value in values if value != right] if self.skill else []
        truth = self.protocol.meta.get("truth")
        if self.skill and isinstance(truth, Mapping) and truth.get("question") == question.name and right is not None:
            # Wrong answers to a question about the author are on the other side of the scale.
            sides = [truth.get("human_answers"), truth.get("machine_answers")]
            if other := next((side for side in sides if isinstance(side, list) and right not in side), None):
                wrong = [value for value in values if is_among(value, other)]
        chosen = (wrong or values)[int(self.rng.integers(len(wrong or values)))]
        return (str(chosen),) if question.scale_type.many else chosen
