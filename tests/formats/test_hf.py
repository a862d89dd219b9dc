from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.formats import detect_format, hf
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import PROTOCOL, canonical_form, round_trip, studies

datasets = pytest.importorskip("datasets")

ITEMS: list[StudyItem] = [
    PROTOCOL,
    Document(id="d", text="one two"),
    Annotator(id="a", kind="human"),
    Annotation(
        id="d/a",
        document="d",
        annotator="a",
        protocol="test@1",
        submitted=datetime(2026, 1, 31, tzinfo=UTC),
        marks=(Mark(id="m", spans=(Span(0, 3),), quotes=("one",), label="red"),),
    ),
]


@settings(max_examples=15)
@given(studies())
def test_a_saved_dataset_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(hf.FORMAT, items, Path(place) / "t")
        assert detect_format(Path(place) / "t") is hf.FORMAT
    assert canonical_form(again) == canonical_form(items)


@settings(max_examples=15)
@given(studies())
def test_a_dataset_in_memory_gives_back_the_study(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    assert hf.from_dataset(hf.to_dataset(study)) == study


def test_rows_that_were_left_out_stay_out() -> None:
    dataset = hf.to_dataset(Study.from_items([*ITEMS, Document(id="e", text="more")]))
    dataset["documents"] = dataset["documents"].filter(lambda row: row["id"] == "d")
    assert hf.from_dataset(dataset).documents["id"].to_list() == ["d"]


def test_plain_texts_become_documents() -> None:
    rows = {"generation": ["one", "two"], "prompt": ["say", None], "model": ["a", "b"], "top_p": [0.9, float("nan")]}
    study = hf.from_dataset(datasets.Dataset.from_dict(rows), {"text": "generation"})
    assert list(study.iter_documents()) == [
        Document(id="dataset-0", text="one", context={"prompt": "say"}, meta={"model": "a", "top_p": 0.9}),
        Document(id="dataset-1", text="two", meta={"model": "b", "top_p": None}),
    ]


def test_the_splits_of_plain_texts_are_kept_as_meta() -> None:
    parts = {name: datasets.Dataset.from_dict({"text": [name], "when": [datetime(2026, 1, 1)]}) for name in ("a", "b")}
    documents = list(hf.from_dataset(datasets.DatasetDict(parts)).iter_documents())
    assert documents[1] == Document(id="b-0", text="b", meta={"when": "2026-01-01T00:00:00", "split": "b"})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"body": ["x"]}, "dataset:1: column 'text' is missing; available: body"),
        ({"text": [1]}, "dataset: row 0: column 'text': expected text, found int"),
        ({"text": ["x"], "id": [" "]}, "dataset: row 0: id: an ID must have visible characters"),
        ({"text": ["x"], "raw": [b"x"]}, "dataset: row 0: column 'raw': a bytes cannot be stored; remove the column"),
    ],
)
def test_a_slip_is_named_with_row_and_column(rows: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        hf.from_dataset(datasets.Dataset.from_dict(rows))
    assert message in str(caught.value)


def test_a_study_with_another_column_is_refused() -> None:
    dataset = hf.to_dataset(Study.from_items(ITEMS))
    dataset["marks"] = dataset["marks"].rename_column("votes", "vote")
    with pytest.raises(FormatError, match="split 'marks': column 'votes' is missing; did you mean 'vote'"):
        hf.from_dataset(dataset)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("set", "{}", "'kind': expected settings or protocol, found 'set'"),
        ("settings", "{", "invalid JSON"),
        ("protocol", "{}", "name: missing"),
    ],
)
def test_a_slip_in_the_study_is_named(kind: str, text: str, message: str) -> None:
    dataset = hf.to_dataset(Study.from_items(ITEMS))
    dataset["study"] = datasets.Dataset.from_dict({"kind": [kind], "json": [text]})
    with pytest.raises(FormatError) as caught:
        hf.from_dataset(dataset)
    assert f"dataset: split 'study': row 0: {message}" in str(caught.value)


def test_without_the_library_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(FinecombError, match=r"pip install 'finecomb\[models\]'"):
        hf.to_dataset(Study.from_items(ITEMS))


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not a dataset saved with `save_to_disk`"):
        list(hf.read(tmp_path, Options()))


@settings(max_examples=25)
@given(file_damages)
def test_a_damaged_dataset_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        hf.write(ITEMS, path, Options())
        damage_file(path / "marks" / ("state.json" if place[2] else "dataset_info.json"), place)
        read_or_reject(hf.FORMAT, path)
