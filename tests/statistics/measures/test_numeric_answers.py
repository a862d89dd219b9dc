from __future__ import annotations

import math

import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import compare_systems_pairwise
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.numeric_answers import unusable_severity_warnings

WORDS = ("minor", "major", "critical")


def protocol(scale: str = "ordinal") -> Protocol:
    return Protocol.model_validate(
        {
            "name": "words",
            "title": "Words",
            "summary": "For tests.",
            "version": "1",
            "labels": [{"name": "red"}],
            "questions": [{"name": "severity", "ask": "How bad?", "scale": scale, "options": list(WORDS)}],
            "document_questions": [
                {"name": "quality", "ask": "How good?", "scale": "ordinal", "options": ["bad", "fair", "good"]},
                {"name": "rating", "ask": "How many?", "scale": "ordinal", "options": [1, 2, 3, 4, 5]},
            ],
        }
    )


def study() -> Study:
    """Build a study of two systems with two texts each, with words as severities and answers."""
    texts = [Document(id=f"{model}{n}", text="So it is.", meta={"model": model}) for model in "ab" for n in (0, 1)]
    qualities = {"a0": "bad", "a1": "good", "b0": "good", "b1": "good"}
    annotations = [
        Annotation(
            id=text.id,
            document=text.id,
            annotator="ann",
            protocol="words@1",
            answers={"quality": qualities[text.id], "rating": 1 + number},
            marks=(
                Mark(
                    id=f"m{number}",
                    spans=(Span(0, 2),),
                    quotes=("So",),
                    label="red",
                    answers={"severity": WORDS[number % 3]},
                ),
            ),
        )
        for number, text in enumerate(texts)
    ]
    return Study.from_items([protocol(), *texts, Annotator(id="ann", kind="human"), *annotations])


def test_words_of_an_ordinal_severity_count_by_their_order() -> None:
    severity = measure(study(), "severity", draws=0)
    assert severity[-1].estimate.value == pytest.approx((1 + 2 + 3 + 1) / 4)


def test_the_mean_answer_is_a_measure_with_an_interval() -> None:
    rating = {str(row.columns["model"]): row.estimate for row in measure(study(), "answer:rating", "model", draws=200)}
    assert (rating["a"].value, rating["b"].value) == (1.5, 3.5)
    assert rating["a"].why == "an interval requires at least 4 texts, found 2"
    quality = {str(row.columns["model"]): row for row in measure(study(), ["answer:quality"], ["model"], draws=0)}
    assert (quality["a"].estimate.value, quality["b"].estimate.value) == (2, 3)
    assert {row.columns["label"] for row in quality.values()} == {"any"}


def test_answers_are_compared_by_the_same_numbers() -> None:
    row = compare_systems_pairwise(study(), "model", "answer:quality", draws=100)[0]
    assert row.estimate.value == pytest.approx(2 - 3)


def test_a_question_that_nobody_asked_is_refused_by_name() -> None:
    with pytest.raises(FinecombError, match="unknown question about the document; did you mean 'rating'"):
        measure(study(), "answer:ratin")


def test_a_severity_that_no_statistic_can_use_is_said_beforehand() -> None:
    assert unusable_severity_warnings(protocol()) == []
    assert "statistics cannot use them" in unusable_severity_warnings(protocol("nominal"))[0]


def test_who_did_not_answer_is_left_out() -> None:
    whole = study()
    items = [
        item.model_copy(update={"answers": {}}) if isinstance(item, Annotation) and item.id == "b1" else item
        for item in whole.items()
    ]
    rows = measure(Study.from_items(items), "answer:rating", "model", draws=0)
    assert [row.estimate.value for row in rows] == [1.5, 3.0]
    assert math.isnan(rows[1].estimate.low)
