from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.records import Document, Segment
from finecomb.core.study import StudyItem
from finecomb.formats import detect_format, model_criticism
from finecomb.formats.base import Options
from tests.formats.fuzzing import read_or_reject
from tests.strategies import round_trip, texts

ARTICLES = [
    {"sections": ["We ask why.", "We found it."], "section_names": ["introduction", "result"]},
    {"section_names": None, "sections": ["Made up."], "predicted_section_names": ["result"]},
]


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    path = tmp_path / "test.json"
    path.write_text(json.dumps(ARTICLES))
    return path


def test_sections_become_segments_with_their_names(articles: Path) -> None:
    assert detect_format(articles).name == "model-criticism"
    assert list(model_criticism.read(articles, Options())) == [
        Document(
            id="test-1",
            text="We ask why.\n\nWe found it.",
            segments=(Segment(start=0, end=11, title="introduction"), Segment(start=13, end=25, title="result")),
        ),
        Document(
            id="test-2",
            text="Made up.",
            segments=(Segment(start=0, end=8),),
            meta={"predicted_section_names": ["result"]},
        ),
    ]


@st.composite
def documents(draw: st.DrawFn) -> list[StudyItem]:
    items: list[StudyItem] = []
    for number in range(draw(st.integers(1, 3))):
        pairs = draw(st.lists(st.tuples(texts(), texts(max_size=5)), min_size=1, max_size=4))
        segments, start = [], 0
        for section, name in pairs:
            segments.append(Segment(start=start, end=start + len(section), title=name))
            start += len(section) + 2
        text = "\n\n".join(section for section, _ in pairs)
        items.append(Document(id=f"d{number}", text=text, segments=tuple(segments), meta={"seed": 1}))
    return items


@settings(max_examples=40)
@given(documents())
def test_articles_come_back_as_they_were(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert round_trip(model_criticism.FORMAT, items, Path(folder) / "a.json") == items
        assert model_criticism.sniff(Path(folder) / "a.json")


def test_a_text_outside_of_sections_cannot_be_written(tmp_path: Path) -> None:
    loose = Document(id="d", text="Title. One.", segments=(Segment(start=7, end=11),))
    with pytest.raises(FormatError, match=r"'Title\.' at \[0, 7\) is outside any segment"):
        model_criticism.write([loose], tmp_path / "a.json", Options())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"sections": ["a"], "section_names": []}], "has 1 sections but 0 section_names"),
        ([{"sections": [1], "section_names": ["x"]}], r"sections\[0\]: expected text, found 1"),
        ([{"section_names": ["x"]}], "sections"),
        ({"sections": []}, "expected a list of articles, found an object"),
    ],
)
def test_damaged_articles_are_one_line(tmp_path: Path, value: object, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    with pytest.raises(FormatError, match=message):
        list(model_criticism.read(path, Options()))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_anything_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        model_criticism.sniff(path)
        read_or_reject(model_criticism.FORMAT, path)
