"""Sentence scores against gold: recall at fixed precision and calibration, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark, Unit
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load_shipped
from finecomb.statistics.gold.scores import score_judges_against_gold
from finecomb.statistics.gold.unit_scores import (
    calibration_table,
    recall_at_false_positive_rates,
    recall_at_precision_table,
)

TEXT = "Aa bb. Cc dd. Ee ff. Gg hh."
EDGES = [(0, 6), (7, 13), (14, 20), (21, 27)]
SNAC = load_shipped("snac")
SCORES = [0.9, 0.85, 0.4, 0.1]


def mark(id: str, at: int, label: str) -> Mark:
    start, end = EDGES[at]
    return Mark(id=id, spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label)


def study(scored: bool = True) -> Study:
    units = tuple(
        Unit(start=start, end=end, scores={"char": value, "any": value} if scored else {})
        for (start, end), value in zip(EDGES, SCORES, strict=True)
    )
    gold = (mark("1", 0, "char"), mark("2", 2, "char"), mark("3", 1, "gram"))
    return Study.from_items([
        SNAC,
        Document(id="d", text=TEXT),
        Annotator(id="gold", kind="gold"),
        Annotator(id="machine", kind="detector"),
        Annotation(id="g", document="d", annotator="gold", protocol=SNAC.id, marks=gold),
        Annotation(
            id="m", document="d", annotator="machine", protocol=SNAC.id, marks=(mark("m1", 0, "char"),), units=units
        ),
    ])  # fmt: skip


def test_recall_where_so_much_is_right() -> None:
    table = study()
    rows = recall_at_precision_table(score_judges_against_gold(table, match="sentence", draws=0), table)
    assert [row["label"] for row in rows] == ["any", "char"]
    (char,) = (row for row in rows if row["label"] == "char")
    assert (char["units"], char["gold"]) == (4, 2)
    assert char["recall at 0.9"] == 0.5  # only the first unit
    assert char["recall at 0.6"] == 1.0  # two of three units
    assert char["area"] == 0.75


def test_any_is_about_the_labels_that_a_judge_knows() -> None:
    table = study()
    (first, *_) = recall_at_precision_table(score_judges_against_gold(table, match="sentence", draws=0), table)
    assert first["gold"] == 2  # `gram` in the second sentence is not among them


def test_calibration_by_tenths() -> None:
    table = study()
    rows = [
        row
        for row in calibration_table(score_judges_against_gold(table, match="sentence", draws=0), table)
        if row["label"] == "char"
    ]
    assert [(row["score"], row["units"], row["errors"]) for row in rows] == [
        ("0.1-0.2", 1, 0.0), ("0.4-0.5", 1, 1.0), ("0.8-0.9", 1, 0.0), ("0.9-1.0", 1, 1.0),
    ]  # fmt: skip


def test_without_scores_there_is_nothing_to_show() -> None:
    table = study(scored=False)
    with pytest.raises(FinecombError, match="no judge has sentence scores"):
        recall_at_precision_table(score_judges_against_gold(table, match="sentence", draws=0), table)


def test_points_of_a_roc_curve() -> None:
    scores, truth = np.array([0.9, 0.8, 0.3, 0.2]), np.array([True, False, True, False])
    assert recall_at_false_positive_rates(scores, truth, [0.0, 1.0]) == [0.0, 1.0]
    assert recall_at_false_positive_rates(np.array([3.0, 1, 2, 0]), truth, [0.5]) == [
        1.0
    ]  # half of the negatives are above .5
