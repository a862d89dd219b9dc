from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, factgenie
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import canonical_form, round_trip, studies

CONFIG = """\
annotation_span_categories:
- {name: Contradictory, description: Against the data., color: red}
- {name: Not checkable, description: Nobody can tell.}
annotation_granularity: words
"""
TEXT = "Snow on Monday, sun on Sunday."


def row(**more: Any) -> dict[str, Any]:
    place = {"dataset": "weather", "split": "dev", "example_idx": 0, "setup_id": "phi3-5"}
    return place | {"annotations": [], "annotator_group": 3} | more


def campaign(place: Path, *rows: dict[str, Any], kind: str = "human", config: str = CONFIG) -> Path:
    """A small campaign on disk; returns its folder."""
    folder = place / "annotations" / kind / "forecast" / "trial"
    folder.mkdir(parents=True)
    lines = [json.dumps(each) for each in rows]
    (folder / "annotations.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    outputs = place / "outputs" / "phi3-5"
    outputs.mkdir(parents=True)
    output = {"dataset": "weather", "example_idx": "0", "setup_id": "phi3.5"}
    for split, text in [("dev", TEXT), ("test", "Rain. " + TEXT)]:
        (outputs / f"{split}.jsonl").write_text(json.dumps(output | {"split": split, "output": text}), encoding="utf-8")
    inputs = place / "inputs" / "forecast" / "weather"
    inputs.mkdir(parents=True)
    (inputs / "dev.json").write_text('{"forecasts": [{"monday": "snow"}]}', encoding="utf-8")
    return folder


def items_of(folder: Path, **options: Any) -> list[StudyItem]:
    return list(factgenie.read(folder, Options(**options)))


def only(items: list[StudyItem], kind: type[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


def test_a_campaign_gives_protocol_texts_data_and_marks(tmp_path: Path) -> None:
    folder = campaign(tmp_path, row(annotations=[{"type": 1, "text": "Monday", "start": 8, "id": "m1", "n": 1}]), row())
    items = items_of(folder)
    (protocol,) = only(items, Protocol)
    assert protocol.id == "forecast@1"
    assert [(label.name, label.gloss) for label in protocol.labels] == [
        ("contradictory", "Against the data."),
        ("not-checkable", "Nobody can tell."),
    ]
    meta = {"model": "phi3.5", "dataset": "weather", "split": "dev", "example_idx": "0"}
    assert items[1:] == [
        Document(id="weather/dev/phi3.5/0", text=TEXT, data={"monday": "snow"}, meta=meta),
        Annotator(id="trial/3", kind="human"),
        Annotation(
            id="weather/dev/phi3.5/0/trial/3",
            document="weather/dev/phi3.5/0",
            annotator="trial/3",
            protocol="forecast@1",
            marks=(Mark(id="m1", spans=(Span(8, 14),), quotes=("Monday",), label="not-checkable", meta={"n": 1}),),
        ),
        Annotation(
            id="weather/dev/phi3.5/0/trial/3/1",
            document="weather/dev/phi3.5/0",
            annotator="trial/3",
            protocol="forecast@1",
            round=1,
        ),
    ]
    assert check_study(Study.from_items(items)) == []
    assert detect_format(folder) is detect_format(folder / "annotations.jsonl") is factgenie.FORMAT


def test_a_campaign_of_a_model_is_that_model(tmp_path: Path) -> None:
    span = {"type": 0, "text": "Snow", "start": 0, "reason": "It rained."}
    folder = campaign(
        tmp_path, row(annotations=[span], annotator_group=0), kind="model", config=CONFIG + "model: m-1\n"
    )
    items = items_of(folder)
    assert only(items, Annotator) == [Annotator(id="trial", kind="llm", meta={"model": "m-1"})]
    assert only(items, Annotation)[0].marks[0].answers == {"explanation": "It rained."}


def test_rows_that_name_another_split_find_the_output_that_has_their_spans(tmp_path: Path) -> None:
    items = items_of(campaign(tmp_path, row(annotations=[{"type": 0, "text": "Snow", "start": 6}])))
    assert only(items, Document)[0].id == "weather/test/phi3.5/0"
    assert only(items, Annotation)[0].meta == {"split": "dev"}


def test_a_span_that_stands_elsewhere_is_moved_and_one_that_stands_nowhere_kept(tmp_path: Path) -> None:
    spans = [("Snow", 0), ("Monday", 7), ("hail", 2)]
    items = items_of(
        campaign(tmp_path, row(annotations=[{"type": 0, "text": text, "start": start} for text, start in spans]))
    )
    _, moved, lost = only(items, Annotation)[0].marks
    assert (moved.spans, moved.meta) == ((Span(8, 14),), {"start": 7})
    assert (lost.spans, lost.unlocated, lost.quotes) == ((), "the quote is not in the output", ("hail",))
    assert [note.text[:8] for note in only(items, Note)] == ["1 spans ", "1 spans "]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"annotations": [{"type": 2, "text": "Snow", "start": 0}]},
            ":1: annotations[0]: 'type': expected the index of a category in config.yaml (0 to 1), found 2",
        ),
        ({"annotations": [{"type": "0", "text": "S", "start": 0}]}, "[0]: 'type': expected an integer, found text"),
        (
            {"annotations": [{"type": 0, "text": "S", "start": -1}]},
            "[0]: 'start': expected an integer of at least 0, found",
        ),
        ({"annotations": [{"type": 0, "start": 0}]}, "annotations.jsonl:1: annotations[0]: 'text' is missing"),
        (
            {"setup_id": "gpt9"},
            "annotations.jsonl:1: no output of 'gpt9' for example 0 of weather/dev; name the folder",
        ),
        ({"annotations": {}}, "annotations.jsonl:1: 'annotations': expected a list, found an object"),
    ],
)
def test_a_slip_is_named_with_its_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        items_of(campaign(tmp_path, row() | change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("a: [", "config.yaml: invalid YAML"),
        ("[]", "config.yaml: expected an object, found a list"),
        ("a: 1", "config.yaml: 'annotation_span_categories' is missing"),
        ("annotation_span_categories: [{name: A}, {name: a}]", "config.yaml: label 'a' occurs twice"),
    ],
)
def test_a_slip_in_the_categories_is_named(config: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        items_of(campaign(tmp_path, row(), config=config))
    assert message in str(caught.value)


def test_a_campaign_without_outputs_or_categories_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "annotations.jsonl").write_text(json.dumps(row()), encoding="utf-8")
    with pytest.raises(FormatError, match=r"config\.yaml: no such file"):
        items_of(tmp_path)


@settings(max_examples=40)
@given(studies(factgenie.FORMAT.holds))
def test_a_campaign_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(factgenie.FORMAT, items, Path(place) / "out")
    assert canonical_form(again, factgenie.FORMAT.holds) == canonical_form(items, factgenie.FORMAT.holds)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from([*row(), "metadata", "round"]), JSON), st.dictionaries(st.text(max_size=3), JSON)
)
def test_any_row_is_read_or_refused(change: dict[str, Any], config: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = campaign(Path(place), row() | change, config=CONFIG + json.dumps(config)[1:-1].replace(", ", "\n"))
        read_or_reject(factgenie.FORMAT, folder)


@settings(max_examples=60)
@given(file_damages, st.sampled_from(["annotations.jsonl", "config.yaml", "../../../../outputs/phi3-5/dev.jsonl"]))
def test_a_damaged_campaign_is_read_or_refused(place: tuple[float, bytes, int, bool], name: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = campaign(Path(temporary), row(annotations=[{"type": 0, "text": "Snow", "start": 0, "id": "x"}]))
        damage_file(folder / name, place)
        read_or_reject(factgenie.FORMAT, folder)


@pytest.mark.parametrize(
    ("name", "documents", "annotations", "marks"),
    [
        ("human/d2t-eval/iaa", 12, 341, 1276),
        ("human/d2t-eval/dev", 84, 84, 238),
        ("human/d2t-eval/qualification/qualification-task", 5, 1097, 4840),
        ("human/d2t-eval/qualification/qualification-key", 5, 5, 10),
        ("model/d2t-eval/dev/zeroshot-claude-3-7-sonnet", 84, 84, 197),
        ("model/d2t-eval/dev/zeroshot-deepseek-r1", 84, 84, 84),
        ("model/d2t-eval/iaa/zeroshot-gpt4o", 12, 12, 25),
    ],
)
def test_released_campaigns_have_their_counts(
    name: str, documents: int, annotations: int, marks: int, data: Path
) -> None:
    items = items_of(data / "span_annotation" / "annotations" / name)
    study = Study.from_items(items)
    assert (len(study.documents), len(study.annotations), len(study.marks)) == (documents, annotations, marks)
    assert check_study(study) == []
    assert study.documents["data"].null_count() == 0
    assert set(study.annotators["kind"]) == {"llm" if name.startswith("model") else "human"}


def test_the_agreement_campaign_has_its_categories_and_people(data: Path) -> None:
    items = items_of(data / "span_annotation/annotations/human/d2t-eval/iaa")
    labels = Counter(mark.label for each in only(items, Annotation) for mark in each.marks)
    assert [labels[label.name] for label in only(items, Protocol)[0].labels] == [772, 217, 171, 82, 24, 10]
    assert sum(len(document.text) for document in only(items, Document)) == 8991
    assert len(only(items, Annotator)) == 29


def test_the_qualification_has_its_repeated_rows_as_rounds(data: Path) -> None:
    items = items_of(data / "span_annotation/annotations/human/d2t-eval/qualification/qualification-task")
    assert sorted(Counter(each.document for each in only(items, Annotation)).values()) == [219, 219, 219, 220, 220]
    assert sum(each.round > 0 for each in only(items, Annotation)) == 55
    assert not any(mark.unlocated or "start" in mark.meta for each in only(items, Annotation) for mark in each.marks)
