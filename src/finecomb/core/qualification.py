"""Grading: how many of the known errors somebody found, and what that is worth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from finecomb.core.practice import Choice, Exercise, QualificationPart
from finecomb.core.protocol import Protocol
from finecomb.core.records import Answer, Mark

QualificationAnswers = Mapping[str, Sequence[Mark] | Answer]
"""What somebody gave by the name of an exercise (marks) or of a question (the chosen value); absent means blank."""


@dataclass(frozen=True, slots=True)
class GradedItem:
    """One exercise or question after grading."""

    name: str
    points: float
    of: float
    found: tuple[tuple[int, str], ...] = ()
    """Pairs of a solution's index and the id of the mark that found it."""
    missed: tuple[int, ...] = ()
    """Indices of the solutions nobody found."""
    extra: tuple[str, ...] = ()
    """Ids of marks that found nothing."""
    each: tuple[float, ...] = ()
    """What each of the found solutions earned, in their order; together the points of an exercise."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A whole qualification after grading."""

    items: tuple[GradedItem, ...]
    parts: Mapping[str, float]
    score: float
    of: float
    passed: bool
    precision: float
    """Share of the marks that found something; NaN when nothing was marked."""


def match_solutions(
    marks: Sequence[Mark], exercise: Exercise, match: Literal["label", "place"] = "label"
) -> tuple[tuple[int, int], ...]:
    """Pairs (solution, mark) of a largest one-to-one matching.

    A mark can find a solution that it overlaps and, unless only the `place` counts, whose label it has.
    """
    spans = exercise.spans()
    finds = [
        [
            index
            for index, mark in enumerate(marks)
            if (match == "place" or solution.label in (None, mark.label))
            and any(span.intersects(mark_span) for mark_span in mark.spans)
        ]
        for solution, span in zip(exercise.solutions, spans, strict=True)
    ]
    taken: dict[int, int] = {}  # mark -> solution

    def assign_mark(solution: int, tried: set[int]) -> bool:
        for mark in finds[solution]:
            if mark not in tried:
                tried.add(mark)
                if mark not in taken or assign_mark(taken[mark], tried):
                    taken[mark] = solution
                    return True
        return False

    for solution in range(len(finds)):
        assign_mark(solution, set())
    return tuple(sorted((solution, mark) for mark, solution in taken.items()))


def grade(protocol: Protocol, given: QualificationAnswers) -> Grade:
    """Grade what somebody gave in the qualification of `protocol`; what is absent counts as blank."""
    qualification = protocol.qualification
    if qualification is None:
        raise ValueError(f"protocol {protocol.id} has no qualification")
    by_part = {part.name: _grade_part(part, given) for part in qualification.parts}
    items = tuple(item for part_items in by_part.values() for item in part_items)
    parts = {name: sum(item.points for item in part_items) for name, part_items in by_part.items()}
    right = sum(len(item.found) for item in items)
    marked = right + sum(len(item.extra) for item in items)
    precision = right / marked if marked else math.nan
    floor = qualification.min_precision
    score = round(sum(parts.values()), 9)  # sevenths of 50 must add up to 50
    passed = score >= qualification.pass_at and (floor is None or precision >= floor)
    return Grade(items, parts, score, qualification.max_points, passed, precision)


def _grade_part(part: QualificationPart, given: QualificationAnswers) -> tuple[GradedItem, ...]:
    return (
        *(grade_choice(choice, given.get(choice.name), part.points) for choice in part.choices),
        *(grade_exercise(exercise, _marks(given.get(exercise.name, ())), part) for exercise in part.exercises),
    )


def _marks(answer: Sequence[Mark] | Answer) -> list[Mark]:
    return [mark for mark in answer if isinstance(mark, Mark)] if isinstance(answer, Sequence) else []


def grade_choice(choice: Choice, answer: object, points: float = 0) -> GradedItem:
    """A question: all points or none."""
    return GradedItem(choice.name, points if answer == choice.answer else 0.0, points)


def grade_exercise(exercise: Exercise, marks: Sequence[Mark], part: QualificationPart | None = None) -> GradedItem:
    """An exercise in its part of the qualification; without one, as in training, nothing is at stake."""
    pairs = match_solutions(marks, exercise, part.match if part else "label")
    solved, right = {solution for solution, _ in pairs}, {mark for _, mark in pairs}
    worth = [_points(exercise, part, count) for count in range(len(pairs) + 1)]
    return GradedItem(
        exercise.name,
        worth[-1],
        part.points if part else 0.0,
        found=tuple((solution, marks[mark].id) for solution, mark in pairs),
        missed=tuple(index for index in range(len(exercise.solutions)) if index not in solved),
        extra=tuple(mark.id for index, mark in enumerate(marks) if index not in right),
        each=tuple(now - (before if number else 0.0) for number, (before, now) in enumerate(itertools.pairwise(worth))),
    )


def _points(exercise: Exercise, part: QualificationPart | None, solved: int) -> float:
    """What so many found solutions are worth."""
    if part is None:
        return 0.0
    needed = part.needed or len(exercise.solutions)
    lose = part.lose if part.lose is not None else part.points / needed
    return max(0.0, part.points - lose * max(0, needed - solved))
