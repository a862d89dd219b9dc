"""The scales of questions: one row each for how an answer is checked, parsed, merged, printed and invented."""

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
    """Whether an answer is one of the values: of the same type, so that 1 is not true."""
    return any(type(answer) is type(value) and answer == value for value in values)


def option_values(question: Question) -> dict[str, bool | int | float | str]:
    """The values of a question's options by everything they are called: value, title and aliases."""
    named = {word: option.value for option in question.options for word in (option.title, *option.aliases) if word}
    return named | {str(option.value): option.value for option in question.options}


def parse_number(text: str) -> int | float | None:
    """The number that a text writes in plain digits, or None.

    >>> parse_number("-3"), parse_number("0.50"), parse_number("1e5")
    (-3, 0.5, None)
    """
    if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text):
        return None
    return float(text) if "." in text else int(text)


def most_frequent_answer(answers: Sequence[Answer]) -> Answer:
    """The most frequent answer; of answers equally frequent the first."""
    return Counter(answers).most_common(1)[0][0]


def join_different_answers(answers: Sequence[Answer]) -> Answer:
    """The answers that differ, one beside the other."""
    return " / ".join(map(str, dict.fromkeys(answers)))


def format_answer(answer: Answer) -> str:
    """An answer in one line, as it is stored.

    >>> format_answer(("plot", "style")), format_answer(3)
    ('plot, style', '3')
    """
    return ", ".join(answer) if isinstance(answer, tuple) else str(answer)


def option_titles(question: Question, answer: Answer) -> str:
    """An answer as people read it: the titles of the options chosen, or what was written."""
    titles = {option.value: option.title for option in question.options}
    chosen = answer if isinstance(answer, tuple) else (answer,)
    return ", ".join(titles.get(value) or str(value) for value in chosen)


@dataclass(frozen=True, slots=True)
class QuestionScale:
    """One kind of answer."""

    name: str
    """As protocols write it."""
    check: AnswerCheck
    """What is wrong with an answer, in words, or an empty string."""
    parse: AnswerParser
    """The answer that a text in a file stands for, or None where it stands for none."""
    example: AnswerGenerator
    """Some answer, for simulated annotators."""
    merge: AnswerMerger = most_frequent_answer
    """One answer for several annotators'."""
    words: AnswerFormatter = option_titles
    """An answer as people read it."""
    chooses: bool = False
    """Whether it needs options to choose among."""
    many: bool = False
    """Whether an answer is a list of options."""
    bounded: bool = False
    """Whether it takes a lowest and a highest value."""
    prose: bool = False
    """Whether an answer is a text of the annotator's own words."""
    free: bool = False
    """Whether any text is an answer."""
    ordered: bool = False
    """Whether options go from least to most."""
    rates: bool = False
    """Whether answers say how good or how much, so that always giving the same one is telling."""
    values: tuple[Answer, ...] = ()
    """Answers that need not be listed as options."""


# --- text ----------------------------------------------------------------------------------------------------------


def _text_check(question: Question, answer: Answer) -> str:
    return "" if isinstance(answer, str) else "expected text"


def _text_parse(question: Question, text: str) -> Answer:
    return text


def _text_example(question: Question, rng: np.random.Generator) -> Answer:
    return "Simulated."


# --- yes or no -----------------------------------------------------------------------------------------------------


def _yes_no_check(question: Question, answer: Answer) -> str:
    return "" if isinstance(answer, bool) else "expected true or false"


def _yes_no_parse(question: Question, text: str) -> Answer | None:
    return _BOOLEAN_WORDS.get(fold_spelling(text))


def _yes_no_words(question: Question, answer: Answer) -> str:
    return "Yes" if answer else "No"


def _yes_no_example(question: Question, rng: np.random.Generator) -> Answer:
    return bool(rng.random() < 0.5)


# --- numbers -------------------------------------------------------------------------------------------------------


def _number_check(question: Question, answer: Answer) -> str:
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return "expected a number"
    low = -math.inf if question.low is None else question.low
    high = math.inf if question.high is None else question.high
    return "" if low <= answer <= high else f"expected a number from {low:g} to {high:g}"


def _number_parse(question: Question, text: str) -> Answer | None:
    return parse_number(text)


def _number_example(question: Question, rng: np.random.Generator) -> Answer:
    """A number in range; where an end is open, in a stretch of length 1."""
    low, high = question.low, question.high
    if low is None:
        low = 0.0 if high is None else high - 1
    return float(rng.uniform(low, low + 1 if high is None else high))


# --- options -------------------------------------------------------------------------------------------------------


def _list_options(question: Question) -> str:
    return ", ".join(map(str, question.values))


def _option_check(question: Question, answer: Answer) -> str:
    return "" if is_among(answer, question.values) else f"expected one of {_list_options(question)}"


def _option_parse(question: Question, text: str) -> Answer | None:
    values = option_values(question)
    return values.get(text, {fold_spelling(word): value for word, value in values.items()}.get(fold_spelling(text)))


def _option_example(question: Question, rng: np.random.Generator) -> Answer:
    return question.values[int(rng.integers(len(question.values)))]


def _options_check(question: Question, answer: Answer) -> str:
    if not isinstance(answer, tuple | list):
        return f"expected a list from {_list_options(question)}"
    strange = [choice for choice in answer if not is_among(choice, question.values)]
    return f"{strange[0]!r} is not among {_list_options(question)}" if strange else ""


def _options_parse(question: Question, text: str) -> Answer | None:
    value = _option_parse(question, text)
    return None if value is None else (str(value),)


def _options_example(question: Question, rng: np.random.Generator) -> Answer:
    return (str(_option_example(question, rng)),)


# --- the table -----------------------------------------------------------------------------------------------------

_OPTION_FUNCTIONS = (_option_check, _option_parse, _option_example)
_TEXT_FUNCTIONS = (_text_check, _text_parse, _text_example)

SCALES: dict[str, QuestionScale] = {
    scale.name: scale
    for scale in (
        QuestionScale("nominal", *_OPTION_FUNCTIONS, chooses=True, rates=True),
        QuestionScale("ordinal", *_OPTION_FUNCTIONS, chooses=True, ordered=True, rates=True),
        QuestionScale("number", _number_check, _number_parse, _number_example, bounded=True, rates=True),
        QuestionScale(
            "yes-no", _yes_no_check, _yes_no_parse, _yes_no_example, words=_yes_no_words, values=(True, False)
        ),
        QuestionScale("several", _options_check, _options_parse, _options_example, chooses=True, many=True),
        QuestionScale("text", *_TEXT_FUNCTIONS, merge=join_different_answers, prose=True, free=True),
        QuestionScale("rewrite", *_TEXT_FUNCTIONS, free=True),
    )
}
"""Every scale by name. A new one is a row here."""


def check_scale_name(value: str) -> str:
    """Refuse a name that no scale has."""
    if value not in SCALES:
        *names, last = (repr(name) for name in SCALES)
        raise ValueError(f"expected {', '.join(names)} or {last}, found {value!r}")
    return value
