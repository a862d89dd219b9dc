from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy import stats

from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.results import Finding
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.agreement.dawid_skene import mark_matrix
from finecomb.statistics.annotator_quality import annotator_quality_findings
from finecomb.statistics.measures.unit_grid import build_unit_grid
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.agreement.closed_form import closed_form_agreement

PROTOCOL = Protocol(name="t", version="1", title="T", summary="T.", labels=(Label(name="red"), Label(name="blue")))
TEXT = "a b c d e f g h i j"


def marked(document: str, person: str, tokens: str, label: str = "red", at: int | None = None) -> Annotation:
    """Build one mark per named token."""
    id = f"{document}/{person}"
    places = [TEXT.index(token) for token in tokens]
    marks = tuple(
        Mark(id=f"{id}/{place}", spans=(Span(place, place + 1),), quotes=(TEXT[place],), label=label)
        for place in places
    )
    when = None if at is None else datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=at)
    return Annotation(
        id=id, document=document, annotator=person, protocol="t@1", marks=marks, submitted=when, active_seconds=20
    )


def study(*annotations: Annotation) -> Study:
    documents = [Document(id=id, text=TEXT) for id in dict.fromkeys(each.document for each in annotations)]
    people = [Annotator(id=id, kind="human") for id in dict.fromkeys(each.annotator for each in annotations)]
    return Study.from_items([PROTOCOL, *documents, *people, *annotations])


def by(found: list[Finding], label: str = "any") -> dict[tuple[str, str], Finding]:
    return {
        (str(row.columns["annotator"]), str(row.columns["measure"])): row
        for row in found
        if row.columns["label"] == label
    }


def test_f1_with_the_rest_is_the_mean_overlap_of_pairs() -> None:
    seen = view(Study.from_items(build_demo_study(5, 0)))
    grid = build_unit_grid(seen.study)
    names = sorted(seen.study.annotations["annotator"].unique())
    marks = mark_matrix(seen, grid, names)
    found = by(annotator_quality_findings(seen, ["any"], model=False, draws=20))
    for at, name in enumerate(names):
        others = [other for other in range(len(names)) if other != at]
        overlap = sum(2 * int((marks[:, at] & marks[:, other]).sum()) for other in others)
        size = sum(int(marks[:, at].sum() + marks[:, other].sum()) for other in others)
        assert found[name, "F1 with the rest"].estimate.value == pytest.approx(overlap / size)


def test_alpha_gained_is_alpha_without_less_alpha_with() -> None:
    everybody = view(Study.from_items(build_demo_study(5, 0)))
    whole = closed_form_agreement(everybody, draws=0).value
    found = by(annotator_quality_findings(everybody, ["any"], model=False, draws=20))
    for name in everybody.study.annotations["annotator"].unique():
        rest = replace(everybody, study=everybody.study.filter_annotations(pl.col("annotator") != name))
        gain = closed_form_agreement(rest, draws=0).value - whole
        assert found[name, "alpha gained without"].estimate.value == pytest.approx(gain)


def test_somebody_who_marks_at_random_stands_out() -> None:
    rng = np.random.default_rng(0)
    annotations = []
    for at in range(20):
        wrong = "".join(rng.choice(list("abcdefghij"), 3, replace=False))
        for person in ("anna", "ben", "cem"):
            seen = "".join(token for token in wrong if rng.random() < 0.8)
            annotations.append(marked(f"d{at}", person, seen))
        annotations.append(marked(f"d{at}", "zoe", "".join(rng.choice(list("abcdefghij"), 3, replace=False)), "blue"))
    found = by(annotator_quality_findings(view(study(*annotations)), ["any"], draws=200))
    assert found["zoe", "F1 with the rest"].estimate.high < found["anna", "F1 with the rest"].estimate.low
    assert found["zoe", "alpha gained without"].estimate.low > 0
    assert found["zoe", "recall (model)"].estimate.high < found["anna", "recall (model)"].estimate.low
    assert found["zoe", "precision (model)"].estimate.high < found["anna", "precision (model)"].estimate.low
    assert found["zoe", "distance of label usage"].estimate.value == 1
    assert found["zoe", "distance of label usage"].columns["p"] == pytest.approx(1 / 201)


def test_speed_is_the_median_time_for_100_words() -> None:
    found = by(
        annotator_quality_findings(view(study(marked("x", "anna", "a"), marked("y", "anna", ""))), ["any"], draws=20)
    )
    assert found["anna", "seconds per 100 words"].estimate.value == 200
    assert found["anna", "marks per text"].estimate.value == 0.5


def test_drift_compares_the_second_half_with_the_first() -> None:
    counts = ["abcd", "abc", "abcd", "abcd", "a", "", "a", "b"]
    work = [marked(f"d{at}", "anna", tokens, at=at) for at, tokens in enumerate(counts)]
    found = by(annotator_quality_findings(view(study(*reversed(work))), ["any"], draws=100))[
        "anna", "drift in marks per text"
    ]
    assert found.estimate.value == pytest.approx(0.75 - 3.75)
    assert found.columns["p"] == pytest.approx(2 / 70)
    assert found.estimate.high < 0


def test_steady_annotators_drift_one_time_in_twenty() -> None:
    rng, alarms, runs = np.random.default_rng(2), 0, 60
    for _ in range(runs):
        work = [marked(f"d{at}", "anna", "abcdefghij"[: rng.integers(0, 6)], at=at) for at in range(10)]
        found = by(annotator_quality_findings(view(study(*work)), ["any"], model=False, draws=20))[
            "anna", "drift in marks per text"
        ]
        alarms += float(str(found.columns["p"])) <= 0.05
    assert alarms <= stats.binom.ppf(0.999, runs, 0.05)


def test_label_usage_is_shares_of_the_own_marks() -> None:
    seen = view(study(marked("x", "anna", "ab"), marked("x", "ben", "cd", "blue"), marked("y", "ben", "a")))
    found = annotator_quality_findings(seen, ["any"], draws=20)
    assert by(found, "red")["ben", "share of marks"].estimate.value == pytest.approx(1 / 3)
    assert by(found)["anna", "distance of label usage"].estimate.value == pytest.approx(2 / 3)


def test_one_annotator_has_nobody_to_agree_with() -> None:
    found = by(annotator_quality_findings(view(study(marked("x", "anna", "ab"), marked("y", "anna", ""))), ["any"]))
    assert found["anna", "F1 with the rest"].estimate.why == "no other annotator annotated the same texts"
    assert found["anna", "alpha gained without"].estimate.why == "alpha is undefined with or without the annotator"
    assert found["anna", "recall (model)"].estimate.why == "no text was annotated by three annotators"
    assert found["anna", "distance of label usage"].estimate.why == "no other annotator marked anything"
    assert found["anna", "drift in marks per text"].estimate.why == "times are missing"


def test_marking_nothing_has_no_precision_and_no_shares() -> None:
    people = {"anna": "ab", "ben": "ab", "cem": "a", "dee": ""}
    seen = view(study(*(marked(text, name, tokens) for text in "xy" for name, tokens in people.items())))
    found = annotator_quality_findings(seen, ["any", "blue"], draws=20)
    assert by(found)["dee", "precision (model)"].estimate.why == "the annotator has no marks"
    assert by(found)["dee", "recall (model)"].estimate.value < 0.5
    assert by(found, "red")["dee", "share of marks"].estimate.why == "the annotator marked nothing"
    assert by(found, "blue")["anna", "recall (model)"].estimate.why == "there are no marks with label 'blue'"
    assert by(found, "blue")["anna", "F1 with the rest"].estimate.why == (
        "there are no marks with label 'blue' in the shared texts"
    )


def test_one_document_has_values_without_intervals() -> None:
    found = annotator_quality_findings(
        view(study(*(marked("x", name, "ab") for name in ("anna", "ben", "cem")))), ["any"]
    )
    estimate = by(found)["anna", "recall (model)"].estimate
    assert estimate.value > 0.5
    assert math.isnan(estimate.low)


def test_the_same_seed_gives_the_same_findings_and_every_row_the_same_columns() -> None:
    seen = view(Study.from_items(build_demo_study(3, 0)), Filters(labels=("redundant", "incoherent")))
    one, other = (annotator_quality_findings(seen, draws=20) for _ in range(2))
    assert [str(row) for row in one] == [str(row) for row in other]
    assert {tuple(row.columns) for row in one} == {("annotator", "measure", "label", "texts", "p")}


def test_what_says_nothing_about_anybody_is_refused() -> None:
    with pytest.raises(FinecombError, match="requires submitted annotations, found none"):
        annotator_quality_findings(view(Study.from_items([PROTOCOL, Document(id="x", text=TEXT)])))
    pooled = Annotation(id="p", document="x", annotator="all", protocol="t@1", readers=3)
    items: list[StudyItem] = [PROTOCOL, Document(id="x", text=TEXT), Annotator(id="all", kind="pooled"), pooled]
    with pytest.raises(FinecombError, match="not available for pooled votes"):
        annotator_quality_findings(view(Study.from_items(items)))
    with pytest.raises(FinecombError, match="unknown label 'green'"):
        annotator_quality_findings(view(study(marked("x", "anna", "a"))), ["green"])


def test_an_interval_that_is_missing_says_why() -> None:
    for finding in annotator_quality_findings(Study.from_items(build_demo_study(readers=3)), draws=0):
        estimate = finding.estimate
        assert estimate.why or not math.isnan(estimate.low), finding.columns
