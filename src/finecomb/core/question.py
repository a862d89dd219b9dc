"""What is asked: questions of a mark, a unit, a document or an annotator, with their scales and options."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from finecomb.core.errors import shorten
from finecomb.core.records import Answer, Record, Text

Scale = Literal["nominal", "ordinal", "number", "yes-no", "several", "text", "rewrite"]


def label_name(value: str) -> str:
    """Refuse a name that is not lower case with hyphens."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/-]*", value):
        raise ValueError(f"a name has lower-case letters, digits, '-', '.', '/' and '_' only, not {value!r}")
    return value


def _question_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError(f"a question's name has lower-case letters, digits and '_' only, not {value!r}")
    return value


def as_option(value: Any) -> Any:
    """A bare value as the option it stands for."""
    return value if isinstance(value, dict | Record) else {"value": value}


Name = Annotated[str, AfterValidator(label_name)]
QuestionName = Annotated[str, AfterValidator(_question_name)]


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


class When(Record):
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
    scale: Scale = "text"
    """`nominal`, `ordinal` and `several` choose among options; the rest do not, `rewrite` being an edited text."""
    options: tuple[Annotated[Option, BeforeValidator(as_option)], ...] = ()
    """In order; for `ordinal` from least to most."""
    required: bool = True
    """Whether work can be finished without it."""
    when: When | None = None
    """Ask only after certain answers."""
    low: float | None = None
    """Smallest number accepted."""
    high: float | None = None
    """Largest number accepted."""

    @model_validator(mode="after")
    def _options_fit(self) -> Question:
        chooses = self.scale in ("nominal", "ordinal", "several")
        if chooses and len(self.options) < 2:
            raise ValueError(f"scale '{self.scale}' needs at least two options")
        if self.options and not chooses:
            raise ValueError(f"scale '{self.scale}' takes no options; use nominal, ordinal or several")
        if self.scale == "several" and not all(isinstance(value, str) for value in self.values):
            raise ValueError("scale 'several' needs options that are text; put them in quotes")
        unique("option", [str(option.value) for option in self.options])
        if self.scale != "number" and (self.low, self.high) != (None, None):
            raise ValueError(f"scale '{self.scale}' takes neither low nor high; they are for number")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is more than high {self.high:g}")
        return self

    @functools.cached_property
    def values(self) -> tuple[bool | int | float | str, ...]:
        """The values of its options."""
        return tuple(option.value for option in self.options)

    def problem(self, answer: Answer) -> str:
        """What is wrong with `answer`, in words, or an empty string."""
        match self.scale:
            case "text" | "rewrite":
                wrong = "" if isinstance(answer, str) else "expected text"
            case "yes-no":
                wrong = "" if isinstance(answer, bool) else "expected true or false"
            case "number":
                wrong = self._number_problem(answer)
            case "several":
                wrong = self._several_problem(answer)
            case _:
                wrong = "" if among(answer, self.values) else f"expected one of {_listed(self.values)}"
        return wrong and f"answer {shorten(repr(answer), 40)} to '{self.name}': {wrong}"

    def _number_problem(self, answer: Answer) -> str:
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            return "expected a number"
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return "" if low <= answer <= high else f"expected a number from {low:g} to {high:g}"

    def _several_problem(self, answer: Answer) -> str:
        if not isinstance(answer, tuple | list):
            return f"expected a list from {_listed(self.values)}"
        strange = [each for each in answer if not among(each, self.values)]
        return f"{strange[0]!r} is not among {_listed(self.values)}" if strange else ""


def among(answer: object, values: Iterable[object]) -> bool:
    """Whether an answer is one of the values: of the same type, so that 1 is not true."""
    return any(type(answer) is type(value) and answer == value for value in values)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def unique(what: str, names: Iterable[str]) -> None:
    """Refuse names that are there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} is there twice")
        seen.add(name)
