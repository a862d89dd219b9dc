"""Ratings as a matrix, annotators by units: labels by item, answers about documents, units or aligned marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.question import Question
from finecomb.statistics.agreement.alpha import Ratings
from finecomb.statistics.agreement.coincidences import Ints
from finecomb.statistics.selection.view import NO_TYPE, View

NO_ERROR = "no error"


@dataclass(frozen=True, slots=True)
class UnitRatings:
    """Who gave which value to which unit. The units of one document stand together."""

    matrix: Ratings
    """(annotators, units), NaN where not rated."""
    annotators: tuple[str, ...]
    documents: tuple[str, ...]
    bounds: Ints
    """(documents + 1,): document i has the units `bounds[i]` to `bounds[i + 1]`."""
    names: tuple[str, ...] = ()
    """What the values 0, 1, ... stand for; empty where the values are numbers."""


def _build_unit_ratings(rows: pl.DataFrame, view: View, names: tuple[str, ...] = ()) -> UnitRatings:
    """From long rows: document, unit, annotator, value; of two values by one annotator the first counts."""
    documents = view.study.documents["id"]
    once = rows.unique(["document", "unit", "annotator"], keep="first", maintain_order=True)
    places = pl.DataFrame({"document": documents, "place": pl.int_range(len(documents), eager=True)})
    units = once.select("document", "unit").unique(maintain_order=True).join(places, on="document")
    units = units.sort("place", maintain_order=True).with_row_index("column")
    people = once.select("annotator").unique().sort("annotator").with_row_index("row")
    at = once.join(units, on=["document", "unit"]).join(people, on="annotator")
    matrix = np.full((len(people), len(units)), np.nan)
    matrix[at["row"].to_numpy(), at["column"].to_numpy()] = at["value"].to_numpy()
    sizes = np.bincount(units["place"].to_numpy(), minlength=len(documents))
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return UnitRatings(matrix, tuple(people["annotator"]), tuple(documents), bounds, names)


# --- labels by item ----------------------------------------------------------------------------------------------


def _all_marks(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    return marks


def _labelled_marks(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    return marks.filter(pl.col("label") != NO_TYPE)


def _add_no_error_rows(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    """One row per item and reader of its document; who did not mark it says `no error`."""
    readers = view.study.annotations.select("document", "annotator").unique(maintain_order=True)
    every = marks.select("document", "unit").unique(maintain_order=True).join(readers, on="document")
    keys = ["document", "unit", "annotator"]
    labels = marks.unique(keys, keep="first", maintain_order=True).select(*keys, "label")
    return every.join(labels, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("label").fill_null(NO_ERROR)
    )


def _majority_marked_items(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    rows = _add_no_error_rows(marks, view)
    marked = (pl.col("label") != NO_ERROR).sum().over("document", "unit")
    return rows.filter(marked * 2 > pl.len().over("document", "unit"))


def _majority_labelled_items(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    rows = _majority_marked_items(marks, view)
    same = pl.len().over("document", "unit", "label") * 2 > pl.len().over("document", "unit")
    return rows.filter((same & (pl.col("label") != NO_ERROR)).any().over("document", "unit"))


CONVENTIONS: dict[str, Callable[[pl.DataFrame, View], pl.DataFrame]] = {
    "marked": _all_marks,
    "typed": _labelled_marks,
    "no-error": _add_no_error_rows,
    "no-error-majority": _majority_marked_items,
    "no-error-typed-majority": _majority_labelled_items,
}
"""What counts as a rating of an item, by name.

- `marked`: the labels of those who marked it, `no type` being one of them; who did not mark it is missing.
- `typed`: the same, but a mark without a type is missing, too.
- `no-error`: who read the text and did not mark the item gave it the value `no error`.
- `no-error-majority`: the same, only for items that more than half of the readers marked.
- `no-error-typed-majority`: the same, only for items to which more than half of the readers gave one label.
"""


def item_label_ratings(view: View, clusters: pl.DataFrame, convention: str = "marked") -> UnitRatings:
    """Labels of the errors that `align` found, under one of `CONVENTIONS`."""
    if convention not in CONVENTIONS:
        raise FinecombError(f"no convention is called {convention!r}{did_you_mean(convention, CONVENTIONS)}")
    rows = CONVENTIONS[convention](clusters.with_columns(unit=pl.col("cluster")), view)
    names = (*view.categories, NO_ERROR)
    codes = dict(zip(names, map(float, range(len(names))), strict=True))
    value = pl.col("label").replace_strict(codes, return_dtype=pl.Float64)
    return _build_unit_ratings(rows.select("document", "unit", "annotator", value=value), view, names)


# --- answers -----------------------------------------------------------------------------------------------------


def document_answer_ratings(view: View, question: str) -> UnitRatings:
    """Answers to a question about the document, e.g. `coherence` of likert or `rating` of turing."""
    return _answer_ratings(view, "annotation", question, pl.lit("document"))


def unit_answer_ratings(view: View, question: str) -> UnitRatings:
    """Answers to a question about each segment or sentence; the unit is its place in the text."""
    return _answer_ratings(view, "unit", question, pl.col("id").str.extract(r":(\d+-\d+)$"))


def mark_answer_ratings(view: View, clusters: pl.DataFrame, question: str = "severity") -> UnitRatings:
    """Answers to a question about marks, e.g. `severity`, by those who marked the same error."""
    places = clusters.select(id="mark", unit="cluster")
    answered = _select_answers(view, "mark", question).join(places, on="id", how="inner", maintain_order="left")
    return _encode_answers(answered, view, question)


def _answer_ratings(view: View, of: str, question: str, unit: pl.Expr) -> UnitRatings:
    return _encode_answers(_select_answers(view, of, question).with_columns(unit=unit), view, question)


def _select_answers(view: View, of: str, question: str) -> pl.DataFrame:
    answers = view.study.answers.filter(pl.col("of") == of)
    rows = answers.filter(pl.col("question") == question)
    if rows.is_empty():
        questions = answers["question"].unique().sort().to_list()
        raise FinecombError(
            f"nobody answered a question {question!r} about a {NOUNS[of]}{did_you_mean(question, questions)}"
        )
    return rows


NOUNS = {"annotation": "document", "unit": "unit", "mark": "mark"}


def _encode_answers(rows: pl.DataFrame, view: View, question: str) -> UnitRatings:
    """Numbers as they are, words by their place among the question's options."""
    if rows["text"].null_count() == len(rows):
        return _build_unit_ratings(rows.select("document", "unit", "annotator", value="number"), view)
    if rows.select("id").is_duplicated().any():
        raise FinecombError(
            f"question {question!r} takes several answers at once; agreement needs one of each annotator"
        )
    words = rows["text"].fill_null(rows["number"].cast(pl.String))
    options = [
        str(value)
        for asked_question in _protocol_questions(view)
        if asked_question.name == question
        for value in asked_question.values
    ]
    names = tuple(dict.fromkeys([*options, *words.unique().sort()]))
    codes = dict(zip(names, map(float, range(len(names))), strict=True))
    value = words.replace_strict(codes, return_dtype=pl.Float64).alias("value")
    return _build_unit_ratings(rows.select("document", "unit", "annotator", value), view, names)


def _protocol_questions(view: View) -> Iterator[Question]:
    if view.protocol is not None:
        yield from view.protocol.document_questions
        yield from view.protocol.unit_questions
        yield from view.protocol.questions
        for label in view.protocol.labels:
            yield from label.questions
