"""Tests of screening signals: hints that a person did not read, or takes part more than once."""

from __future__ import annotations

import pytest

import finecomb as fc
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.screening_signals import signals_by_annotator
from finecomb.core.records import (
    Annotation,
    Annotator,
    Mark,
    Settings,
)
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.collection.rating_studies import make_rating, make_rating_study


def signal_texts_by_annotator(found: Study, *came: Arrival) -> dict[str, list[str]]:
    return {who: [each.sign for each in every] for who, every in signals_by_annotator(found, came).items()}


def test_ordinary_work_is_not_noticed() -> None:
    work = [make_rating(n, rating=1 + n % 4, why=f"Reason number {n} is about the pier") for n in range(6)]
    assert (
        signal_texts_by_annotator(make_rating_study(*work), Arrival("a", 0, ArrivalSource(device="x", address="y")))
        == {}
    )


@pytest.mark.parametrize(("seconds", "expected"), [(2.0, True), (11.9, True), (12.1, False), (60.0, False)])
def test_two_hundred_words_take_more_than_twelve_seconds(seconds: float, expected: bool) -> None:
    found = signals_by_annotator(make_rating_study(make_rating(0, seconds=seconds), make_rating(1)), [])
    assert bool(found) == expected
    if expected:
        assert found["a"][0].say == (
            f"1 of 2 texts were submitted faster than anyone can read: d0 (200 words) in {seconds:.0f} seconds."
        )


def test_the_same_answer_twice_or_by_two_people_is_noticed() -> None:
    why = "The pier is too odd for that"
    assert signal_texts_by_annotator(make_rating_study(make_rating(0, why=why), make_rating(1, why=why.upper()))) == {
        "a": ["copied"]
    }
    assert signal_texts_by_annotator(make_rating_study(make_rating(0, why=why), make_rating(1, "b", why=why))) == {
        "a": ["shared"],
        "b": ["shared"],
    }
    assert (
        signal_texts_by_annotator(make_rating_study(make_rating(0, why="so odd"), make_rating(1, why="so odd"))) == {}
    )  # short answers can coincide


def test_five_equal_ratings_are_noticed_and_four_are_not() -> None:
    assert signal_texts_by_annotator(make_rating_study(*(make_rating(n) for n in range(5)))) == {"a": ["alike"]}
    assert signal_texts_by_annotator(make_rating_study(*(make_rating(n) for n in range(4)))) == {}


@pytest.mark.parametrize(
    ("share", "count", "expected"), [(0.7, 2, ["broad"]), (1, 13, ["broad"]), (1, 1, []), (0.6, 9, [])]
)
def test_marks_over_most_of_a_tests_text_are_noticed(share: float, count: int, expected: list[str]) -> None:
    asked = fc.protocol("accuracy")
    assert asked.qualification is not None
    exercise = asked.qualification.parts[0].exercises[0]
    span = Span(0, round(share * len(exercise.text)))
    quotes = (exercise.text[: span.end],)
    marks = tuple(Mark(id=f"m{n}", spans=(span,), quotes=quotes, label="number") for n in range(count))
    document = f"{asked.id}/{exercise.name}"
    tested = Annotation(
        id="t",
        document=document,
        annotator="a",
        protocol=asked.id,
        phase="qualification",
        marks=marks,
        active_seconds=900,
    )
    found = Study.from_items([Settings(), asked, Annotator(id="a", kind="human"), tested])
    assert signal_texts_by_annotator(found).get("a", []) == expected


def test_one_browser_with_two_names_is_noticed_and_an_address_is_called_weak() -> None:
    one, two = (
        ArrivalSource("prolific", "w1", device="x", address="y"),
        ArrivalSource("prolific", "w2", device="x", address="y"),
    )
    found = signals_by_annotator(make_rating_study(), [Arrival("a", 0, one), Arrival("b", 1, two)])
    assert {who: [each.sign for each in every] for who, every in found.items()} == {
        "a": ["browser", "address"],
        "b": ["browser", "address"],
    }
    assert found["a"][0].say == "The same browser was used to sign in as b."
    assert found["a"][1].weak
    assert "this alone means little" in found["a"][1].say


def test_nobody_shares_what_is_not_known() -> None:
    assert (
        signal_texts_by_annotator(
            make_rating_study(), Arrival("a", 0, ArrivalSource()), Arrival("b", 0, ArrivalSource())
        )
        == {}
    )


def test_many_sign_ins_and_several_sessions_are_noticed() -> None:
    assert signal_texts_by_annotator(
        make_rating_study(), *(Arrival("a", n, ArrivalSource(device="x")) for n in range(11))
    ) == {"a": ["often"]}
    assert signal_texts_by_annotator(
        make_rating_study(), *(Arrival("a", n, ArrivalSource(device=f"x{n}")) for n in range(4))
    ) == {"a": ["often"]}
    twice = [Arrival("a", n, ArrivalSource("mturk", "w", session=f"s{n}")) for n in range(2)]
    assert signal_texts_by_annotator(make_rating_study(), *twice) == {"a": ["again"]}
