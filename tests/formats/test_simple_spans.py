from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, doccano, prodigy
from finecomb.formats.base import Format, Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import MULTILINE_ALPHABET, canonical_form, round_trip, studies

FORMATS = [doccano.FORMAT, prodigy.FORMAT]


def read(format: Format, place: Path, *rows: Any) -> list[StudyItem]:
    path = place / "anna.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert format.read is not None
    return list(format.read(path, Options()))


def only(items: list[StudyItem], kind: type[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


def test_doccano_triples_become_marks_of_the_person_whose_file_it_is(tmp_path: Path) -> None:
    rows = [
        {"id": 4, "text": "😀 A cat.", "label": [[4, 7, "Animal"]], "topic": "pets", "Comments": ["?"]},
        {"id": 5, "text": "No.", "label": []},
        {"id": 6, "text": "Unread."},
    ]
    items = read(doccano.FORMAT, tmp_path, *rows)
    assert [label.name for label in only(items, Protocol)[0].labels] == ["animal"]
    assert items[1:] == [
        Document(id="4", text="😀 A cat.", meta={"topic": "pets"}),
        Document(id="5", text="No."),
        Document(id="6", text="Unread."),
        Annotator(id="anna", kind="human"),
        Annotation(
            id="4/anna",
            document="4",
            annotator="anna",
            protocol="anna@1",
            marks=(Mark(id="4/anna/0", spans=(Span(4, 7),), quotes=("cat",), label="animal"),),
            meta={"Comments": ["?"]},
        ),
        Annotation(id="5/anna", document="5", annotator="anna", protocol="anna@1"),
    ]
    assert check_study(Study.from_items(items)) == []
    assert detect_format(tmp_path / "anna.jsonl") is doccano.FORMAT


def test_doccano_entities_become_marks(tmp_path: Path) -> None:
    row = {"id": 1, "text": "A cat.", "entities": [{"id": 9, "label": "x", "start_offset": 2, "end_offset": 5}]}
    items = read(doccano.FORMAT, tmp_path, row | {"relations": [{"id": 1}]})
    (work,) = only(items, Annotation)
    assert work.marks == (Mark(id="1/anna/0", spans=(Span(2, 5),), quotes=("cat",), label="x", meta={"id": 9}),)
    assert work.meta == {"relations": [{"id": 1}]}
    assert detect_format(tmp_path / "anna.jsonl") is doccano.FORMAT


def test_prodigy_tasks_become_annotations_and_rejected_ones_are_excluded(tmp_path: Path) -> None:
    task = {"text": "A cat.", "_input_hash": -3, "meta": {"source": "web"}, "_annotator_id": "p1", "tokens": []}
    span = {"start": 2, "end": 5, "label": "ANIMAL", "token_start": 1, "token_end": 1, "score": 0.5}
    rows = [task | {"spans": [span], "answer": "accept"}, task | {"answer": "reject", "_annotator_id": "p2"}]
    items = read(prodigy.FORMAT, tmp_path, *rows, {"text": "Only a text.", "_input_hash": 8})
    assert only(items, Document) == [
        Document(id="-3", text="A cat.", meta={"source": "web"}),
        Document(id="8", text="Only a text."),
    ]
    first, second = only(items, Annotation)
    assert first.marks == (
        Mark(id="-3/p1/0", spans=(Span(2, 5),), quotes=("cat",), label="animal", meta={"score": 0.5}),
    )
    assert (second.annotator, second.status, second.meta) == ("p2", "excluded", {"answer": "reject"})
    assert detect_format(tmp_path / "anna.jsonl") is prodigy.FORMAT


def test_a_text_marked_twice_by_one_person_has_two_rounds(tmp_path: Path) -> None:
    items = read(doccano.FORMAT, tmp_path, *[{"id": 1, "text": "A", "label": []}] * 2)
    assert [(each.id, each.round) for each in only(items, Annotation)] == [("1/anna", 0), ("1/anna/1", 1)]


@pytest.mark.parametrize(
    ("format", "row", "message"),
    [
        (doccano.FORMAT, {"label": []}, "anna.jsonl:1: 'text' is missing"),
        (doccano.FORMAT, {"text": "a", "label": [[0, 9, "x"]]}, ":1: label[0]: [0, 9) is not within the text, which"),
        (
            doccano.FORMAT,
            {"text": "a", "label": [[0, "x"]]},
            ":1: label[0]: expected [start, end, label], found [0, 'x']",
        ),
        (doccano.FORMAT, {"text": "a", "entities": [{"label": "x"}]}, ":1: entities[0]: 'start_offset' is missing"),
        (prodigy.FORMAT, {"text": "a", "spans": [{"start": 0}]}, "anna.jsonl:1: spans[0]: 'end' is missing"),
        (
            prodigy.FORMAT,
            {"text": "a", "answer": "maybe"},
            ":1: 'answer': expected accept, reject, ignore, found 'maybe'",
        ),
        (prodigy.FORMAT, [1], "anna.jsonl:1: expected an object, found a list"),
    ],
)
def test_a_slip_is_named_with_its_line(format: Format, row: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read(format, tmp_path, row)
    assert message in str(caught.value)


def test_two_texts_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"anna\.jsonl:2: document '1' has a different text in an earlier record"):
        read(doccano.FORMAT, tmp_path, {"id": 1, "text": "A"}, {"id": 1, "text": "B"})


@settings(max_examples=40)
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(data=st.data())
def test_a_file_gives_back_every_record(format: Format, data: st.DataObject) -> None:
    items = data.draw(studies(format.holds, MULTILINE_ALPHABET))
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(format, items, Path(place) / "t.jsonl")
    assert canonical_form(again, format.holds) == canonical_form(items, format.holds)


ROW = {
    "id": 1,
    "text": "A cat.",
    "label": [[0, 1, "x"]],
    "spans": [{"start": 0, "end": 1, "label": "x"}],
    "answer": "accept",
}
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["id", "start"]), inner)),
    max_leaves=5,
)


@settings(max_examples=80)
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(
    change=st.dictionaries(st.sampled_from([*ROW, "meta", "_input_hash", "entities", "annotator"]), JSON),
    place=file_damages,
)
def test_any_file_is_read_or_refused(
    format: Format, change: dict[str, Any], place: tuple[float, bytes, int, bool]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_text(json.dumps(ROW | change) + "\n" + json.dumps(ROW), encoding="utf-8")
        read_or_reject(format, path)
        damage_file(path, place)
        read_or_reject(format, path)
