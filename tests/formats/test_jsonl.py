from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats import Options, detect_format, jsonl
from tests.strategies import canonical_form, round_trip, studies


def documents(lines: str, place: Path, **columns: str) -> list[StudyItem]:
    path = place / "texts.jsonl"
    path.write_text(lines, encoding="utf-8")
    return list(jsonl.read(path, Options(columns=columns)))


@given(studies())
def test_one_file_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(jsonl.FORMAT, items, Path(place) / "study.jsonl")
    assert canonical_form(again) == canonical_form(items)


def test_plain_texts_become_documents(tmp_path: Path) -> None:
    lines = (
        '{"id": 7, "text": "A lake.", "prompt": "Write.", "model": "gpt2", "meta": {"topic": "x"}}\n\n{"text": "B."}\n'
    )
    assert documents(lines, tmp_path) == [
        Document(id="7", text="A lake.", context={"prompt": "Write."}, meta={"topic": "x", "model": "gpt2"}),
        Document(id="line-3", text="B."),
    ]
    assert detect_format(tmp_path / "texts.jsonl").name == "jsonl"


def test_columns_are_mapped(tmp_path: Path) -> None:
    line = '{"Body": "A lake.", "Key": "k", "who": "gpt2"}\n'
    made = documents(line, tmp_path, text="Body", id="Key", **{"meta.model": "who"})
    assert made == [Document(id="k", text="A lake.", meta={"model": "gpt2"})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "texts.jsonl:1: invalid JSON"),
        ("[1]", "texts.jsonl:1: expected an object, found a list"),
        ('{"txt": "a"}', "texts.jsonl:1: 'text' is missing; did you mean 'txt'?; name it with map=text=NAME"),
        ('{"text": 3}', "texts.jsonl:1: text: expected a valid string, found 3"),
        ('{"document": {"id": "a"}}', "texts.jsonl:1: text: missing"),
        ('{"text": "a", "context": 3}', "texts.jsonl:1: expected an object, found an integer"),
        ('{"text": "a\\u0000"}', "contains a NUL character"),
    ],
)
def test_slips_are_named_with_their_line(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        documents(line, tmp_path)
    assert message in str(error.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*jsonl.TYPE_BY_KIND, "text", "id", "meta"]), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_any_line_gives_records_or_a_clear_error(value: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "f.jsonl"
        path.write_text(json.dumps(value) + "\n", encoding="utf-8")
        assert jsonl.sniff(path) in (True, False)
        try:
            made = list(jsonl.read(path, Options()))
        except FinecombError:
            made = []
        assert len(made) <= 1
