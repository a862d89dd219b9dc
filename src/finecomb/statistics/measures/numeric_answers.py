"""Numeric values of answers: ranks for ordinal options, and the numbers themselves for numeric answers."""

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
    """Return True if an option of a question is a number or a numeric string."""
    try:
        float(str(value))
    except ValueError:
        return False
    return not isinstance(value, bool)


def rank_by_word(questions: Iterable[Question]) -> dict[str, float]:
    """Map each option of ordinal questions to its rank, from 1; omit options whose rank differs between questions."""
    ranks: dict[str, set[float]] = {}
    for question in questions:
        if question.scale == "ordinal" and not all(map(is_numeric_option, question.values)):
            for rank, value in enumerate(question.values, 1):
                ranks.setdefault(str(value), set()).add(float(rank))
    return {word: word_ranks.pop() for word, word_ranks in ranks.items() if len(word_ranks) == 1}


def numeric_answer_expression(text: pl.Expr, words: dict[str, float]) -> pl.Expr:
    """Build an expression that converts answers to numbers; null where an answer is not numeric."""
    numbers = text.cast(pl.Float64, strict=False)
    return pl.coalesce(text.replace_strict(words, default=None, return_dtype=pl.Float64), numbers) if words else numbers


def severity_questions(protocol: Protocol | None) -> list[Question]:
    """Return all questions of a protocol that ask for the severity of a mark."""
    if protocol is None:
        return []
    questions = [*protocol.questions, *(question for label in protocol.labels for question in label.questions or ())]
    return [question for question in questions if question.name == SEVERITY]


def unusable_severity_warnings(protocol: Protocol) -> list[str]:
    """Return warnings about severity questions whose answers are neither numbers nor ordered."""
    return [
        f"{protocol.id}: the answers to severity ({', '.join(map(str, question.values)) or question.scale}) are "
        "neither numbers nor ordered, so statistics cannot use them; use an ordinal scale"
        for question in severity_questions(protocol)
        if question.scale not in ("ordinal", "number", "integer")
        and not all(map(is_numeric_option, question.values or ("",)))
    ]


def numeric_answer_values(view: View, question: str) -> pl.DataFrame:
    """Return the numeric answer of each annotation that has one, with columns annotation, document and value."""
    questions = view.protocol.document_questions if view.protocol else ()
    answered = view.study.answers.filter(pl.col("of") == "annotation")["question"].unique().sort().to_list()
    names = [*(row.name for row in questions), *answered]
    if question not in names:
        raise FinecombError(
            f"answer:{question}: unknown question about the document{did_you_mean(question, dict.fromkeys(names))}"
        )
    words = rank_by_word(row for row in questions if row.name == question)
    value = numeric_answer_expression(json_entry("answers", question), words)
    rows = view.study.annotations.select("document", annotation="id", value=value)
    return rows.filter(pl.col("value").is_not_null())
