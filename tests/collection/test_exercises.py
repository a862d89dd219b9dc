"""Tests of exercises from adjudicated texts: gold marks are the solutions and earn all points."""

from __future__ import annotations

import pytest

import finecomb as fc
from finecomb.collection.exercises import (
    exercise_from_gold,
    protocol_with_qualification_test,
    protocol_with_training_exercises,
)
from finecomb.core.errors import FinecombError
from finecomb.core.qualification import grade_qualification
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span

SCARECROW = fc.protocol("scarecrow")
TEXT = "Boil the water. Pour the water on the leaves. Boil the water."
DOCUMENT = Document(id="Tea 1", text=TEXT, context={"prompt": "How do I make tea?"})


def make_mark(id: str, start: int, end: int, label: str = "grammar-usage") -> Mark:
    answers = {"severity": 1, "explanation": f"because of {id}"}
    return Mark(id=id, spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label, answers=answers)


GOLD = Annotation(
    id="g",
    document="Tea 1",
    annotator="gold",
    protocol=SCARECROW.id,
    marks=(make_mark("m1", 46, 61, "redundant"), make_mark("m2", 25, 30), make_mark("m3", 31, 31)),
)


def test_marks_become_solutions_at_the_same_places() -> None:
    exercise = exercise_from_gold(DOCUMENT, GOLD)
    assert exercise.name == "tea-1"
    assert exercise.solution_spans() == (Span(46, 61), Span(25, 30), Span(31, 31))
    assert (exercise.solutions[0].nth, exercise.solutions[1].nth) == (2, 2)
    assert (exercise.solutions[0].why, exercise.solutions[0].answers) == ("because of m1", {"severity": 1})


def test_a_test_of_ones_own_is_passed_by_who_finds_enough() -> None:
    protocol = protocol_with_qualification_test(SCARECROW, [exercise_from_gold(DOCUMENT, GOLD)], 0.6, 0.25)
    assert protocol.id == "scarecrow@2-own"
    assert grade_qualification(protocol, {"tea-1": list(GOLD.marks)}).score == pytest.approx(100)
    assert grade_qualification(protocol, {"tea-1": list(GOLD.marks[:2])}).passed
    assert not grade_qualification(protocol, {"tea-1": list(GOLD.marks[:1])}).passed


def test_training_gets_one_more_exercise_and_the_version_counts_up() -> None:
    once = protocol_with_training_exercises(SCARECROW, [exercise_from_gold(DOCUMENT, GOLD)])
    assert once.training is not None
    assert once.training.exercises[-1].name == "tea-1"
    other = exercise_from_gold(DOCUMENT.model_copy(update={"id": "other"}), GOLD)
    assert protocol_with_training_exercises(once, [other]).version == "2-own-2"


def test_a_text_without_marks_is_no_test() -> None:
    blank = GOLD.model_copy(update={"marks": ()})
    with pytest.raises(FinecombError, match="needs at least one mark"):
        protocol_with_qualification_test(SCARECROW, [exercise_from_gold(DOCUMENT, blank)], 0.7, 0.25)
