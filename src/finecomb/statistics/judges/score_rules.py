"""Score rules: functions that rate how well an answer to an item fits the answers of others. Larger is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from finecomb.core.errors import FinecombError, did_you_mean

Answer = Any
"""A label, a number, or the marks on a text as (start, end) or (start, end, label)."""
ScoreRule = Callable[[Answer, Sequence[Answer]], float]
"""Function that takes an answer and the others' answers to the same item; larger values mean a better fit."""


def accuracy(answer: Answer, others: Sequence[Answer]) -> float:
    """Return the share of the other annotators who gave the same answer.

    >>> accuracy("a", ["a", "b"])
    0.5
    """
    return sum(bool(answer == other) for other in others) / len(others)


def negative_rmse(answer: Answer, others: Sequence[Answer]) -> float:
    """Return the root mean square difference from the other annotators' answers, negated so that larger is better.

    >>> negative_rmse(3, [3, 5])
    -1.4142135623730951
    """
    return -math.sqrt(sum((float(answer) - float(other)) ** 2 for other in others) / len(others))


def char_f1(answer: Answer, others: Sequence[Answer]) -> float:
    """Return the mean F1 against the other annotators on marked characters, ignoring labels; 1 if both have no marks.

    >>> char_f1([(0, 4, "name")], [[(2, 6, "number")], []])
    0.25
    """
    return mean_set_f1(marked_characters(answer), [marked_characters(other) for other in others])


def typed_f1(answer: Answer, others: Sequence[Answer]) -> float:
    """Return the mean of the F1 scores against the other annotators, on characters marked with the same label.

    >>> typed_f1([(0, 4, "name")], [[(2, 6, "number")], [(0, 4, "name")]])
    0.5
    """
    return mean_set_f1(typed_characters(answer), [typed_characters(other) for other in others])


SCORE_RULES: dict[str, ScoreRule] = {
    "accuracy": accuracy,
    "rmse": negative_rmse,
    "char-f1": char_f1,
    "typed-f1": typed_f1,
}


def resolve_score_rule(score: str | ScoreRule) -> tuple[str, ScoreRule]:
    """Return the name and function of a score rule, given by name or as a function."""
    if not isinstance(score, str):
        return getattr(score, "__name__", "own"), score
    if score not in SCORE_RULES:
        raise FinecombError(f"unknown score rule {score!r}{did_you_mean(score, SCORE_RULES)}")
    return score, SCORE_RULES[score]


def marked_characters(marks: Iterable[Sequence[Any]]) -> frozenset[int]:
    """Return the character positions covered by marks."""
    return frozenset(place for mark in marks for place in range(mark[0], mark[1]))


def typed_characters(marks: Iterable[Sequence[Any]]) -> frozenset[tuple[int, Any]]:
    """Return the character positions covered by marks, each with the mark's label or None."""
    return frozenset((place, mark[2] if len(mark) > 2 else None) for mark in marks for place in range(mark[0], mark[1]))


def mean_set_f1(answer: frozenset[Any], others: Sequence[frozenset[Any]]) -> float:
    """Return the mean of the F1 scores (Dice) of a set against other sets; F1 is 1 if both sets are empty."""
    scores = (2 * len(answer & other) / size if (size := len(answer) + len(other)) else 1.0 for other in others)
    return sum(scores) / len(others)
