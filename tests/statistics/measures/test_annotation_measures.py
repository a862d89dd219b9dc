from __future__ import annotations

import math
import re
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Answer, Document, Mark
from finecomb.core.study import Study, StudyItem
from finecomb.protocols import load_shipped
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES, measure
from finecomb.statistics.measures.unit_grid import build_annotation_matrix
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.measures.measure_studies import (
    LABELS,
    PROTOCOL,
    WEIGHTED_PROTOCOL,
    MarkedWords,
    make_measure_study,
    single_column,
    single_estimate,
)
from tests.strategies import studies

TEXT = "one two three four five six seven eight nine ten"
fewer = settings(max_examples=settings().max_examples // 3)


# --- by hand ---


def small() -> Study:
    """Build a study of two texts and two annotators: 3 marks by p in d, 1 by q in e."""
    said: dict[str, Answer] = {"severity": 3, "explanation": "It is so."}
    return make_measure_study(
        {"d": TEXT, "e": TEXT},
        [
            ("d", "p", [("a", 0, 4, said), ("a", 2, 5, {"severity": 1}), ("b", 9, 10, {"severity": 2})]),
            ("d", "q", []),
            ("e", "p", []),
            ("e", "q", [("c", 0, 1, {"severity": 2})]),
        ],
        {"d": {"model": "x"}, "e": {"model": "y"}},
    )


@pytest.mark.parametrize(
    ("name", "a", "any_"),
    [
        ("coverage", 0.7 / 4, 0.9 / 4),
        ("severity-coverage", (12 + 3) / 10 / 4, (12 + 3 + 2 + 2) / 10 / 4),
        ("count", 2 / 4, 4 / 4),
        ("rate-1000", 2 / 40 * 1000, 4 / 40 * 1000),
        ("marked-documents", 1 / 4, 2 / 4),
        ("severity", 2.0, 8 / 4),
        ("span-length", 7 / 2, 9 / 4),
        ("explanation-length", 4.0, 4.0),
    ],
)
def test_a_measure_is_what_one_counts_by_hand(name: str, a: float, any_: float) -> None:
    findings = measure(view(small()), [name])
    assert single_estimate(findings, label="a").value == pytest.approx(a)
    assert single_estimate(findings, label="any").value == pytest.approx(any_)
    assert [each.columns["label"] for each in findings] == [*LABELS, "any"]


def test_fractions_are_shares_of_all_marks_and_add_up_to_one() -> None:
    findings = measure(view(small()), ["fraction"])
    assert [each.estimate.value for each in findings] == [0.5, 0.25, 0.25]


def test_the_first_weight_that_fits_a_mark_is_taken() -> None:
    study = make_measure_study(
        {"d": TEXT}, [("d", "p", [("a", 0, 1, {"severity": 3}), ("b", 1, 2, {"severity": 3})])], None, WEIGHTED_PROTOCOL
    )
    findings = measure(view(study), ["score"])
    assert [each.estimate.value for each in findings] == [25, 1, 0, 26]


def test_weights_go_by_the_label_as_marked_also_when_labels_are_backed_off() -> None:
    study = make_measure_study(
        {"d": TEXT}, [("d", "p", [("a", 0, 1, {"severity": 3}), ("b", 1, 2, {"severity": 3})])], None, WEIGHTED_PROTOCOL
    )
    assert single_estimate(measure(view(study, Filters(back_off="any")), ["score"]), label="any").value == 26
    assert single_estimate(measure(view(study), ["score"], detail="group"), label="first").value == 26


def test_weights_of_expressions_equal_those_of_the_protocol() -> None:
    protocol = load_shipped("mqm")
    names = [label.name for label in protocol.labels]
    severities = ["major", "minor", "neutral", "strange"]
    cells = [(name, severity) for name in names for severity in severities]
    words: list[MarkedWords] = [
        (name, at % 10, at % 10 + 1, {"severity": severity}) for at, (name, severity) in enumerate(cells)
    ]
    study = make_measure_study({"d": TEXT}, [("d", "p", [*words, (names[0], 0, 1)])], None, protocol)
    marks = [mark for each in study.iter_annotations() for mark in each.marks]
    expected = [protocol.mark_weight(mark) for mark in marks]
    weights = build_annotation_matrix(view(study)).mark_weights
    assert weights.tolist() == pytest.approx([math.nan if each is None else each for each in expected], nan_ok=True)
    assert len(set(expected)) == 6  # 0, 0.1, 1, 5, 25 and none


def test_groups_and_by_columns_have_their_own_rows() -> None:
    findings = measure(view(small()), ["count"], ["model"], detail="group")
    assert [(each.columns["label"], each.columns["model"]) for each in findings] == [
        *(("first", "x"), ("second", "x"), ("any", "x")),
        *(("first", "y"), ("second", "y"), ("any", "y")),
    ]
    assert single_estimate(findings, label="first", model="x").value == 1.5
    assert "of:model=x" in str(single_estimate(findings, label="first", model="x").signature)


def test_level_any_has_one_row() -> None:
    assert [each.columns["label"] for each in measure(view(small()), ["count"], detail="any")] == ["any"]


def test_annotators_can_be_rows_too() -> None:
    findings = measure(view(small()), ["count"], ["annotator"], detail="any")
    assert [(each.columns["annotator"], each.estimate.value) for each in findings] == [("p", 1.5), ("q", 0.5)]


@pytest.mark.parametrize(("average", "expected"), [("annotation", 12 / 4), ("document", (8 + 4 / 3) / 2)])
def test_averages_over_annotations_and_over_documents_differ_when_readers_do(
    average: Literal["annotation", "document"], expected: float
) -> None:
    own = [("a", at, at + 1) for at in range(8)]
    read = [("d", "p", own), ("e", "p", own[:0]), ("e", "q", own[:0]), ("e", "r", own[:4])]  # 8; 0, 0, 4
    findings = measure(view(make_measure_study({"d": TEXT, "e": TEXT}, read)), ["count"], average=average)
    assert single_estimate(findings, label="a").value == pytest.approx(expected)


def test_pooled_coverage_divides_all_tokens_covered_by_all_tokens() -> None:
    study = make_measure_study({"d": TEXT, "e": "one two"}, [("d", "p", [("a", 0, 5)]), ("e", "p", [("a", 0, 2)])])
    assert single_estimate(measure(view(study), average="pooled"), label="a").value == pytest.approx(7 / 12)
    assert single_estimate(measure(view(study), average="document"), label="a").value == pytest.approx(0.75)


def test_spans_back_off_to_sentences_and_whole_texts() -> None:
    study = make_measure_study({"d": "One two. Three four. Five six."}, [("d", "p", [("a", 0, 3)])])
    shares = [single_estimate(measure(view(study), level=unit), label="a").value for unit in ("sentence", "document")]
    assert shares == pytest.approx([2 / 3, 1])


def test_rate_ignores_how_tokens_are_spread_over_texts() -> None:
    study = make_measure_study({"d": TEXT, "e": "one two"}, [("d", "p", [("a", 0, 1)]), ("e", "p", [("a", 0, 1)])])
    assert single_estimate(measure(view(study), ["rate-1000"]), label="a").value == pytest.approx(2000 / 12)


def test_antecedents_count_as_covered_only_when_asked() -> None:
    study = Study.from_items(
        [
            PROTOCOL,
            Document(id="d", text=TEXT),
            Annotator(id="p", kind="human"),
            Annotation.model_validate(
                {
                    "id": "x",
                    "document": "d",
                    "annotator": "p",
                    "protocol": "p@1",
                    "marks": [
                        {
                            "id": "m",
                            "spans": [[4, 7]],
                            "quotes": ["two"],
                            "label": "a",
                            "antecedents": {"spans": [[0, 3]], "quotes": ["one"]},
                        },
                        {"id": "n", "spans": [], "quotes": ["?"], "unlocated": "lost", "label": "b"},
                    ],
                }
            ),
        ]
    )
    assert single_estimate(measure(view(study)), label="a").value == pytest.approx(0.1)
    assert single_estimate(measure(view(study), antecedents=True), label="a").value == pytest.approx(0.2)
    assert single_estimate(measure(view(study), ["count"]), label="b").value == 1


# --- slow definitions ---


@given(studies())
@fewer
def test_counts_and_lengths_equal_a_loop_over_the_records(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    texts = {each.id: re.findall(r"\S*\w\S*", each.text) for each in study.iter_documents()}  # with a letter or digit
    read = list(study.iter_annotations())
    findings = measure(view(study), ["count", "rate-1000", "marked-documents"], tokens="whitespace", draws=0)
    for label in ("red", "blue", "any"):
        counts = [sum(label in (mark.label, "any") for mark in each.marks) for each in read]
        words = sum(len(texts[each.document]) for each in read)
        assert single_estimate(findings, measure="count", label=label).value == pytest.approx(np.mean(counts))
        assert single_estimate(findings, measure="marked-documents", label=label).value == pytest.approx(
            np.mean(np.array(counts) > 0)
        )
        shown = [n for n, each in zip(counts, read, strict=True) if texts[each.document]]
        rate = 1000 * sum(shown) / words if words else math.nan
        assert single_estimate(findings, measure="rate-1000", label=label).value == pytest.approx(rate, nan_ok=True)


# --- two-way and target ---


def noisy(documents: int = 30, people: int = 6, seed: int = 0) -> Study:
    """Simulate annotators who differ much and documents that differ little; two thirds of the pairs are annotated."""
    rng = np.random.default_rng(seed)
    texts = {f"d{number}": TEXT for number in range(documents)}
    eager = rng.choice([0, 1, 2, 6], people)
    read = [
        (id, f"p{person}", [("a", at, at + 1) for at in range(min(10, rng.poisson(eager[person])))])
        for id in texts
        for person in range(people)
        if rng.random() < 2 / 3
    ]
    return make_measure_study(texts, read)


def test_crossed_annotators_give_a_wider_interval_when_they_differ() -> None:
    selection = view(noisy())
    estimate = single_estimate(measure(selection, ["count"]), label="any")
    both = single_estimate(measure(selection, ["count"], cluster="text,annotator"), label="any")
    assert both.value == estimate.value
    assert both.high - both.low > 2 * (estimate.high - estimate.low)
    assert both.why == "few clusters (6)"
    assert "crossed:annotator|interval:two-way-t" in str(both.signature)


def test_a_target_is_tested_by_t_over_document_means() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, 25)
    texts = {f"d{number}": TEXT for number in range(25)}
    read = [
        (f"d{n}", who, [("a", at, at + 1) for at in range(count)]) for n, count in enumerate(counts) for who in "pq"
    ]
    findings = measure(view(make_measure_study(texts, read)), ["count"], target=1.5)
    expected = stats.ttest_1samp(counts, 1.5)
    assert single_column(findings, "p", label="a") == pytest.approx(expected.pvalue)
    assert single_column(findings, "t", label="a") == pytest.approx(expected.statistic)
    assert single_column(findings, "test", label="a") == "t over clusters"


def test_a_test_without_spread_or_value_is_undefined() -> None:
    findings = measure(view(small()), ["count", "score"], target=1.0)
    assert single_column(findings, "test", measure="score", label="a") == "undefined: protocol p@1 has no weights"
    one = measure(view(make_measure_study({"d": TEXT}, [("d", "p", [("a", 0, 1)])])), ["count"], target=1.0)
    assert single_column(one, "test", label="a") == "undefined: fewer than two clusters"
    assert math.isnan(single_column(one, "p", label="a"))


# --- bad input ---


def test_no_annotations_is_undefined_for_every_measure() -> None:
    empty = Study.from_items([PROTOCOL, Document(id="d", text=TEXT)])
    for finding in measure(view(empty), list(ANNOTATION_MEASURES)):
        assert math.isnan(finding.estimate.value)
        assert finding.estimate.why == "no annotations"
    assert measure(view(empty), by=["annotator"]) == []


def test_no_marks_is_zero_errors_but_no_severity_length_or_share() -> None:
    study = make_measure_study({"d": TEXT, "e": TEXT}, [("d", "p", []), ("e", "p", [])])
    findings = measure(view(study), list(ANNOTATION_MEASURES))
    zero = {each.columns["measure"] for each in findings if each.estimate.value == 0}
    assert zero == {"coverage", "severity-coverage", "count", "score", "rate-100", "rate-1000", "marked-documents"}
    for finding in findings:
        assert math.isnan(finding.estimate.low)  # two equal documents show no spread
        assert finding.estimate.why
    reasons = {each.columns["measure"]: each.estimate.why for each in findings if math.isnan(each.estimate.value)}
    assert reasons["fraction"] == "no marks"
    assert reasons["severity"] == "no mark has a numeric severity"


def test_a_label_nobody_used_has_no_false_certainty() -> None:
    estimate = single_estimate(measure(view(small()), ["severity"]), label="c")
    assert estimate.value == 2
    unused = single_estimate(measure(view(noisy()), ["count"]), label="b")
    assert (unused.value, unused.why) == (
        0,
        "0 in all 30 texts, so there is no interval; at most 12% of texts differ from 0 (exact, 95%)",
    )
    assert math.isnan(unused.high)


def test_one_document_has_a_value_and_no_interval() -> None:
    estimate = single_estimate(measure(view(make_measure_study({"d": TEXT}, [("d", "p", [("a", 0, 1)])]))), label="a")
    assert (estimate.value, estimate.why) == (0.1, "an interval requires at least 4 texts, found 1")


def test_texts_of_length_zero_are_left_out_of_coverage_and_counted_in_counts() -> None:
    study = make_measure_study({"d": TEXT, "e": ""}, [("d", "p", [("a", 0, 5)]), ("e", "p", [])])
    findings = measure(view(study), ["coverage", "count", "rate-1000"])
    assert [
        single_estimate(findings, measure=name, label="a").value for name in ("coverage", "count", "rate-1000")
    ] == [
        0.5,
        0.5,
        100,
    ]
    nothing = make_measure_study({"e": ""}, [("e", "p", [])])
    assert single_estimate(measure(view(nothing)), label="any").why == "no annotated text contains a token"


@pytest.mark.parametrize("name", ["severity-coverage", "score"])
def test_marks_without_severity_leave_no_value_unless_their_annotations_are_left_out(name: str) -> None:
    read: list[tuple[str, str, list[MarkedWords]]] = [
        ("d", "p", [("a", 0, 5, {"severity": 2}), ("b", 0, 1)]),
        ("e", "p", [("a", 0, 5, {"severity": 2})]),
        ("f", "p", []),
    ]
    selection = view(make_measure_study({"d": TEXT, "e": TEXT, "f": TEXT}, read, None, WEIGHTED_PROTOCOL))
    findings = measure(selection, [name])
    per_mark = {"severity-coverage": 1.0, "score": 1.0}[name]
    assert single_estimate(findings, label="a").value == pytest.approx(2 * per_mark / 3)
    assert single_estimate(findings, label="any").why.startswith("1 mark does not have a ")
    left = single_estimate(measure(selection, [name], missing="leave-out"), label="any")
    assert left.value == pytest.approx(per_mark / 2)
    assert left.signature["left_out"] == "1"


def test_a_severity_in_words_is_no_number() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [("a", 0, 1, {"severity": "major"})])])
    findings = measure(view(study), ["severity", "severity-coverage"])
    assert single_estimate(findings, measure="severity", label="a").why == "no mark has a numeric severity"
    assert "a numeric severity" in single_estimate(findings, measure="severity-coverage", label="a").why


def test_versions_of_a_protocol_are_never_mixed() -> None:
    second = PROTOCOL.model_copy(update={"version": "2"})
    small_study = small()
    more = Annotation(id="z", document="d", annotator="z", protocol="p@2")
    study = Study.from_items([*small_study.items(), second, Annotator(id="z", kind="human"), more])
    with pytest.raises(FinecombError, match="2 protocols"):
        view(study)
    assert single_estimate(measure(view(study, Filters(protocol="p@2")), ["count"]), label="any").value == 0


def test_an_unknown_measure_names_the_nearest() -> None:
    with pytest.raises(FinecombError, match="did you mean 'coverage'"):
        measure(view(small()), ["coverge"])


def test_marks_without_a_label_have_their_own_row() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [(None, 0, 1), ("a", 0, 1)])])
    findings = measure(view(study), ["count"])
    assert [each.columns["label"] for each in findings] == [*LABELS, "no type", "any"]
    assert single_estimate(findings, label="no type").value == 1


# --- intervals keep their word ---


def coverage_holds(run: int, documents: int = 80) -> bool:
    """Return True if the interval of one simulated study covers the true coverage, 0.2."""
    rng = np.random.default_rng([run, 1])
    texts = {f"d{number}": " ".join(["w"] * 12) for number in range(documents)}
    read: list[tuple[str, str, list[MarkedWords]]] = []
    for id in texts:
        rate = rng.beta(2, 8)
        for person in "pqr":
            read.append((id, person, [("a", int(at), int(at) + 1) for at in np.flatnonzero(rng.random(12) < rate)]))
    estimate = single_estimate(measure(view(make_measure_study(texts, read)), detail="any", seed=run), label="any")
    return estimate.low <= 0.2 <= estimate.high


@pytest.mark.long
def test_intervals_of_coverage_hold_the_truth_about_as_often_as_they_say() -> None:
    held = sum(coverage_holds(run, documents=40) for run in range(50))
    assert held >= stats.binom.ppf(0.001, 50, 0.93)


@pytest.mark.long
def test_intervals_of_coverage_hold_the_truth_in_93_to_97_of_100_runs() -> None:
    assert 930 <= sum(coverage_holds(run) for run in range(1000)) <= 970


def test_marks_by_votes_count_once() -> None:
    pooled = Annotator(id="crowd", kind="pooled")
    mark = Mark.model_validate({"id": "m", "spans": [[0, 3]], "quotes": ["one"], "label": "a", "votes": 3})
    read = Annotation(id="x", document="d", annotator="crowd", protocol="p@1", readers=3, marks=(mark,))
    study = Study.from_items([PROTOCOL, Document(id="d", text=TEXT), pooled, read])
    findings = measure(view(study), ["count", "coverage"])
    assert [each.estimate.value for each in findings if each.columns["label"] == "a"] == [1, 0.1]


def test_an_option_that_no_measure_asked_for_has_is_refused() -> None:
    import finecomb as fc

    with pytest.raises(FinecombError, match=r"^overlap does not apply to count; it applies to coverage"):
        measure(fc.demo(readers=2), ["count"], overlap="union")
