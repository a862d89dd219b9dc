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
from finecomb.core.records import Document, Segment
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import csabstruct, detect_format
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import canonical_form, round_trip, texts

LINE = {
    "abstract_id": 0,
    "sentences": ["We wonder.", "We looked."],
    "labels": ["objective", "method"],
    "confs": [0.5, 1.0],
}
DOCUMENT = Document(
    id="dev-1",
    text="We wonder. We looked.",
    segments=(Segment(start=0, end=10, title="objective"), Segment(start=11, end=21, title="method")),
    meta={"abstract_id": 0, "confs": [0.5, 1.0]},
)


def test_a_sentence_becomes_a_segment_with_its_label_as_title(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(LINE) + "\n")
    assert detect_format(path).name == "csabstruct"
    assert list(csabstruct.read(path, Options())) == [DOCUMENT]


@st.composite
def abstracts(draw: st.DrawFn) -> list[StudyItem]:
    documents: list[StudyItem] = []
    for number in range(draw(st.integers(1, 3))):
        sentences = draw(st.lists(st.tuples(texts(), texts(max_size=5)), min_size=1, max_size=4))
        segments, start = [], 0
        for sentence, label in sentences:
            segments.append(Segment(start=start, end=start + len(sentence), title=label))
            start += len(sentence) + 1
        text = " ".join(sentence for sentence, _ in sentences)
        documents.append(Document(id=f"d{number}", text=text, segments=tuple(segments), meta={"confs": [0.5]}))
    return documents


@settings(max_examples=40)
@given(abstracts())
def test_abstracts_come_back_as_they_were(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        again = round_trip(csabstruct.FORMAT, items, Path(folder) / "a.jsonl")
        assert csabstruct.sniff(Path(folder) / "a.jsonl")
    assert canonical_form(again) == canonical_form(items)


def test_words_outside_the_segments_are_refused_and_white_space_becomes_a_space(tmp_path: Path) -> None:
    segments = (Segment(start=0, end=1, title="x"), Segment(start=3, end=4))
    spaced = Document(id="d", text="a\n\nb\n", segments=segments)
    (again,) = round_trip(csabstruct.FORMAT, [spaced], tmp_path / "a.jsonl")
    assert isinstance(again, Document)
    assert again.text == "a b"
    for text in ("a b c", "a\n\nb c"):
        with pytest.raises(FormatError, match=r"document 'd': '.' at \[.*\) is outside any segment"):
            csabstruct.write([Document(id="d", text=text, segments=segments)], tmp_path / "b.jsonl", Options())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sentences": ["a"], "labels": []}, "has 1 sentences but 0 labels"),
        ({"sentences": ["a", 7], "labels": ["x", "y"]}, r"sentences\[1\]: expected text, found 7"),
        ({"sentences": "a", "labels": ["x"]}, "'sentences': expected a list, found text"),
        ({"sentence": ["a"], "labels": ["x"]}, "'sentences' is missing; did you mean 'sentence'"),
        ({"sentences": ["a\0"], "labels": ["x"]}, "text: .*NUL character"),
        ({"sentences": ["a"], "labels": ["x"], "id": " "}, "id: an ID must have visible characters"),
        ([], "expected an object"),
    ],
)
def test_a_slip_is_named_with_its_line(line: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text(f"\n{json.dumps(line)}\n")
    with pytest.raises(FormatError, match=f"dev.jsonl:2: {message}"):
        list(csabstruct.read(path, Options()))


@settings(max_examples=40)
@given(file_damages)
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE))
        damage_file(path, place)
        csabstruct.sniff(path)
        read_or_reject(csabstruct.FORMAT, path)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["id", "sentences", "labels", "confs"]), values, max_size=4))
def test_any_fields_are_read_or_refused(fields: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_text(json.dumps(LINE | fields))
        read_or_reject(csabstruct.FORMAT, path)


@pytest.mark.parametrize(
    ("name", "abstracts", "labels"),
    [
        ("train", 1668, {"method": 3621, "background": 3615, "result": 2422, "objective": 1325, "other": 350}),
        ("dev", 295, {"background": 681, "method": 624, "result": 410, "objective": 244, "other": 67}),
    ],
)
def test_the_release_has_its_counts_and_comes_back(
    name: str, abstracts: int, labels: dict[str, int], data: Path, tmp_path: Path
) -> None:
    path = data / "csabstruct" / f"{name}.jsonl"
    assert detect_format(path).name == "csabstruct"
    documents = list(csabstruct.read(path, Options()))
    assert len(documents) == abstracts
    assert check_study(Study.from_items(documents)) == []
    titles = [segment.title for each in documents if isinstance(each, Document) for segment in each.segments]
    assert Counter(titles) == labels
    csabstruct.write(documents, tmp_path / "again.jsonl", Options())
    for old, new in zip(lines(path), lines(tmp_path / "again.jsonl"), strict=True):
        written = json.loads(new)
        assert written.pop("id").startswith(f"{name}-")
        assert written == json.loads(old)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
