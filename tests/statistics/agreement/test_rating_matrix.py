from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Unit
from finecomb.core.study import Study
from finecomb.statistics.agreement.mark_alignment import align_marks
from finecomb.statistics.agreement.rating_matrix import (
    document_answer_ratings,
    item_label_ratings,
    mark_answer_ratings,
    unit_answer_ratings,
)
from finecomb.statistics.selection.view import View, view
from tests.statistics.agreement.agreement_studies import PROTOCOL, TEXT, make_mark, make_marked_study, make_rated_study

N = np.nan


def same(found: np.ndarray[tuple[int, ...], np.dtype[np.float64]], expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(found, np.array(expected))


@pytest.fixture
def seen() -> View:
    """Build a view in which item 1 is red, red, blue; item 2 untyped, red, -; item 3 blue, -, -."""
    marked_study = make_marked_study(
        {"d": TEXT},
        {
            ("d", "p"): [(0, 3, "red"), (4, 7, None), (8, 13, "blue")],
            ("d", "q"): [(0, 3, "red"), (4, 7, "red")],
            ("d", "r"): [(0, 3, "blue")],
        },
    )
    items = pl.Series("item", ["1", "2", "3", "1", "2", "1"])
    return view(replace(marked_study, marks=marked_study.marks.with_columns(items)))


RED, BLUE, NO_TYPE, NO_ERROR = 0.0, 1.0, 3.0, 4.0


@pytest.mark.parametrize(
    ("convention", "expected"),
    [
        ("marked", [[RED, NO_TYPE, BLUE], [RED, RED, N], [BLUE, N, N]]),
        ("typed", [[RED, BLUE, N], [RED, N, RED], [BLUE, N, N]]),
        ("no-error", [[RED, NO_TYPE, BLUE], [RED, RED, NO_ERROR], [BLUE, NO_ERROR, NO_ERROR]]),
        ("no-error-majority", [[RED, NO_TYPE], [RED, RED], [BLUE, NO_ERROR]]),
        ("no-error-typed-majority", [[RED], [RED], [BLUE]]),
    ],
)
def test_each_convention_says_what_a_rating_is(seen: View, convention: str, expected: list[list[float]]) -> None:
    item_ratings = item_label_ratings(seen, align_marks(seen, "item"), convention)
    assert item_ratings.names == ("red", "blue", "green", "no type", "no error")
    assert item_ratings.annotators == ("p", "q", "r")
    order = np.argsort([str(column) for column in item_ratings.matrix.T.tolist()])
    wanted = np.array(expected)
    same(item_ratings.matrix[:, order], wanted[:, np.argsort([str(column) for column in wanted.T.tolist()])].tolist())


def test_an_unknown_convention_is_refused(seen: View) -> None:
    with pytest.raises(FinecombError, match="did you mean 'no-error'"):
        item_label_ratings(seen, align_marks(seen, "item"), "no-eror")


def test_answers_about_documents_are_numbers_or_places_among_the_options() -> None:
    rated_study = make_rated_study(
        {
            ("d", "p"): {"rating": 5, "verdict": "good"},
            ("d", "q"): {"rating": 3, "verdict": "bad"},
            ("e", "q"): {"verdict": "fair"},
        }
    )
    same(document_answer_ratings(view(rated_study), "rating").matrix, [[5], [3]])
    verdicts = document_answer_ratings(view(rated_study), "verdict")
    assert verdicts.names == ("bad", "fair", "good")
    same(verdicts.matrix, [[2, N], [0, 1]])
    assert verdicts.bounds.tolist() == [0, 1, 2]


def test_a_question_nobody_answered_and_several_answers_at_once_are_refused() -> None:
    selection = view(make_rated_study({("d", "p"): {"rating": 5, "reasons": ("a", "b")}}))
    with pytest.raises(FinecombError, match="did you mean 'rating'"):
        document_answer_ratings(selection, "ratng")
    with pytest.raises(FinecombError, match="allows several answers"):
        document_answer_ratings(selection, "reasons")


def test_answers_about_units_are_matched_by_their_place() -> None:
    def annotation(person: str, fine: dict[tuple[int, int], bool]) -> Annotation:
        units = tuple(Unit(start=start, end=end, answers={"fine": each}) for (start, end), each in fine.items())
        return Annotation(id=person, document="d", annotator=person, protocol="test@1", units=units)

    people = [Annotator(id=id, kind="human") for id in "pq"]
    both = [annotation("p", {(0, 7): True, (8, 18): False}), annotation("q", {(8, 18): True})]
    small_study = Study.from_items([PROTOCOL, Document(id="d", text=TEXT), *people, *both])
    same(unit_answer_ratings(view(small_study), "fine").matrix, [[1, 0], [N, 1]])


def test_severity_is_compared_on_aligned_marks() -> None:
    people = [Annotator(id=id, kind="human") for id in "pq"]
    read = [
        Annotation(
            id=id,
            document="d",
            annotator=id,
            protocol="test@1",
            marks=(make_mark(f"{id}/0", TEXT, (0, 3, "red"), answers={"severity": severity}),),
        )
        for id, severity in (("p", 1), ("q", 3))
    ]
    selection = view(Study.from_items([PROTOCOL, Document(id="d", text=TEXT), *people, *read]))
    same(mark_answer_ratings(selection, align_marks(selection, "overlap"), "severity").matrix, [[1], [3]])
