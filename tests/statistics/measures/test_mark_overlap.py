from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.study import Study, StudyItem
from finecomb.core.tokens import word_offsets
from finecomb.statistics.measures.mark_overlap import (
    correlation_sums,
    mark_depth_shares,
    pearson_from_sums,
    vote_share_by_severity,
)
from finecomb.statistics.selection.view import view
from tests.statistics.measures.measure_studies import PROTOCOL, MarkedWords, make_measure_study, single_estimate
from tests.strategies import studies

TEXT = "one two three four five six seven eight nine ten"
fewer = settings(max_examples=settings().max_examples // 3)


def covers(mark: Mark, start: int, end: int) -> bool:
    return any(span.part == "text" and span.start < end and start < span.end for span in mark.spans if len(span))


def slow_depths(study: Study, of: str) -> list[int]:
    """Count the annotators with a mark on each token, or the marks of each annotator on each token."""
    found = []
    for document in study.iter_documents():
        read = study.annotations_on(document.id)
        for start, end in word_offsets(document.text).tolist():
            each = [sum(covers(mark, start, end) for mark in reader.marks) for reader in read]
            found += each if of == "marks" else [sum(count > 0 for count in each)]
    return found


@given(studies(), st.sampled_from(["annotators", "marks"]))
@fewer
def test_depth_equals_a_loop_over_tokens(items: list[StudyItem], of: Literal["annotators", "marks"]) -> None:
    study = Study.from_items(items)
    slow = slow_depths(study, of)
    found = [each for each in mark_depth_shares(view(study), of=of, draws=5) if each.columns["label"] == "any"]
    if not slow:
        assert [each.estimate.why for each in found] == ["no annotated text contains a token"]
        return
    expected = np.bincount(slow) / len(slow)
    assert [each.estimate.value for each in found] == pytest.approx(expected.tolist())


def test_depth_by_hand() -> None:
    study = make_measure_study(
        {"d": TEXT}, [("d", "p", [("a", 0, 4), ("a", 2, 4), ("b", 3, 4)]), ("d", "q", [("a", 3, 6)]), ("d", "r", [])]
    )
    people, marks = mark_depth_shares(view(study)), mark_depth_shares(view(study), of="marks")
    assert [single_estimate(people, label="a", depth=deep).value for deep in range(3)] == pytest.approx([0.4, 0.5, 0.1])
    assert [single_estimate(marks, label="any", depth=deep).value * 30 for deep in range(4)] == pytest.approx(
        [23, 5, 1, 1]
    )
    assert single_estimate(people, label="c", depth=0).value == 1


# --- how noticeable ---


def test_what_others_marked_too_does_not_count_ones_own_vote() -> None:
    read: list[tuple[str, str, list[MarkedWords]]] = [
        ("d", "p", [("a", 0, 2, {"severity": 3})]),
        ("d", "q", [("a", 0, 1, {"severity": 3}), ("b", 1, 2, {"severity": 1})]),
        ("d", "r", []),
    ]
    findings = vote_share_by_severity(view(make_measure_study({"d": TEXT}, read)))
    assert single_estimate(findings, measure="vote-share", label="a", severity="3").value == pytest.approx(
        (0.5 + 0 + 0.5) / 3
    )
    assert single_estimate(findings, measure="vote-share", label="any", severity="1").value == pytest.approx(0.5)
    assert single_estimate(findings, measure="vote-share", label="any", severity="all").value == pytest.approx(0.5)
    assert single_estimate(findings, measure="vote-share", label="b", severity="all").value == 0


def test_the_correlation_with_severity_is_pearsons() -> None:
    rng = np.random.default_rng(0)
    read: list[tuple[str, str, list[MarkedWords]]] = []
    x, y = [], []
    for number in range(40):
        severity = int(rng.integers(1, 4))
        seen = rng.random(5) < severity / 4
        seen[0] = True
        for person, sees in enumerate(seen):
            own: list[MarkedWords] = [("a", 0, 1, {"severity": severity})] if sees else []
            read.append((f"d{number}", f"p{person}", own))
            if sees:
                x.append(severity)
                y.append((seen.sum() - 1) / 4)
    texts = {f"d{number}": TEXT for number in range(40)}
    estimate = single_estimate(
        vote_share_by_severity(view(make_measure_study(texts, read))), measure="vote-share-r", label="a"
    )
    assert estimate.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert estimate.low < estimate.value < estimate.high


def test_one_reader_says_nothing_about_others() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [("a", 0, 1, {"severity": 1})])])
    findings = vote_share_by_severity(view(study))
    assert (
        single_estimate(findings, measure="vote-share", label="a").why
        == "no marks on texts with two or more annotators"
    )
    assert single_estimate(findings, measure="vote-share-r", label="a").why == "fewer than three pairs"


def test_pooled_readers_are_left_out() -> None:
    mark = Mark.model_validate({"id": "m", "spans": [[0, 3]], "quotes": ["one"], "label": "a", "votes": 3})
    read = Annotation(id="x", document="d", annotator="crowd", protocol="p@1", readers=3, marks=(mark,))
    items: list[StudyItem] = [PROTOCOL, Document(id="d", text=TEXT), Annotator(id="crowd", kind="pooled"), read]
    assert math.isnan(
        single_estimate(vote_share_by_severity(view(Study.from_items(items))), measure="vote-share", label="a").value
    )


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=20))
def test_pearson_from_sums_equals_numpy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=np.float64).T
    sums = correlation_sums(x, y, np.arange(len(x)), len(x)).sum(axis=1)
    flat = np.ptp(x) == 0 or np.ptp(y) == 0
    assert float(pearson_from_sums(sums)) == pytest.approx(
        math.nan if flat else np.corrcoef(x, y)[0, 1], nan_ok=True, abs=1e-9
    )
