"""Qualification tests refuse who marks everything, and nobody who reads: the floor of precision is our addition."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from finecomb.core.practice import Choice, Exercise
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import QualificationAnswers, grade_qualification
from finecomb.core.records import Mark
from finecomb.core.span import Span
from finecomb.protocols import load_shipped

TESTED = ["scarecrow", "accuracy", "snac"]


def made(exercise: Exercise, number: int, start: int, end: int, label: str | None) -> Mark:
    words = exercise.text[start:end]
    return Mark(id=f"{exercise.name}-{number}", spans=(Span(start, end),), quotes=(words,), label=label)


def word_pairs(protocol: Protocol, exercise: Exercise) -> Iterator[Mark]:
    words = list(re.finditer(r"\S+", exercise.text))
    for number, (one, other) in enumerate(zip(words[::2], words[1::2], strict=False)):
        yield made(exercise, number, one.start(), other.end(), protocol.labels[0].name)


def every_label(protocol: Protocol, exercise: Exercise) -> Iterator[Mark]:
    for number, label in enumerate(protocol.labels):
        yield made(exercise, number, 0, len(exercise.text), label.name)


def honest(protocol: Protocol, exercise: Exercise) -> Iterator[Mark]:
    """Everything that is known to be wrong, and for each as much again that is not."""
    for number, (solution, span) in enumerate(zip(exercise.solutions, exercise.solution_spans(), strict=True)):
        yield Mark(id=f"{exercise.name}-{number}", spans=(span,), quotes=(solution.quote,), label=solution.label)
        yield made(exercise, 1000 + number, 0, 3, protocol.labels[-1].name)


def given(protocol: Protocol, way: object) -> QualificationAnswers:
    assert protocol.qualification is not None
    assert callable(way)
    exercises = [one for part in protocol.qualification.parts for one in part.exercises]
    choices: list[Choice] = [one for part in protocol.qualification.parts for one in part.choices]
    return {one.name: list(way(protocol, one)) for one in exercises} | {one.name: one.answer for one in choices}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("scarecrow", word_pairs),
        ("scarecrow", every_label),
        ("accuracy", word_pairs),
        ("accuracy", every_label),
        ("snac", word_pairs),  # each type over a whole summary finds one of each: that is noticed, not refused
    ],
)
def test_who_marks_everything_does_not_pass(name: str, way: object) -> None:
    protocol = load_shipped(name)
    assert not grade_qualification(protocol, given(protocol, way)).passed


def test_without_the_floor_both_would_have_passed() -> None:
    for name, way in (("accuracy@1", word_pairs), ("scarecrow@1", every_label)):
        assert grade_qualification(load_shipped(name), given(load_shipped(name), way)).passed


@pytest.mark.parametrize("name", TESTED)
def test_who_reads_passes_although_half_of_the_marks_are_wrong(name: str) -> None:
    result = grade_qualification(load_shipped(name), given(load_shipped(name), honest))
    assert result.passed
    assert result.precision <= 0.6


def test_an_earlier_version_can_be_had_and_one_that_never_was_cannot() -> None:
    assert load_shipped("scarecrow@1").id == "scarecrow@1"
    assert load_shipped("scarecrow").id == "scarecrow@2"
    with pytest.raises(Exception, match="has no version 7; use 1 or 2"):
        load_shipped("scarecrow@7")
