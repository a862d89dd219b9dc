"""Texts whose errors are known: examples to study, exercises to try, and the test that decides who may work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from finecomb.core.errors import shorten
from finecomb.core.question import Name, Option, Question, as_option, check_unique
from finecomb.core.records import Answers, Document, Id, Json, Record, Segment, Text, wrap_single_values
from finecomb.core.scales import is_among
from finecomb.core.span import TEXT, Span


class Solution(Record):
    """A mark as an author writes it: by quote, not by offset."""

    quote: Text = ""
    """The words marked; empty for an omission, which needs `before`."""
    before: Text = ""
    """For an omission: the words before which something is missing."""
    label: Name | None = None
    """The label it carries."""
    nth: int = Field(default=1, ge=1)
    """Which occurrence of the quote (or of `before`), counted from 1."""
    part: Text = TEXT
    """The text or the name of a context."""
    antecedent: Text = ""
    """The earlier words it refers to, by quote."""
    answers: Answers = {}
    """Answers to the label's questions."""
    why: Text = ""
    """The reason, shown as feedback."""

    @model_validator(mode="after")
    def _check_words_given(self) -> Solution:
        if bool(self.quote) == bool(self.before):
            raise ValueError("needs either a quote or, for an omission, `before`")
        return self

    def span(self, text: str, context: Mapping[str, str]) -> Span:
        """Where it is."""
        span = locate_quote(
            self.quote or self.before, text if self.part == TEXT else context.get(self.part, ""), self.nth, self.part
        )
        return span if self.quote else Span(span.start, span.start, self.part)


class Example(Record):
    """A text with its marks, to be studied."""

    text: Text
    """Our own words, never a paper's."""
    context: Mapping[Id, Text] = {}
    """E.g. the prompt."""
    data: Json = None
    """What the text was made from."""
    marks: tuple[Solution, ...] = ()
    """What is wrong in it; none shows what is not an error."""
    answers: Answers = {}
    """The right answers to the document's questions."""
    why: Text = ""
    """What it teaches."""
    only: Mapping[Text, tuple[Text, ...]] = {}
    """For whom it is meant: people whose texts have one of these values, e.g. `domain: news`; everybody when empty."""

    @field_validator("only", mode="before")
    @classmethod
    def _wrap_values(cls, value: Any) -> Any:
        return wrap_single_values(value)

    @model_validator(mode="after")
    def _check_quotes(self) -> Example:
        _check_quotes_found(self.marks, self.text, self.context)
        return self


def _check_quotes_found(marks: Iterable[Solution], text: str, context: Mapping[str, str]) -> None:
    for mark in marks:
        mark.span(text, context)
        if mark.antecedent and not any(mark.antecedent in passage for passage in (text, *context.values())):
            raise ValueError(f"antecedent {mark.antecedent!r} is not in the text")


def locate_quote(quote: str, text: str, nth: int = 1, part: str = TEXT) -> Span:
    """The nth occurrence of `quote` in `text`.

    >>> locate_quote("an", "banana", 2)
    Span(start=3, end=5, part='text')
    """
    at = -1
    for _ in range(nth):
        at = text.find(quote, at + 1)
        if at < 0:
            often = "" if nth == 1 else f" {nth} times"
            raise ValueError(f"quote {shorten(quote)!r} is not in the {part}{often}")
    return Span(at, at + len(quote), part)


class Exercise(Record):
    """A text to work on whose solution is known."""

    name: Name
    """Its id is `protocol@version/name`."""
    ask: Text = ""
    """What to do."""
    text: Text
    """Our own words."""
    context: Mapping[Id, Text] = {}
    """E.g. the prompt."""
    segments: tuple[Text, ...] = ()
    """Quotes that cut the text into parts, in order; each begins one."""
    data: Json = None
    """What the text was made from."""
    label: Name | None = None
    """The one label it practises, when it practises one."""
    solutions: tuple[Solution, ...] = ()
    """Every known error."""
    answers: Answers = {}
    """The right answers to the document's questions."""
    units: tuple[Answers, ...] = ()
    """The right answers to the questions of each part, in order."""
    feedback: Text = ""
    """Said afterwards."""

    @model_validator(mode="after")
    def _check_quotes(self) -> Exercise:
        _check_quotes_found(self.solutions, self.text, self.context)
        cuts = [locate_quote(quote, self.text).start for quote in self.segments]
        if cuts != sorted(set(cuts)):
            raise ValueError("segments are not in text order")
        if self.units and len(self.units) != len(cuts):
            raise ValueError(f"has {len(self.units)} unit answers for {len(cuts)} segments")
        return self

    def document(self, id: str) -> Document:
        """The exercise as a document."""
        cuts = [locate_quote(quote, self.text).start for quote in self.segments]
        ends = [len(self.text[start:end].rstrip()) + start for start, end in zip(cuts, [*cuts[1:], None], strict=False)]
        segments = tuple(Segment(start=start, end=end) for start, end in zip(cuts, ends, strict=True))
        return Document(id=id, text=self.text, context=self.context, segments=segments, data=self.data)

    def spans(self) -> tuple[Span, ...]:
        """Where its solutions are."""
        return tuple(solution.span(self.text, self.context) for solution in self.solutions)


class Choice(Record):
    """A multiple-choice question about marked words in a short text."""

    name: Name
    """Its id is `protocol@version/name`."""
    text: Text
    """Our own words."""
    context: Mapping[Id, Text] = {}
    """E.g. the prompt."""
    quote: Text = ""
    """The words in question."""
    ask: Text
    """The question."""
    options: tuple[Annotated[Option, BeforeValidator(as_option)], ...] = Field(min_length=2)
    """What can be chosen."""
    answer: bool | int | float | Text
    """What is right."""
    feedback: Text = ""
    """Said afterwards."""

    @model_validator(mode="after")
    def _check_choice(self) -> Choice:
        locate_quote(self.quote, self.text)
        if not is_among(self.answer, (option.value for option in self.options)):
            raise ValueError(f"answer {self.answer!r} is not among the options")
        return self

    @property
    def question(self) -> Question:
        """As a question about the text."""
        return Question(name="answer", ask=self.ask, scale="nominal", options=self.options)


class Training(Record):
    """What people read and try before they are tested; it never filters anybody."""

    intro: Text = ""
    """Said first."""
    exercises: tuple[Exercise, ...] = ()
    """With feedback after each."""


class QualificationPart(Record):
    """One part of a qualification: exercises in which marks are found, or multiple-choice questions."""

    name: Name
    """Under which its points are stored."""
    title: Text = ""
    """As people read it."""
    intro: Text = ""
    """Said first."""
    points: float = Field(gt=0)
    """For each exercise or question."""
    exercises: tuple[Exercise, ...] = ()
    """Points go down by `lose` for each solution short of `needed`, not below 0."""
    choices: tuple[Choice, ...] = ()
    """All points or none."""
    needed: int | None = Field(default=None, ge=1)
    """Solutions that earn all points; all of them when absent."""
    match: Literal["label", "place"] = "label"
    """Whether a mark finds a solution only with its label, or with any label at its place."""
    lose: float | None = Field(default=None, gt=0)
    """Points lost for each solution short of `needed`; points / needed when absent."""
    teach: bool = False
    """Whether a page about the label that an exercise practises comes before it: gloss, rules and examples."""

    @model_validator(mode="after")
    def _check_part(self) -> QualificationPart:
        if bool(self.exercises) == bool(self.choices):
            raise ValueError("needs either exercises or choices")
        for exercise in self.exercises:
            if not exercise.solutions:
                raise ValueError(f"exercise {exercise.name!r} has no solutions to find")
            if self.needed is not None and self.needed > len(exercise.solutions):
                raise ValueError(
                    f"needs {self.needed} solutions, but exercise {exercise.name!r} has {len(exercise.solutions)}"
                )
        return self

    @property
    def max_points(self) -> float:
        """The most points it can give."""
        return self.points * (len(self.exercises) + len(self.choices))


class Qualification(Record):
    """The test that decides who may work."""

    parts: tuple[QualificationPart, ...] = Field(min_length=1)
    """Taken in order."""
    pass_at: float = Field(gt=0)
    """Points that are enough."""
    min_precision: float | None = Field(default=None, ge=0, le=1)
    """Share of a person's marks that must be right, when it matters."""
    attempts: int = Field(default=1, ge=1)
    """How often it may be tried."""
    feedback: Literal["solutions", "written"] = "solutions"
    """`solutions` are shown afterwards; `written` adds a line for each mark found, missed and extra."""

    @model_validator(mode="after")
    def _check_qualification(self) -> Qualification:
        check_unique("part", [part.name for part in self.parts])
        exercises = [exercise.name for part in self.parts for exercise in part.exercises]
        check_unique("exercise", exercises + [choice.name for part in self.parts for choice in part.choices])
        if self.pass_at > self.max_points:
            raise ValueError(f"pass_at {self.pass_at:g} is more than all points together, {self.max_points:g}")
        return self

    @property
    def max_points(self) -> float:
        """The most points it can give."""
        return sum(part.max_points for part in self.parts)
