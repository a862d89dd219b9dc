from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Exclusion, Mark, Note
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, label_studio
from finecomb.formats.base import Options
from finecomb.formats.utf16 import Utf16Offsets
from tests.formats.fuzzing import damage_file, file_damages, first_line_error, mutated_json, read_or_reject
from tests.strategies import PROTOCOL, canonical_form, round_trip, studies, texts


def region(id: str, start: int, end: int, text: str, *labels: str, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"id": id, "from_name": "label", "to_name": "text", "type": "labels", "value": value} | more


def control(id: str, name: str, kind: str, **value: Any) -> dict[str, Any]:
    return {"id": id, "from_name": name, "to_name": "text", "type": kind, "value": value}


# In "😀 Hi Bob. Hi bob." JavaScript counts two units for the emoji.
TASKS: list[dict[str, Any]] = [
    {
        "id": 41,
        "data": {"review": "😀 Hi Bob. Hi bob.", "prompt": "Greet.", "model": "small"},
        "annotations": [
            {
                "id": 7,
                "completed_by": {"id": 5, "email": "bob@example.org"},
                "created_at": "2026-01-31T09:30:00.5Z",
                "lead_time": 12.5,
                "ground_truth": False,
                "result": [
                    region("aa", 14, 17, "bob", "Wrong case!", score=0.5, meta={"text": ["odd"]}),
                    control("aa", "How bad", "rating", start=14, end=17, rating=2),
                    control("aa", "why", "textarea", start=14, end=17, text=["Lower", "case."]),
                    control("aa", "kind", "choices", start=14, end=17, choices=["name"]),
                    region("bb", 6, 9, "Bob", "Antecedent"),
                    {"type": "relation", "from_id": "aa", "to_id": "bb", "direction": "right", "labels": []},
                    region("cc", 0, 2, "😀", "Emoji", "Wrong case!"),
                    control("dd", "fluent", "choices", choices=["true"]),
                    control("ee", "topics", "choices", choices=["pets", "people"]),
                    {"type": "relation", "from_id": "aa", "to_id": "cc", "direction": "left", "labels": ["same"]},
                ],
            },
            {"completed_by": 5, "was_cancelled": True, "result": []},
        ],
        "predictions": [
            {
                "model_version": "ner-1",
                "result": [
                    region("p1", 5, 8, "Bob", "Emoji"),
                    region("p2", 6, 8, "Hi", "Emoji"),
                    {"id": "p3", "type": "rectanglelabels", "value": {"x": 1}},
                ],
            }
        ],
    }
]


def written(place: Path, value: Any = TASKS) -> Path:
    path = place / "export.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_small_export_becomes_these_records(tmp_path: Path) -> None:
    protocol, document, person, first, second, model, predicted, *notes = label_studio.read(
        written(tmp_path), Options(columns={"text": "review"})
    )
    assert document == Document(
        id="41", text="😀 Hi Bob. Hi bob.", context={"prompt": "Greet."}, meta={"model": "small"}
    )
    assert (person, model) == (Annotator(id="5", kind="human"), Annotator(id="ner-1", kind="detector"))
    assert isinstance(first, Annotation)
    assert first.marks[0] == Mark(
        id="41/5/aa",
        spans=(Span(13, 16),),
        quotes=("bob",),
        label="wrong-case",
        answers={"how_bad": 2, "why": "Lower\ncase.", "kind": "name"},
        antecedents=Antecedents(spans=(Span(5, 8),), quotes=("Bob",)),
        confidence=0.5,
        meta={"text": ["odd"]},
    )
    assert [(mark.id, mark.label, mark.spans, mark.item) for mark in first.marks[1:]] == [
        ("41/5/cc", "emoji", (Span(0, 1),), "cc"),
        ("41/5/cc/1", "wrong-case", (Span(0, 1),), "cc"),
    ]
    assert first.answers == {"fluent": True, "topics": ("pets", "people")}
    assert (first.seconds, first.submitted) == (12.5, datetime(2026, 1, 31, 9, 30, 0, 500_000, UTC))
    assert first.meta == {"id": 7, "relations": [{"from": "cc", "to": "aa", "labels": ["same"]}]}
    assert isinstance(second, Annotation)
    assert (second.round, second.status, second.id) == (1, "excluded", "41/5/1")
    assert second.excluded == Exclusion(by="Label Studio", reason="cancelled (skipped) by the annotator")
    assert isinstance(predicted, Annotation)
    assert [(mark.spans, mark.quotes) for mark in predicted.marks] == [((Span(5, 8),), ("Bob",)), ((), ("Hi",))]
    assert [note.text for note in notes if isinstance(note, Note)] == [
        "1 regions could not be located; they are kept without spans",
        "1 regions were located by their quote, because their offsets do not match",
        "1 results of type 'rectanglelabels' are not about text and were omitted",
    ]
    study = Study.from_items([protocol, document, person, first, second, model, predicted])
    assert [problem.message for problem in check_study(study)] == []


@given(texts(min_size=1))
def test_utf16_positions_are_those_of_the_encoded_text(text: str) -> None:
    units = Utf16Offsets(text)
    for at in range(len(text) + 1):
        assert units.to_utf16(at) == len(text[:at].encode("utf-16-le")) // 2
        assert units.to_code_point(units.to_utf16(at)) == at
    assert units.to_code_point(-1) is None
    assert units.to_code_point(units.to_utf16(len(text)) + 1) is None


def reviewed(place: Path, data: Any, to_name: str) -> Path:
    """A file with one task whose text has one region."""
    return written(
        place, [{"data": data, "annotations": [{"result": [region("a", 3, 6, "Bob", "red", to_name=to_name)]}]}]
    )


@pytest.mark.parametrize(
    ("data", "to_name", "columns"),
    [
        ({"text": "Hi Bob", "title": "x"}, "t", {}),
        ({"body": "Hi Bob", "id": 3}, "t", {}),
        ({"body": "Hi Bob", "link": "x"}, "body", {}),
        ({"body": "Hi Bob", "link": "x"}, "t", {"text": "body"}),
    ],
)
def test_the_text_is_found_among_the_data(data: Any, to_name: str, columns: dict[str, str], tmp_path: Path) -> None:
    items = label_studio.read(reviewed(tmp_path, data, to_name), Options(columns=columns))
    assert [item.text for item in items if isinstance(item, Document)] == ["Hi Bob"]


@pytest.mark.parametrize(
    ("data", "columns", "said"),
    [
        (
            {"body": "Hi Bob", "link": "x"},
            {},
            "has several texts (body, link); pass map=text=NAME to select the text to annotate",
        ),
        ({"body": "Hi Bob"}, {"text": "bodi"}, "has no text 'bodi'; did you mean 'body'?"),
        ({"n": 3}, {}, "has no field with a text; found n"),
    ],
)
def test_a_text_that_cannot_be_told_is_asked_for(data: Any, columns: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        list(label_studio.read(reviewed(tmp_path, data, "t"), Options(columns=columns)))
    assert said in str(error.value)


def test_answers_take_the_form_that_the_protocol_asks_for(tmp_path: Path) -> None:
    results = [
        region("a", 0, 2, "Hi", "Red"),
        control("a", "severity", "choices", start=0, end=2, choices=["2"]),
        control("a", "sure", "choices", start=0, end=2, choices=["Yes"]),
        control("a", "comment", "choices", start=0, end=2, choices=["a", "b"]),
        control("r", "rating", "rating", rating=4),
    ]
    path = written(tmp_path, [{"data": {"text": "Hi"}, "annotations": [{"result": results}]}])
    *_, annotation = label_studio.read(path, Options(protocol=PROTOCOL, annotator="anna"))
    assert isinstance(annotation, Annotation)
    assert annotation.annotator == "anna"
    assert annotation.marks[0].answers == {"severity": 2, "sure": True, "comment": "a\nb"}
    assert annotation.answers == {"rating": 4}


# --- round trips -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(studies(label_studio.FORMAT.holds))
def test_a_study_written_and_read_has_the_same_records(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(label_studio.FORMAT, items, Path(place) / "export.json")
        assert label_studio.sniff(Path(place) / "export.json")
    assert canonical_form(again, label_studio.FORMAT.holds) == canonical_form(items, label_studio.FORMAT.holds)
    assert check_study(Study.from_items(again)) == []


def test_offsets_are_written_as_javascript_counts_them(tmp_path: Path) -> None:
    mark = Mark(id="m", spans=(Span(1, 2),), quotes=("b",), label="red")
    document = Document(id="d", text="😀b")
    annotator = Annotator(id="gpt", kind="llm")
    annotation = Annotation(id="a", document="d", annotator="gpt", protocol=PROTOCOL.id, marks=(mark,))
    label_studio.write([PROTOCOL, document, annotator, annotation], tmp_path / "export.json", Options())
    (task,) = json.loads((tmp_path / "export.json").read_text(encoding="utf-8"))
    assert task["annotations"] == []
    (prediction,) = task["predictions"]
    assert prediction["model_version"] == "gpt"
    assert prediction["result"][0]["value"] == {"start": 2, "end": 3, "text": "b", "labels": ["red"]}


def test_times_and_numbered_people_survive(tmp_path: Path) -> None:
    when = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    items: list[StudyItem] = [
        PROTOCOL,
        Document(id="d", text="x"),
        Annotator(id="12", kind="human"),
        Annotation(id="d/12", document="d", annotator="12", protocol=PROTOCOL.id, submitted=when, seconds=3.5),
    ]
    again = round_trip(label_studio.FORMAT, items, tmp_path / "export.json")
    assert canonical_form(again, label_studio.FORMAT.holds) == canonical_form(items, label_studio.FORMAT.holds)


# --- damaged files -----------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(file_damages)
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder))
        damage_file(path, place)
        label_studio.sniff(path)
        read_or_reject(label_studio.FORMAT, path, Options(columns={"text": "review"}))


@settings(max_examples=250)
@given(mutated_json(TASKS))
def test_a_file_of_another_shape_is_read_or_refused(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read_or_reject(label_studio.FORMAT, written(Path(folder), value), Options(columns={"text": "review"}))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": {}}, "expected a list of tasks, found an object"),
        ([{"id": 1}], "'data' is missing"),
        ([{"id": 1, "text": "x", "annotator": 1}], "which suggests JSON-MIN; export as JSON instead"),
        ([{"data": {"text": "x"}, "annotations": [{"result": [{}]}]}], "annotations[0]: result[0]: 'type' is missing"),
        (
            [{"data": {"text": "x"}, "annotations": [{"result": [control("a", "b", "choices", choices=[3])]}]}],
            "result[0]: 'value': 'choices': expected a list of texts, found [3]",
        ),
        ([{"data": {"text": "x"}, "annotations": [{"created_at": "today", "result": []}]}], "submitted: "),
    ],
)
def test_a_slip_is_named_with_its_place(value: Any, said: str, tmp_path: Path) -> None:
    assert said in first_line_error(label_studio.FORMAT, written(tmp_path, value))


def test_an_unknown_label_names_the_nearest(tmp_path: Path) -> None:
    task = {"data": {"text": "Hi"}, "annotations": [{"result": [region("a", 0, 2, "Hi", "blu")]}]}
    with pytest.raises(FormatError, match="'blu' is not in protocol test@1; did you mean 'blue'"):
        list(label_studio.read(written(tmp_path, [task]), Options(protocol=PROTOCOL)))


def test_it_is_known_by_its_first_characters(tmp_path: Path) -> None:
    assert detect_format(written(tmp_path)).name == "label-studio"
    assert not label_studio.sniff(tmp_path)
