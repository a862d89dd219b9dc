"""Rating matrices (annotators by units) of item labels and of answers about documents, units or aligned marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.question import Question
from finecomb.statistics.agreement.alpha import Ratings
from finecomb.statistics.inference.resampling import Ints
from finecomb.statistics.selection.view import NO_TYPE_LABEL, View

NO_ERROR = "no error"


@dataclass(frozen=True, slots=True)
class UnitRatings:
    """Ratings of units by annotators; the units of one document are adjacent."""

    matrix: Ratings
    """(annotators, units): rating of each unit, or NaN where the annotator did not rate it."""
    annotators: tuple[str, ...]
    documents: tuple[str, ...]
    bounds: Ints
    """(documents + 1,): document i has the units from `bounds[i]` up to, but not including, `bounds[i + 1]`."""
    names: tuple[str, ...] = ()
    """Names of the values 0, 1, ...; empty if the values are numbers."""


def _build_unit_ratings(rows: pl.DataFrame, view: View, names: tuple[str, ...] = ()) -> UnitRatings:
    """Build the matrix from rows of document, unit, annotator, value. Each annotator's first value per unit counts."""
    documents = view.study.documents["id"]
    once = rows.unique(["document", "unit", "annotator"], keep="first", maintain_order=True)
    positions = pl.DataFrame({"document": documents, "place": pl.int_range(len(documents), eager=True)})
    units = once.select("document", "unit").unique(maintain_order=True).join(positions, on="document")
    units = units.sort("place", maintain_order=True).with_row_index("column")
    people = once.select("annotator").unique().sort("annotator").with_row_index("row")
    cells = once.join(units, on=["document", "unit"]).join(people, on="annotator")
    matrix = np.full((len(people), len(units)), np.nan)
    matrix[cells["row"].to_numpy(), cells["column"].to_numpy()] = cells["value"].to_numpy()
    sizes = np.bincount(units["place"].to_numpy(), minlength=len(documents))
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return UnitRatings(matrix, tuple(people["annotator"]), tuple(documents), bounds, names)


# --- labels of items ---------------------------------------------------------------------------------------------


def _all_marks(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    return marks


def _labelled_marks(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    return marks.filter(pl.col("label") != NO_TYPE_LABEL)


def _add_no_error_rows(marks: pl.DataFrame, view: View) -> pl.DataFrame:
    """Return one row per item and annotator of its document, with `no error` if the annotator did not mark the item."""
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


RATING_CONVENTIONS: dict[str, Callable[[pl.DataFrame, View], pl.DataFrame]] = {
    "marked": _all_marks,
    "typed": _labelled_marks,
    "no-error": _add_no_error_rows,
    "no-error-majority": _majority_marked_items,
    "no-error-typed-majority": _majority_labelled_items,
}
"""Conventions for which ratings of an item count.

- `marked`: the labels of those who marked it, including `no type`; all others are missing.
- `typed`: as `marked`, but marks without a label are missing as well.
- `no-error`: annotators of the text who did not mark the item rate it `no error`.
- `no-error-majority`: as `no-error`, only for items that more than half of the annotators marked.
- `no-error-typed-majority`: as `no-error`, only for items to which more than half of the annotators gave one label.
"""


def item_label_ratings(view: View, clusters: pl.DataFrame, convention: str = "marked") -> UnitRatings:
    """Return the labels of the items found by `align_marks`, under one of `RATING_CONVENTIONS`."""
    if convention not in RATING_CONVENTIONS:
        raise FinecombError(f"unknown convention {convention!r}{did_you_mean(convention, RATING_CONVENTIONS)}")
    rows = RATING_CONVENTIONS[convention](clusters.with_columns(unit=pl.col("cluster")), view)
    names = (*view.categories, NO_ERROR)
    codes = dict(zip(names, map(float, range(len(names))), strict=True))
    value = pl.col("label").replace_strict(codes, return_dtype=pl.Float64)
    return _build_unit_ratings(rows.select("document", "unit", "annotator", value=value), view, names)


# --- answers -----------------------------------------------------------------------------------------------------


def document_answer_ratings(view: View, question: str) -> UnitRatings:
    """Return the answers to a question about the document, e.g. `coherence` in likert or `rating` in turing."""
    return _answer_ratings(view, "annotation", question, pl.lit("document"))


def unit_answer_ratings(view: View, question: str) -> UnitRatings:
    """Return the answers to a question about each segment or sentence, identified by its offsets."""
    return _answer_ratings(view, "unit", question, pl.col("id").str.extract(r":(\d+-\d+)$"))


def mark_answer_ratings(view: View, clusters: pl.DataFrame, question: str = "severity") -> UnitRatings:
    """Return the answers to a question about marks, e.g. `severity`, where marks of the same error form one unit."""
    cluster_by_mark = clusters.select(id="mark", unit="cluster")
    answered = _select_answers(view, "mark", question).join(
        cluster_by_mark, on="id", how="inner", maintain_order="left"
    )
    return _encode_answers(answered, view, question)


def _answer_ratings(view: View, of: str, question: str, unit: pl.Expr) -> UnitRatings:
    return _encode_answers(_select_answers(view, of, question).with_columns(unit=unit), view, question)


def _select_answers(view: View, of: str, question: str) -> pl.DataFrame:
    answers = view.study.answers.filter(pl.col("of") == of)
    rows = answers.filter(pl.col("question") == question)
    if rows.is_empty():
        questions = answers["question"].unique().sort().to_list()
        noun = _NOUN_BY_ANSWER_LEVEL[of]
        raise FinecombError(f"no {noun} has an answer to question {question!r}{did_you_mean(question, questions)}")
    return rows


_NOUN_BY_ANSWER_LEVEL = {"annotation": "document", "unit": "unit", "mark": "mark"}


def _encode_answers(rows: pl.DataFrame, view: View, question: str) -> UnitRatings:
    """Encode answers as numbers: numeric answers unchanged, words by their position among the question's options."""
    if rows["text"].null_count() == len(rows):
        return _build_unit_ratings(rows.select("document", "unit", "annotator", value="number"), view)
    if rows.select("id").is_duplicated().any():
        raise FinecombError(
            f"question {question!r} allows several answers; agreement requires one answer per annotator"
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
