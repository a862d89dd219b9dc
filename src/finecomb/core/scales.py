"""Scales of questions: how the answers of each scale are checked, parsed, merged, formatted and sampled."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from finecomb.core.records import Answer
from finecomb.core.spelling import fold_spelling

if TYPE_CHECKING:
    from finecomb.core.question import Question

AnswerCheck = Callable[["Question", Answer], str]
AnswerParser = Callable[["Question", str], Answer | None]
AnswerGenerator = Callable[["Question", np.random.Generator], Answer]
AnswerMerger = Callable[[Sequence[Answer]], Answer]
AnswerFormatter = Callable[["Question", Answer], str]

_BOOLEAN_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def is_among(answer: object, values: Iterable[object]) -> bool:
    """Return True if an answer equals one of the values and has the same type, so that 1 does not equal True."""
    return any(type(answer) is type(value) and answer == value for value in values)


def option_value_by_spelling(question: Question) -> dict[str, bool | int | float | str]:
    """Return the values of a question's options by every accepted spelling: value, title and aliases."""
    named = {word: option.value for option in question.options for word in (option.title, *option.aliases) if word}
    return named | {str(option.value): option.value for option in question.options}


def parse_number(text: str) -> int | float | None:
    """Return the number that a text represents in plain digits, or None.

    >>> parse_number("-3"), parse_number("0.50"), parse_number("1e5")
    (-3, 0.5, None)
    """
    if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text):
        return None
    return float(text) if "." in text else int(text)


def most_frequent_answer(answers: Sequence[Answer]) -> Answer:
    """Return the most frequent answer; in a tie, the first of the most frequent answers."""
    return Counter(answers).most_common(1)[0][0]


def format_answer(answer: Answer) -> str:
    """Format an answer in one line, as it is stored.

    >>> format_answer(("plot", "style")), format_answer(3)
    ('plot, style', '3')
    """
    return ", ".join(answer) if isinstance(answer, tuple) else str(answer)


def format_answer_with_titles(question: Question, answer: Answer) -> str:
    """Format an answer for display: titles of the selected options, or the text that was entered."""
    titles = {option.value: option.title for option in question.options}
    chosen = answer if isinstance(answer, tuple) else (answer,)
    return ", ".join(titles.get(value) or str(value) for value in chosen)


@dataclass(frozen=True, slots=True)
class QuestionScale:
    """One scale for answers."""

    name: str
    """Name in protocols."""
    check: AnswerCheck
    """Function that returns what is wrong with an answer, or an empty string."""
    parse: AnswerParser
    """Function that returns the answer that a text in a file represents, or None."""
    example: AnswerGenerator
    """Function that samples an answer for simulated annotators."""
    merge: AnswerMerger = most_frequent_answer
    """Function that merges the answers of several annotators."""
    words: AnswerFormatter = format_answer_with_titles
    """Function that formats an answer for display."""
    chooses: bool = False
    """True if the scale requires options."""
    many: bool = False
    """True if an answer is a list of options."""
    bounded: bool = False
    """True if the scale takes a minimum and a maximum."""
    prose: bool = False
    """True if an answer is free text."""
    free: bool = False
    """True if any text is a valid answer."""
    ordered: bool = False
    """True if options are ordered from least to most."""
    rates: bool = False
    """True if answers are ratings; an annotator who always gives the same rating is suspicious."""
    values: tuple[Answer, ...] = ()
    """Valid answers of a scale without options."""


# --- numbers -------------------------------------------------------------------------------------------------------


def _number_problem(question: Question, answer: Answer) -> str:
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return "expected a number"
    low = -math.inf if question.low is None else question.low
    high = math.inf if question.high is None else question.high
    if low <= answer <= high:
        return ""
    if question.high is None:
        return f"expected a number of at least {low:g}"
    return (
        f"expected a number of at most {high:g}"
        if question.low is None
        else f"expected a number from {low:g} to {high:g}"
    )


def _random_number(question: Question, rng: np.random.Generator) -> Answer:
    """Sample a number in the question's range; a range without a minimum or maximum has length 1."""
    low, high = question.low, question.high
    if low is None:
        low = 0.0 if high is None else high - 1
    return float(rng.uniform(low, low + 1 if high is None else high))


# --- options -------------------------------------------------------------------------------------------------------


def _list_options(question: Question) -> str:
    return ", ".join(map(str, question.values))


def _option_problem(question: Question, answer: Answer) -> str:
    return "" if is_among(answer, question.values) else f"expected one of {_list_options(question)}"


def _parse_option(question: Question, text: str) -> Answer | None:
    values = option_value_by_spelling(question)
    return values.get(text, {fold_spelling(word): value for word, value in values.items()}.get(fold_spelling(text)))


def _random_option(question: Question, rng: np.random.Generator) -> Answer:
    return question.values[int(rng.integers(len(question.values)))]


def _options_problem(question: Question, answer: Answer) -> str:
    if not isinstance(answer, tuple | list):
        return f"expected a list of {_list_options(question)}"
    strange = [choice for choice in answer if not is_among(choice, question.values)]
    return f"{strange[0]!r} is not one of {_list_options(question)}" if strange else ""


def _parse_options(question: Question, text: str) -> Answer | None:
    value = _parse_option(question, text)
    return None if value is None else (str(value),)


# --- registry ------------------------------------------------------------------------------------------------------

_OPTION_FUNCTIONS = (_option_problem, _parse_option, _random_option)
_TEXT_FUNCTIONS: tuple[AnswerCheck, AnswerParser, AnswerGenerator] = (
    lambda question, answer: "" if isinstance(answer, str) else "expected text",
    lambda question, text: text,
    lambda question, rng: "Simulated.",
)

SCALES: dict[str, QuestionScale] = {
    scale.name: scale
    for scale in (
        QuestionScale("nominal", *_OPTION_FUNCTIONS, chooses=True, rates=True),
        QuestionScale("ordinal", *_OPTION_FUNCTIONS, chooses=True, ordered=True, rates=True),
        QuestionScale(
            "number",
            _number_problem,
            lambda question, text: parse_number(text),
            _random_number,
            bounded=True,
            rates=True,
        ),
        QuestionScale(
            "yes-no",
            check=lambda question, answer: "" if isinstance(answer, bool) else "expected true or false",
            parse=lambda question, text: _BOOLEAN_WORDS.get(fold_spelling(text)),
            example=lambda question, rng: bool(rng.random() < 0.5),
            words=lambda question, answer: "Yes" if answer else "No",
            values=(True, False),
        ),
        QuestionScale(
            "several",
            _options_problem,
            _parse_options,
            lambda question, rng: (str(_random_option(question, rng)),),
            chooses=True,
            many=True,
        ),
        QuestionScale(
            "text",
            *_TEXT_FUNCTIONS,
            merge=lambda answers: " / ".join(map(str, dict.fromkeys(answers))),
            prose=True,
            free=True,
        ),
        QuestionScale("rewrite", *_TEXT_FUNCTIONS, free=True),
    )
}
"""All scales by name. To add a scale, add a row."""


def check_scale_name(value: str) -> str:
    """Reject a name that is not a scale."""
    if value not in SCALES:
        *names, last = (repr(name) for name in SCALES)
        raise ValueError(f"expected {', '.join(names)} or {last}, found {value!r}")
    return value
