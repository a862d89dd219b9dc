"""Grading of training and qualification: solutions found and points earned."""

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
"""Marks by exercise name, or the selected value by question name; absent entries count as unanswered."""


@dataclass(frozen=True, slots=True)
class GradedItem:
    """One graded exercise or question."""

    name: str
    points: float
    of: float
    found: tuple[tuple[int, str], ...] = ()
    """Pairs of a solution's index and the ID of the mark that found it."""
    missed: tuple[int, ...] = ()
    """Indices of the solutions that no mark found."""
    extra: tuple[str, ...] = ()
    """IDs of marks that match no solution."""
    each: tuple[float, ...] = ()
    """Points earned by each found solution, in the order of `found`; their sum is the points of the exercise."""


@dataclass(frozen=True, slots=True)
class QualificationGrade:
    """A graded qualification."""

    items: tuple[GradedItem, ...]
    parts: Mapping[str, float]
    score: float
    of: float
    passed: bool
    precision: float
    """Share of the marks that match a solution; NaN if nothing was marked."""


def match_solutions(
    marks: Sequence[Mark], exercise: Exercise, match: Literal["label", "place"] = "label"
) -> tuple[tuple[int, int], ...]:
    """Return the (solution, mark) pairs of a maximum one-to-one matching.

    A mark can match a solution that it overlaps. Unless `match` is `place`, it also needs the solution's label.
    """
    spans = exercise.solution_spans()
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


def grade_qualification(protocol: Protocol, given: QualificationAnswers) -> QualificationGrade:
    """Grade a person's answers to the qualification of `protocol`; missing answers count as unanswered."""
    qualification = protocol.qualification
    if qualification is None:
        raise ValueError(f"protocol {protocol.id} has no qualification")
    by_part = {
        part.name: (
            *(grade_choice(choice, given.get(choice.name), part.points) for choice in part.choices),
            *(
                grade_exercise(
                    exercise,
                    [mark for mark in answer if isinstance(mark, Mark)] if isinstance(answer, Sequence) else [],
                    part,
                )
                for exercise in part.exercises
                for answer in [given.get(exercise.name, ())]
            ),
        )
        for part in qualification.parts
    }
    items = tuple(item for part_items in by_part.values() for item in part_items)
    parts = {name: sum(item.points for item in part_items) for name, part_items in by_part.items()}
    right = sum(len(item.found) for item in items)
    marked = right + sum(len(item.extra) for item in items)
    precision = right / marked if marked else math.nan
    floor = qualification.min_precision
    score = round(sum(parts.values()), 9)  # rounded, so that seven sevenths of 50 add up to exactly 50
    passed = score >= qualification.pass_at and (floor is None or precision >= floor)
    return QualificationGrade(items, parts, score, qualification.max_points, passed, precision)


def grade_choice(choice: Choice, answer: object, points: float = 0) -> GradedItem:
    """Grade a multiple-choice question: all points or none."""
    return GradedItem(choice.name, points if answer == choice.answer else 0.0, points)


def grade_exercise(exercise: Exercise, marks: Sequence[Mark], part: QualificationPart | None = None) -> GradedItem:
    """Grade an exercise of a qualification part; without a part, as in training, the exercise earns no points."""
    pairs = match_solutions(marks, exercise, part.match if part else "label")
    solved, right = {solution for solution, _ in pairs}, {mark for _, mark in pairs}
    # Points by number of solutions found
    needed = (part.needed if part else None) or len(exercise.solutions)
    points = part.points if part else 0.0
    lose = part.lose if part and part.lose is not None else points / needed if part else 0.0
    worth = [max(0.0, points - lose * max(0, needed - count)) for count in range(len(pairs) + 1)]
    return GradedItem(
        exercise.name,
        worth[-1],
        points,
        found=tuple((solution, marks[mark].id) for solution, mark in pairs),
        missed=tuple(index for index in range(len(exercise.solutions)) if index not in solved),
        extra=tuple(mark.id for index, mark in enumerate(marks) if index not in right),
        each=tuple(now - (before if number else 0.0) for number, (before, now) in enumerate(itertools.pairwise(worth))),
    )
