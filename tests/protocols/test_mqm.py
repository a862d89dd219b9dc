"""The MQM protocol: the hierarchy, severities and weights of the WMT metrics tasks."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

from finecomb.core.records import Mark
from finecomb.protocols import load_shipped
from tests.golden.measures import MQM_SCORES

MQM = load_shipped("mqm")
SEVERITY = next(question for question in MQM.questions if question.name == "severity")


def marked(label: str, severity: str | None = None) -> Mark:
    answers = {} if severity is None else {"severity": severity}
    return Mark(id="m", spans=(), quotes=("words",), unlocated="not placed", label=label, answers=answers)


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("accuracy", ["mistranslation", "addition", "omission", "untranslated-text", "creative-reinterpretation"]),
        ("fluency", ["punctuation", "spelling", "grammar", "register", "inconsistency", "display"]),
        ("terminology", ["inappropriate-for-context", "inconsistent-use-of-terminology"]),
        ("style", ["awkward", "bad-sentence-structure"]),
        (
            "locale-convention",
            ["address-format", "currency-format", "date-format", "name-format", "telephone-format", "time-format"],
        ),
    ],
)
def test_each_family_has_the_categories_of_the_paper(group: str, names: list[str]) -> None:
    assert [label.name for label in MQM.labels if label.group == group] == [f"{group}/{name}" for name in names]


def test_three_categories_stand_alone() -> None:
    assert [label.name for label in MQM.labels if label.group == "other"] == [
        "other",
        "non-translation",
        "source-error",
    ]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Accuracy/Untranslated text", "accuracy/untranslated-text"),
        ("Accuracy/Source language fragment", "accuracy/untranslated-text"),
        ("Terminology/Inappropriate for context", "terminology/inappropriate-for-context"),
        ("Terminology/Inconsistent", "terminology/inconsistent-use-of-terminology"),
        ("Fluency/Character encoding", "fluency/display"),
        ("Style/Unnatural or awkward", "style/awkward"),
        ("Locale convention/Date format", "locale-convention/date-format"),
        ("Non-translation!", "non-translation"),
        ("Source error/-", "source-error"),
        ("Source issue", "source-error"),
        ("Other/-", "other"),
    ],
)
def test_the_spellings_of_the_wmt_files_are_understood(spelling: str, name: str) -> None:
    assert MQM.resolve_label(spelling).name == name


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("accuracy/mistranslation", "Accuracy/Mistranslation"),
        ("fluency/display", "Fluency/Display"),
        ("non-translation", "Non-translation!"),
        ("other", "Other"),
    ],
)
def test_the_first_alias_is_what_the_files_write(name: str, spelling: str) -> None:
    assert MQM.resolve_label(name).aliases[0] == spelling


def test_every_category_has_a_way_to_be_written() -> None:
    assert all(label.aliases and MQM.resolve_label(label.aliases[0]) is label for label in MQM.labels)


@pytest.mark.parametrize(
    ("label", "severity", "weight"),
    [
        ("accuracy/mistranslation", "major", 5),
        ("accuracy/mistranslation", "minor", 1),
        ("style/awkward", "neutral", 0),
        ("fluency/punctuation", "major", 5),
        ("fluency/punctuation", "minor", 0.1),
        ("fluency/punctuation", "neutral", 0),
        ("fluency/spelling", "minor", 1),
        ("non-translation", "major", 25),
        ("source-error", "major", 0),
        ("source-error", "minor", 0),
        ("accuracy/creative-reinterpretation", "minor", 0),
        ("other", "major", 5),
    ],
)
def test_weights_are_those_of_the_metrics_tasks(label: str, severity: str, weight: float) -> None:
    assert MQM.mark_weight(marked(label, severity)) == weight


@pytest.mark.parametrize("severity", [None, "critical"])
def test_a_severity_outside_the_scheme_has_no_weight(severity: str | None) -> None:
    assert MQM.mark_weight(marked("accuracy/mistranslation", severity)) is None


def test_severities_go_from_taste_to_real_error() -> None:
    assert SEVERITY.scale == "ordinal"
    assert SEVERITY.values == ("neutral", "minor", "major")
    assert [option.aliases for option in SEVERITY.options] == [("Neutral",), ("Minor",), ("Major",)]


def test_severity_is_required_and_a_comment_is_not() -> None:
    assert {question.name: question.required for question in MQM.questions} == {"severity": True, "comment": False}


def test_one_translator_reads_each_segment_below_its_source() -> None:
    assert (MQM.work.unit, MQM.work.annotators, MQM.work.context) == ("document", 1, "above")


def test_omissions_and_source_errors_are_marked_in_the_source() -> None:
    texts = [*MQM.examples, *(example for label in MQM.labels for example in label.examples)]
    marks = [mark for text in texts for mark in text.marks]
    marks += [solution for exercise in MQM.exercises() for solution in exercise.solutions]
    for mark in marks:
        assert (mark.part == "source") == (mark.label in ("accuracy/omission", "source-error")), mark.quote


def test_every_category_has_an_example_with_source_and_severity() -> None:
    for label in MQM.labels:
        assert label.examples
        for example in label.examples:
            assert "source" in example.context
            assert all(mark.label == label.name and "severity" in mark.answers for mark in example.marks)


def test_every_category_has_its_own_key_and_flag() -> None:
    assert len({label.key for label in MQM.labels}) == len({label.flag for label in MQM.labels}) == len(MQM.labels)


def test_weights_reproduce_the_scores_of_wmt_2021_ted_talks() -> None:
    folder = os.environ.get("FINECOMB_DATA")
    file = Path(folder or "") / "wmt_mqm_ted_ende" / "mqm_ted_ende.tsv"
    if not folder or not file.exists():
        pytest.skip("FINECOMB_DATA does not name a folder with wmt_mqm_ted_ende/mqm_ted_ende.tsv")
    severities = {alias: str(option.value) for option in SEVERITY.options for alias in option.aliases}
    total: dict[str, float] = defaultdict(float)
    segments: dict[str, set[str]] = defaultdict(set)
    for line in file.read_text(encoding="utf-8").split("\n")[1:]:
        if not line:
            continue
        system, _, _, segment, _, _, _, category, severity, *_ = line.split("\t")
        segments[system].add(segment)
        if category != "No-error":
            weight = MQM.mark_weight(marked(MQM.resolve_label(category).name, severities[severity]))
            assert weight is not None
            total[system] += weight
    scores = {system: total[system] / len(segments[system]) for system in segments}
    assert scores == pytest.approx(MQM_SCORES, abs=0.005)
