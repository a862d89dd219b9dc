"""Answers as numbers: words of an ordinal question by their order, other answers where they are numbers."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.frames import json_entry
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.statistics.selection.view import View

SEVERITY = "severity"


def is_numeric_option(value: object) -> bool:
    """Whether an option of a question is a number, or a text that is one."""
    try:
        float(str(value))
    except ValueError:
        return False
    return not isinstance(value, bool)


def rank_by_word(questions: Iterable[Question]) -> dict[str, float]:
    """The number of each word of ordinal questions: its place from 1 on; words with two places are left out."""
    places: dict[str, set[float]] = {}
    for question in questions:
        if question.scale == "ordinal" and not all(map(is_numeric_option, question.values)):
            for place, value in enumerate(question.values, 1):
                places.setdefault(str(value), set()).add(float(place))
    return {word: numbers.pop() for word, numbers in places.items() if len(numbers) == 1}


def numeric_answer_expression(text: pl.Expr, words: dict[str, float]) -> pl.Expr:
    """Answers as numbers, null where they are none."""
    numbers = text.cast(pl.Float64, strict=False)
    return pl.coalesce(text.replace_strict(words, default=None, return_dtype=pl.Float64), numbers) if words else numbers


def severity_questions(protocol: Protocol | None) -> list[Question]:
    """Every question of a protocol about the severity of a mark."""
    if protocol is None:
        return []
    asked = [*protocol.questions, *(question for label in protocol.labels for question in label.questions or ())]
    return [question for question in asked if question.name == SEVERITY]


def unusable_severity_warnings(protocol: Protocol) -> list[str]:
    """What to say, before anybody is asked, about a severity whose answers no statistic can count."""
    return [
        f"{protocol.id}: the answers to severity ({', '.join(map(str, question.values)) or question.scale}) are no "
        "numbers and have no order, so no statistic can use them; an ordinal scale can be counted"
        for question in severity_questions(protocol)
        if question.scale not in ("ordinal", "number", "integer")
        and not all(map(is_numeric_option, question.values or ("",)))
    ]


def numeric_answer_values(view: View, question: str) -> pl.DataFrame:
    """Columns annotation, document and value: the answer of each annotation that has one, as a number."""
    questions = view.protocol.document_questions if view.protocol else ()
    answered = view.study.answers.filter(pl.col("of") == "annotation")["question"].unique().sort().to_list()
    names = [*(row.name for row in questions), *answered]
    if question not in names:
        raise FinecombError(
            f"answer:{question}: no such question of the document{did_you_mean(question, dict.fromkeys(names))}"
        )
    words = rank_by_word(row for row in questions if row.name == question)
    value = numeric_answer_expression(json_entry("answers", question), words)
    rows = view.study.annotations.select("document", annotation="id", value=value)
    return rows.filter(pl.col("value").is_not_null())
