"""What is asked: questions of a mark, a unit, a document or an annotator, with their scales and options."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from finecomb.core.errors import shorten
from finecomb.core.records import Answer, Record, Text
from finecomb.core.scales import SCALES, QuestionScale, check_scale_name


def check_label_name(value: str) -> str:
    """Refuse a name that is not lower case with hyphens."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/-]*", value):
        raise ValueError(f"a name has lower-case letters, digits, '-', '.', '/' and '_' only, not {value!r}")
    return value


def _check_question_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError(f"a question's name has lower-case letters, digits and '_' only, not {value!r}")
    return value


def as_option(value: Any) -> Any:
    """A bare value as the option it stands for."""
    return value if isinstance(value, dict | Record) else {"value": value}


Name = Annotated[str, AfterValidator(check_label_name)]
QuestionName = Annotated[str, AfterValidator(_check_question_name)]
ScaleName = Annotated[str, AfterValidator(check_scale_name), WithJsonSchema({"type": "string", "enum": list(SCALES)})]


class Option(Record):
    """One answer to choose; in YAML a bare value will do."""

    value: bool | int | float | Text
    """What is stored."""
    title: Text = ""
    """What is shown; the value itself when empty."""
    gloss: Text = ""
    """One line that explains it."""
    group: Text = ""
    """Heading under which it is listed."""
    aliases: tuple[Text, ...] = ()
    """Other spellings that importers accept."""


class QuestionCondition(Record):
    """Ask only after certain answers to another question."""

    question: QuestionName
    """The other question."""
    among: tuple[bool | int | float | Text, ...] = Field(min_length=1)
    """The answers after which this one is asked."""


class Question(Record):
    """Something asked of a mark, a unit, a document or an annotator."""

    name: QuestionName
    """Under which the answer is stored.

    `severity`, `explanation`, `correction`, `comment` and `cannot_judge` have a known meaning.
    """
    ask: Text
    """The question as people read it."""
    help: Text = ""
    """A quiet line below it."""
    scale: ScaleName = "text"
    """`nominal`, `ordinal` and `several` choose among options; the rest do not, `rewrite` being an edited text."""
    options: tuple[Annotated[Option, BeforeValidator(as_option)], ...] = ()
    """In order; for `ordinal` from least to most."""
    required: bool = True
    """Whether work can be finished without it."""
    when: QuestionCondition | None = None
    """Ask only after certain answers."""
    low: float | None = None
    """Smallest number accepted."""
    high: float | None = None
    """Largest number accepted."""

    @model_validator(mode="after")
    def _check_options(self) -> Question:
        if self.scale_type.chooses and len(self.options) < 2:
            raise ValueError(f"scale '{self.scale}' needs at least two options")
        if self.options and not self.scale_type.chooses:
            raise ValueError(f"scale '{self.scale}' takes no options; use {_scales_with('chooses', 'or')}")
        if self.scale_type.many and not all(isinstance(value, str) for value in self.values):
            raise ValueError(f"scale '{self.scale}' needs options that are text; put them in quotes")
        check_unique("option", [str(option.value) for option in self.options])
        if not self.scale_type.bounded and (self.low, self.high) != (None, None):
            takers = _scales_with("bounded", "and")
            raise ValueError(f"scale '{self.scale}' takes neither low nor high; they are for {takers}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is more than high {self.high:g}")
        return self

    @property
    def scale_type(self) -> QuestionScale:
        """The row of its scale: how its answers are checked, parsed, merged and invented."""
        return SCALES[self.scale]

    @functools.cached_property
    def values(self) -> tuple[bool | int | float | str, ...]:
        """The values of its options."""
        return tuple(option.value for option in self.options)

    def problem(self, answer: Answer) -> str:
        """What is wrong with `answer`, in words, or an empty string."""
        problem = self.scale_type.check(self, answer)
        return problem and f"answer {shorten(repr(answer), 40)} to '{self.name}': {problem}"


def _scales_with(trait: str, word: str) -> str:
    """The scales that have a trait, in words.

    >>> _scales_with("chooses", "or")
    'nominal, ordinal or several'
    """
    *names, last = (name for name, scale in SCALES.items() if getattr(scale, trait))
    return f"{', '.join(names)} {word} {last}" if names else last


def check_unique(what: str, names: Iterable[str]) -> None:
    """Refuse names that are there twice."""
    earlier: set[str] = set()
    for name in names:
        if name in earlier:
            raise ValueError(f"{what} {name!r} is there twice")
        earlier.add(name)
