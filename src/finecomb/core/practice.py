"""Training and qualification material: texts with known errors as examples, exercises and test questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from finecomb.core.errors import shorten
from finecomb.core.question import LabelName, Option, Question, coerce_option, reject_duplicates
from finecomb.core.records import Answers, Document, Id, Json, Record, Segment, Text, wrap_single_values
from finecomb.core.scales import is_among
from finecomb.core.span import TEXT_PART, Span


class Solution(Record):
    """A mark written by a protocol author, with a quote instead of offsets."""

    quote: Text = ""
    """Marked words; empty for an omission, which requires `before`."""
    before: Text = ""
    """For an omission, the words before which something is missing."""
    label: LabelName | None = None
    """Label of the mark."""
    nth: int = Field(default=1, ge=1)
    """Occurrence of the quote (or of `before`), from 1."""
    part: Text = TEXT_PART
    """`text` or the name of a context."""
    antecedent: Text = ""
    """Quote of the earlier words that the mark refers to."""
    answers: Answers = {}
    """Answers to the label's questions."""
    why: Text = ""
    """Explanation, shown as feedback."""

    @model_validator(mode="after")
    def _check_quote_given(self) -> Solution:
        if bool(self.quote) == bool(self.before):
            raise ValueError("requires either `quote` or, for an omission, `before`")
        return self

    def locate(self, text: str, context: Mapping[str, str]) -> Span:
        """Return the span of the quote in the text or a context."""
        span = locate_nth_quote(
            self.quote or self.before,
            text if self.part == TEXT_PART else context.get(self.part, ""),
            self.nth,
            self.part,
        )
        return span if self.quote else Span(span.start, span.start, self.part)


class Example(Record):
    """A text with its marks, for annotators to study."""

    text: Text
    """The text, written for the protocol and not copied from a paper."""
    context: Mapping[Id, Text] = {}
    """Contexts by name, e.g. the prompt."""
    data: Json = None
    """Data from which the text was generated."""
    marks: tuple[Solution, ...] = ()
    """Errors in the text; without marks, the example shows a text without errors."""
    answers: Answers = {}
    """Correct answers to the document's questions."""
    why: Text = ""
    """The lesson of the example."""
    only: Mapping[Text, tuple[Text, ...]] = {}
    """Meta values of the texts of people who see the example, e.g. `domain: news`; everyone sees it if empty."""

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
        mark.locate(text, context)
        if mark.antecedent and not any(mark.antecedent in passage for passage in (text, *context.values())):
            raise ValueError(
                f"antecedent {mark.antecedent!r} is neither in the text nor in a context; quote it exactly"
            )


def locate_nth_quote(quote: str, text: str, nth: int = 1, part: str = TEXT_PART) -> Span:
    """Return the span of the nth occurrence of `quote` in `text`.

    >>> locate_nth_quote("an", "banana", 2)
    Span(start=3, end=5, part='text')
    """
    start = -1
    for _ in range(nth):
        start = text.find(quote, start + 1)
        if start < 0:
            often = "" if nth == 1 else f" {nth} times"
            fix = "quote the words exactly" if nth == 1 else "lower `nth`"
            raise ValueError(f"quote {shorten(quote)!r} is not in the {part}{often}; {fix}")
    return Span(start, start + len(quote), part)


class Exercise(Record):
    """A text to annotate with a known solution."""

    name: LabelName
    """Name of the exercise; its document ID is `protocol@version/name`."""
    ask: Text = ""
    """Task."""
    text: Text
    """The text, written for the protocol."""
    context: Mapping[Id, Text] = {}
    """Contexts by name, e.g. the prompt."""
    segments: tuple[Text, ...] = ()
    """Quotes that divide the text into segments, in order; each begins a segment."""
    data: Json = None
    """Data from which the text was generated."""
    label: LabelName | None = None
    """Label that the exercise practises, if it practises a single one."""
    solutions: tuple[Solution, ...] = ()
    """All known errors."""
    answers: Answers = {}
    """Correct answers to the document's questions."""
    units: tuple[Answers, ...] = ()
    """Correct answers to the questions of each segment, in order."""
    feedback: Text = ""
    """Explanation shown afterwards."""

    @model_validator(mode="after")
    def _check_quotes(self) -> Exercise:
        _check_quotes_found(self.solutions, self.text, self.context)
        cuts = [locate_nth_quote(quote, self.text).start for quote in self.segments]
        if cuts != sorted(set(cuts)):
            raise ValueError("segments must be distinct and in text order")
        if self.units and len(self.units) != len(cuts):
            raise ValueError(
                f"`units` has answers for {len(self.units)} segments, but the text has {len(cuts)}; give one entry "
                "per segment"
            )
        return self

    def to_document(self, id: str) -> Document:
        """Return the exercise as a document."""
        cuts = [locate_nth_quote(quote, self.text).start for quote in self.segments]
        ends = [len(self.text[start:end].rstrip()) + start for start, end in zip(cuts, [*cuts[1:], None], strict=False)]
        segments = tuple(Segment(start=start, end=end) for start, end in zip(cuts, ends, strict=True))
        return Document(id=id, text=self.text, context=self.context, segments=segments, data=self.data)

    def solution_spans(self) -> tuple[Span, ...]:
        """Return the spans of the solutions."""
        return tuple(solution.locate(self.text, self.context) for solution in self.solutions)


class Choice(Record):
    """A multiple-choice question about marked words in a short text."""

    name: LabelName
    """Name of the question; its document ID is `protocol@version/name`."""
    text: Text
    """The text, written for the protocol."""
    context: Mapping[Id, Text] = {}
    """Contexts by name, e.g. the prompt."""
    quote: Text = ""
    """Quote of the marked words."""
    ask: Text
    """Question."""
    options: tuple[Annotated[Option, BeforeValidator(coerce_option)], ...] = Field(min_length=2)
    """Answer options."""
    answer: bool | int | float | Text
    """Correct answer."""
    feedback: Text = ""
    """Explanation shown afterwards."""

    @model_validator(mode="after")
    def _check_choice(self) -> Choice:
        locate_nth_quote(self.quote, self.text)
        if not is_among(self.answer, (option.value for option in self.options)):
            listed = ", ".join(repr(option.value) for option in self.options)
            raise ValueError(f"answer {self.answer!r} is not one of the options; use one of {listed}")
        return self

    @property
    def question(self) -> Question:
        """The multiple-choice question as a question about the text."""
        return Question(name="answer", ask=self.ask, scale="nominal", options=self.options)


class Training(Record):
    """Practice before the qualification; it never excludes anyone."""

    intro: Text = ""
    """Introduction."""
    exercises: tuple[Exercise, ...] = ()
    """Exercises with feedback after each."""


class QualificationPart(Record):
    """One part of a qualification: exercises with errors to find, or multiple-choice questions."""

    name: LabelName
    """Key under which its points are stored."""
    title: Text = ""
    """Title shown to annotators."""
    intro: Text = ""
    """Introduction."""
    points: float = Field(gt=0)
    """Points per exercise or question."""
    exercises: tuple[Exercise, ...] = ()
    """Exercises; points decrease by `lose` for each solution short of `needed`, to a minimum of 0."""
    choices: tuple[Choice, ...] = ()
    """Multiple-choice questions, each worth all points or none."""
    needed: int | None = Field(default=None, ge=1)
    """Number of solutions that earn all points (default: all)."""
    match: Literal["label", "place"] = "label"
    """Matching of marks to solutions: by position and label, or by position alone."""
    lose: float | None = Field(default=None, gt=0)
    """Points lost for each solution short of `needed` (default: points / needed)."""
    teach: bool = False
    """Show a page about the practised label before each exercise, with its gloss, rules and examples."""

    @model_validator(mode="after")
    def _check_part(self) -> QualificationPart:
        if bool(self.exercises) == bool(self.choices):
            raise ValueError("requires either exercises or choices")
        for exercise in self.exercises:
            if not exercise.solutions:
                raise ValueError(f"exercise {exercise.name!r} has no solutions; add at least one")
            if self.needed is not None and self.needed > len(exercise.solutions):
                raise ValueError(
                    f"needed must be at most {len(exercise.solutions)} (the number of solutions of exercise "
                    f"{exercise.name!r}), found {self.needed}"
                )
        return self

    @property
    def max_points(self) -> float:
        """Maximum points of this part."""
        return self.points * (len(self.exercises) + len(self.choices))


class Qualification(Record):
    """Test that annotators must pass before they can work."""

    parts: tuple[QualificationPart, ...] = Field(min_length=1)
    """Parts, taken in order."""
    pass_at: float = Field(gt=0)
    """Points needed to pass."""
    min_precision: float | None = Field(default=None, ge=0, le=1)
    """Minimum share of a person's marks that must be correct, if required."""
    attempts: int = Field(default=1, ge=1)
    """Maximum number of attempts."""
    feedback: Literal["solutions", "written"] = "solutions"
    """Feedback afterwards: `solutions` shows the solutions; `written` adds a line per mark found, missed or extra."""

    @model_validator(mode="after")
    def _check_qualification(self) -> Qualification:
        reject_duplicates("part", [part.name for part in self.parts])
        exercises = [exercise.name for part in self.parts for exercise in part.exercises]
        reject_duplicates("exercise", exercises + [choice.name for part in self.parts for choice in part.choices])
        if self.pass_at > self.max_points:
            raise ValueError(
                f"pass_at must be at most {self.max_points:g} (the sum of all points), found {self.pass_at:g}"
            )
        return self

    @property
    def max_points(self) -> float:
        """Maximum points of the qualification."""
        return sum(part.max_points for part in self.parts)
