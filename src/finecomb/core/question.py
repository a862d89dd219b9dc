"""Questions about marks, units, documents and annotators, with their scales and options."""

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
    """Reject a name with characters other than lower-case letters, digits, '-', '.', '/' and '_'."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/-]*", value):
        raise ValueError(f"a name can contain only lower-case letters, digits, '-', '.', '/' and '_', found {value!r}")
    return value


def _check_question_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError(f"a question's name can contain only lower-case letters, digits and '_', found {value!r}")
    return value


def coerce_option(value: Any) -> Any:
    """Convert a bare value to an option."""
    return value if isinstance(value, dict | Record) else {"value": value}


LabelName = Annotated[str, AfterValidator(check_label_name)]
QuestionName = Annotated[str, AfterValidator(_check_question_name)]
ScaleName = Annotated[str, AfterValidator(check_scale_name), WithJsonSchema({"type": "string", "enum": list(SCALES)})]


class Option(Record):
    """One answer option; in YAML it can be a bare value."""

    value: bool | int | float | Text
    """Stored value."""
    title: Text = ""
    """Displayed title; the value if empty."""
    gloss: Text = ""
    """Explanation in one line."""
    group: Text = ""
    """Heading under which the option is listed."""
    aliases: tuple[Text, ...] = ()
    """Other spellings that importers accept."""


class QuestionCondition(Record):
    """Condition for asking a question: certain answers to another question."""

    question: QuestionName
    """Name of the other question."""
    among: tuple[bool | int | float | Text, ...] = Field(min_length=1)
    """Answers after which the question is asked."""


class Question(Record):
    """A question about a mark, a unit, a document or an annotator."""

    name: QuestionName
    """Key under which the answer is stored.

    `severity`, `explanation`, `correction`, `comment` and `cannot_judge` have a predefined meaning.
    """
    ask: Text
    """Question shown to annotators."""
    help: Text = ""
    """Help text below the question."""
    scale: ScaleName = "text"
    """Answer scale. `nominal`, `ordinal` and `several` require options; `rewrite` asks for an edited text."""
    options: tuple[Annotated[Option, BeforeValidator(coerce_option)], ...] = ()
    """Options in display order; for `ordinal`, from least to most."""
    required: bool = True
    """Require an answer before annotators can submit."""
    when: QuestionCondition | None = None
    """Ask only after certain answers to another question."""
    low: float | None = None
    """Minimum value."""
    high: float | None = None
    """Maximum value."""

    @model_validator(mode="after")
    def _check_options(self) -> Question:
        if self.scale_type.chooses and len(self.options) < 2:
            raise ValueError(f"scale '{self.scale}' requires at least two options, found {len(self.options)}")
        if self.options and not self.scale_type.chooses:
            raise ValueError(f"scale '{self.scale}' does not take options; use {_list_scales_with('chooses', 'or')}")
        if self.scale_type.many and not all(isinstance(value, str) for value in self.values):
            raise ValueError(f"scale '{self.scale}' requires options that are text; quote them")
        reject_duplicates("option", [str(option.value) for option in self.options])
        if not self.scale_type.bounded and (self.low, self.high) != (None, None):
            takers = _list_scales_with("bounded", "and")
            raise ValueError(f"scale '{self.scale}' takes neither low nor high, which apply to {takers}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low must be at most high, found {self.low:g} and {self.high:g}")
        return self

    @property
    def scale_type(self) -> QuestionScale:
        """Scale of the question, which checks, parses, merges and samples its answers."""
        return SCALES[self.scale]

    @functools.cached_property
    def values(self) -> tuple[bool | int | float | str, ...]:
        """Values of the options."""
        return tuple(option.value for option in self.options)

    def answer_problem(self, answer: Answer) -> str:
        """Return a description of what is wrong with `answer`, or an empty string if it is valid."""
        problem = self.scale_type.check(self, answer)
        return problem and f"answer {shorten(repr(answer), 40)} to '{self.name}': {problem}"


def _list_scales_with(trait: str, word: str) -> str:
    """List the names of the scales with a trait, joined by `word`.

    >>> _list_scales_with("chooses", "or")
    'nominal, ordinal or several'
    """
    *names, last = (name for name, scale in SCALES.items() if getattr(scale, trait))
    return f"{', '.join(names)} {word} {last}" if names else last


def reject_duplicates(what: str, names: Iterable[str]) -> None:
    """Reject names that occur twice."""
    earlier: set[str] = set()
    for name in names:
        if name in earlier:
            raise ValueError(f"{what} {name!r} occurs twice; rename or remove one of them")
        earlier.add(name)
