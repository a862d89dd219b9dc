"""Score rules: how well one answer to an item fits the answers that others gave to it. Larger is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from finecomb.core.errors import FinecombError, did_you_mean

Answer = Any
"""A label, a number, or the marks on a text as (start, end) or (start, end, label)."""
ScoreRule = Callable[[Answer, Sequence[Answer]], float]
"""An answer and the others' answers to the same item; the larger the number, the better the answer fits."""


def accuracy(answer: Answer, others: Sequence[Answer]) -> float:
    """Share of the others who gave the same answer.

    >>> accuracy("a", ["a", "b"])
    0.5
    """
    return sum(bool(answer == other) for other in others) / len(others)


def negative_rmse(answer: Answer, others: Sequence[Answer]) -> float:
    """Root mean square difference from the others' answers, with a minus so that larger is better.

    >>> negative_rmse(3, [3, 5])
    -1.4142135623730951
    """
    return -math.sqrt(sum((float(answer) - float(other)) ** 2 for other in others) / len(others))


def char_f1(answer: Answer, others: Sequence[Answer]) -> float:
    """Mean over the others of the F1 of the characters that both marked, whatever the labels; two empty texts are 1.

    >>> char_f1([(0, 4, "name")], [[(2, 6, "number")], []])
    0.25
    """
    return _mean_f1(marked_characters(answer), [marked_characters(other) for other in others])


def typed_f1(answer: Answer, others: Sequence[Answer]) -> float:
    """The same where a character counts as shared only if both gave it the same label.

    >>> typed_f1([(0, 4, "name")], [[(2, 6, "number")], [(0, 4, "name")]])
    0.5
    """
    return _mean_f1(typed_characters(answer), [typed_characters(other) for other in others])


RULES: dict[str, ScoreRule] = {
    "accuracy": accuracy,
    "rmse": negative_rmse,
    "char-f1": char_f1,
    "typed-f1": typed_f1,
}


def resolve_score_rule(score: str | ScoreRule) -> tuple[str, ScoreRule]:
    """A score rule with its name: one of ours by name, or any function as it is."""
    if not isinstance(score, str):
        return getattr(score, "__name__", "own"), score
    if score not in RULES:
        raise FinecombError(f"no score rule is called {score!r}{did_you_mean(score, RULES)}; a function will do too")
    return score, RULES[score]


def marked_characters(marks: Iterable[Sequence[Any]]) -> frozenset[int]:
    """Positions that marks cover."""
    return frozenset(place for mark in marks for place in range(mark[0], mark[1]))


def typed_characters(marks: Iterable[Sequence[Any]]) -> frozenset[tuple[int, Any]]:
    """Positions that marks cover, with the label of each mark; None where a mark has no label."""
    return frozenset((place, mark[2] if len(mark) > 2 else None) for mark in marks for place in range(mark[0], mark[1]))


def _mean_f1(answer: frozenset[Any], others: Sequence[frozenset[Any]]) -> float:
    return sum(set_f1(answer, other) for other in others) / len(others)


def set_f1(one: frozenset[Any], other: frozenset[Any]) -> float:
    """Twice what two sets share, out of their sizes added up; 1 where both are empty."""
    size = len(one) + len(other)
    return 2 * len(one & other) / size if size else 1.0
