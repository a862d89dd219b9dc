from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.practice import Choice, Exercise, Qualification, QualificationPart, Solution
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import QualificationGrade, grade_exercise, grade_qualification, match_solutions
from finecomb.core.records import Mark
from finecomb.core.span import Span

TEXT = "abcdefghijklmnopqrst"


def mark(id: str, start: int, end: int, label: str | None = "red") -> Mark:
    return Mark(id=id, spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label)


def solution(start: int, end: int, label: str | None = "red") -> Solution:
    if start == end:
        return Solution(before=TEXT[start], label=label)
    return Solution(quote=TEXT[start:end], label=label)


def exercise(*solutions: Solution, name: str = "e") -> Exercise:
    return Exercise(name=name, text=TEXT, solutions=solutions)


def protocol(*parts: QualificationPart, pass_at: float = 1, **more: Any) -> Protocol:
    labels = [{"name": "red"}, {"name": "blue"}]
    test = Qualification(parts=parts, pass_at=pass_at, **more)
    return Protocol.model_validate(
        {"name": "p", "version": "1", "title": "P", "summary": "", "labels": labels, "qualification": test}
    )


LABELS = st.sampled_from(["red", "blue"])
PLACES = st.tuples(st.integers(0, 18), st.integers(0, 5)).map(lambda place: (place[0], min(19, place[0] + place[1])))
SOLUTIONS = st.lists(
    st.builds(lambda place, label: solution(place[0], place[1], label), PLACES, LABELS | st.none()), max_size=4
)
MARKS = st.lists(st.tuples(PLACES, LABELS | st.none()), max_size=4).map(
    lambda found: [mark(f"m{index}", *place, label) for index, (place, label) in enumerate(found)]
)


def finds(one: Mark, known: Solution, place_only: bool) -> bool:
    """The slow definition: some place in common, and the label unless only the place counts."""
    where = known.locate(TEXT, {})
    own = one.spans[0]
    if len(where) and len(own):
        together = bool(set(range(where.start, where.end)) & set(range(own.start, own.end)))
    else:
        together = where.start <= own.end and own.start <= where.end
    return together and (place_only or known.label is None or known.label == one.label)


def most(marks: list[Mark], solutions: tuple[Solution, ...], place_only: bool) -> int:
    """The largest number of pairs that any one-to-one assignment gives, by trying them all."""
    slots: list[Mark | None] = [*marks, *([None] * len(solutions))]
    return max(
        sum(one is not None and finds(one, known, place_only) for one, known in zip(chosen, solutions, strict=True))
        for chosen in itertools.permutations(slots, len(solutions))
    )


@given(MARKS, SOLUTIONS, st.booleans())
def test_the_matching_is_one_to_one_and_as_large_as_any(
    marks: list[Mark], solutions: list[Solution], place_only: bool
) -> None:
    one = exercise(*solutions)
    pairs = match_solutions(marks, one, "place" if place_only else "label")
    assert len({solution for solution, _ in pairs}) == len({mark for _, mark in pairs}) == len(pairs)
    assert all(finds(marks[mark], one.solutions[solution], place_only) for solution, mark in pairs)
    assert len(pairs) == most(marks, one.solutions, place_only)


def test_a_mark_moves_over_when_another_solution_needs_its_place() -> None:
    marks = [mark("wide", 0, 9), mark("narrow", 0, 2)]
    assert match_solutions(marks, exercise(solution(0, 2), solution(5, 8))) == ((0, 1), (1, 0))


def test_one_mark_finds_one_solution_only() -> None:
    assert len(match_solutions([mark("all", 0, 19)], exercise(solution(0, 2), solution(5, 8)))) == 1


def test_a_mark_elsewhere_or_on_another_part_finds_nothing() -> None:
    prompt = Mark(id="m", spans=(Span(0, 2, "prompt"),), quotes=("ab",), label="red")
    assert match_solutions([mark("far", 9, 12), prompt], exercise(solution(0, 2))) == ()


def test_a_mark_without_a_place_finds_nothing_and_counts_as_extra() -> None:
    lost = Mark(id="lost", spans=(), quotes=("?",), label="red", unlocated="not found")
    found = grade_qualification(
        protocol(QualificationPart(name="a", points=1, exercises=(exercise(solution(0, 2)),))), {"e": [lost]}
    )
    assert found.items[0].extra == ("lost",)
    assert found.precision == 0


# --- points ---


def graded(count: int, **part: Any) -> QualificationGrade:
    """Five solutions, of which `count` are found."""
    known = [solution(at, at + 2) for at in (0, 4, 8, 12, 16)]
    marks = [mark(f"m{at}", at, at + 1) for at in (0, 4, 8, 12, 16)[:count]]
    return grade_qualification(
        protocol(QualificationPart(name="a", exercises=(exercise(*known),), **part)), {"e": marks}
    )


@pytest.mark.parametrize(
    ("count", "part", "points"),
    [
        (5, {"points": 10}, 10),
        (4, {"points": 10}, 8),
        (0, {"points": 10}, 0),
        (3, {"points": 10, "needed": 3}, 10),
        (5, {"points": 10, "needed": 3}, 10),
        (2, {"points": 9, "needed": 3}, 6),
        (4, {"points": 10, "lose": 5}, 5),
        (3, {"points": 10, "lose": 5}, 0),
        (0, {"points": 10, "lose": 5}, 0),
        (1, {"points": 10, "needed": 2, "lose": 1}, 9),
    ],
)
def test_points_go_down_by_what_is_lost_for_each_solution_short_of_those_needed(
    count: int, part: dict[str, Any], points: float
) -> None:
    found = graded(count, **part)
    assert found.score == pytest.approx(points)
    assert found.of == part["points"]
    assert len(found.items[0].found) == count
    assert found.items[0].missed == tuple(range(count, 5))


def test_marks_that_find_nothing_cost_precision_and_no_points() -> None:
    one = protocol(QualificationPart(name="a", points=10, exercises=(exercise(solution(0, 2)),)))
    found = grade_qualification(one, {"e": [mark("good", 0, 2), mark("bad", 9, 12), mark("again", 0, 2)]})
    assert found.score == 10
    assert found.items[0].extra == ("bad", "again")
    assert found.precision == pytest.approx(1 / 3)


def test_a_wrong_label_finds_nothing_unless_only_the_place_counts() -> None:
    for match, points in (("label", 0), ("place", 10)):
        part = QualificationPart.model_validate(
            {"name": "a", "points": 10, "match": match, "exercises": [exercise(solution(0, 2))]}
        )
        assert grade_qualification(protocol(part), {"e": [mark("m", 0, 2, "blue")]}).score == points


CHOICES = QualificationPart(
    name="b",
    points=5,
    choices=tuple(
        Choice.model_validate({"name": name, "text": "x", "ask": "?", "options": ["u", "v"], "answer": "u"})
        for name in ("c1", "c2")
    ),
)


@pytest.mark.parametrize(
    ("given", "score"), [({}, 0), ({"c1": "u"}, 5), ({"c1": "u", "c2": "u"}, 10), ({"c1": "v", "c2": "u"}, 5)]
)
def test_a_choice_gives_all_points_or_none(given: dict[str, Any], score: float) -> None:
    found = grade_qualification(protocol(CHOICES), given)
    assert found.score == score
    assert found.of == 10


def test_precision_is_undefined_when_nothing_was_marked() -> None:
    assert math.isnan(grade_qualification(protocol(CHOICES), {"c1": "u"}).precision)
    assert math.isnan(graded(0, points=10).precision)


@pytest.mark.parametrize(("marks", "passed"), [(1, True), (2, True), (3, False), (0, False)])
def test_a_floor_of_precision_decides_and_undefined_precision_does_not_pass(marks: int, passed: bool) -> None:
    part = QualificationPart(name="a", points=10, exercises=(exercise(solution(0, 2)),))
    own = [mark("good", 0, 2), mark("bad-1", 9, 12), mark("bad-2", 14, 15)][:marks]
    assert grade_qualification(protocol(part, CHOICES, min_precision=0.5), {"e": own, "c1": "u"}).passed == passed


@given(st.integers(1, 60), st.integers(1, 100))
def test_parts_of_a_whole_add_up_to_the_whole(count: int, total: int) -> None:
    """Sevenths of 50 may not add up to 50, and then a faultless test would be failed."""
    exercises = tuple(exercise(solution(0, 2), name=f"e{index}") for index in range(count))
    whole = protocol(QualificationPart(name="a", points=total / count, exercises=exercises), CHOICES, pass_at=total)
    found = grade_qualification(whole, {each.name: [mark(f"m-{each.name}", 0, 2)] for each in exercises})
    assert found.score == total
    assert found.passed


def test_points_are_kept_by_part() -> None:
    whole = protocol(QualificationPart(name="a", points=10, exercises=(exercise(solution(0, 2)),)), CHOICES)
    found = grade_qualification(whole, {"e": [mark("m", 0, 2)], "c2": "u"})
    assert found.parts == {"a": 10, "b": 5}
    assert [item.name for item in found.items] == ["e", "c1", "c2"]


def test_a_protocol_without_a_qualification_cannot_grade() -> None:
    bare = Protocol(name="p", version="1", title="P", summary="")
    with pytest.raises(ValueError, match="p@1 has no qualification"):
        grade_qualification(bare, {})


@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 6), st.floats(1, 100), st.none() | st.floats(0.5, 60))
def test_what_found_solutions_earn_adds_up_to_the_points(
    count: int, found: int, needed: int, points: float, lose: float | None
) -> None:
    """Also where more than the needed are there, and where losing all of them does not cost all points."""
    solutions = [solution(3 * n, 3 * n + 2) for n in range(count)]
    part = QualificationPart(
        name="a", points=points, needed=min(needed, count), lose=lose, exercises=(exercise(*solutions),)
    )
    marks = [mark(f"m{n}", 3 * n, 3 * n + 2) for n in range(min(found, count))]
    graded = grade_exercise(part.exercises[0], marks, part)
    assert len(graded.each) == len(graded.found) == len(marks)
    if marks:
        assert math.fsum(graded.each) == pytest.approx(graded.points, abs=1e-9)
    assert all(each >= 0 for each in graded.each)


def test_in_training_nothing_is_at_stake() -> None:
    graded = grade_exercise(exercise(solution(0, 2), solution(4, 6)), [mark("m", 4, 5), mark("x", 9, 10)])
    assert (graded.points, graded.of, graded.each) == (0, 0, (0,))
    assert (graded.found, graded.missed, graded.extra) == (((1, "m"),), (0,), ("x",))


def test_of_a_question_only_itself_is_asked() -> None:
    whole = protocol(QualificationPart(name="a", points=10, exercises=(exercise(solution(0, 2)),)), CHOICES)
    asked = whole.protocol_for_document("p@1/c1")
    assert [each.name for each in asked.document_questions] == ["answer"]
    assert (asked.id, asked.labels) == (whole.id, ())
    assert whole.protocol_for_document("p@1/e") is whole
    assert whole.protocol_for_document("elsewhere") is whole
