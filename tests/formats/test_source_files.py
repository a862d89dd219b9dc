from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.formats.source_files import (
    JsonObject,
    build_implied_protocol,
    iter_csv_rows,
    iter_nonblank_lines,
    open_text,
    parse_json,
    read_text,
    stream_json_items,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=6), children, max_size=4),
    max_leaves=12,
).filter(lambda value: "\ud800" not in repr(value))


def written(content: str | bytes, place: str, name: str = "file.json") -> Path:
    path = Path(place) / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 0, 2]))
def test_items_of_an_array_are_what_json_load_gives(values: list[Any], indent: int | None) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = written(json.dumps(values, indent=indent), place)
        assert [(key, value) for key, value, _ in stream_json_items(path)] == list(enumerate(values))


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=6))
def test_items_of_an_object_are_what_json_load_gives(values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = written(json.dumps(values, ensure_ascii=False), place)
        assert {str(key): value for key, value, _ in stream_json_items(path)} == values


def test_items_longer_than_the_window_are_read_whole(tmp_path: Path) -> None:
    values = ["x" * 300_000, 7, "y" * 70_000, [1] * 50_000]
    path = written(json.dumps(values), str(tmp_path))
    assert [value for _, value, _ in stream_json_items(path)] == values


def test_items_know_their_lines(tmp_path: Path) -> None:
    path = written('[\n {"a": 1},\n\n {"a": 2}\n]', str(tmp_path))
    assert [line for _, _, line in stream_json_items(path)] == [2, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: invalid JSON: expected '[' or '{' at the start, found an empty file"),
        ("7", ":1: invalid JSON: expected '[' or '{' at the start, found '7'"),
        ("[1, 2", ":1: invalid JSON: expected ',', found the end of the file"),
        ("[1\n\n2]", ":3: invalid JSON: expected ',', found '2'"),
        ('[{"a": }]', ":1: invalid JSON: Expecting value"),
        ("{1: 2}", ":1: invalid JSON: expected a name in quotes, found '1'"),
        ('{"a" 2}', ":1: invalid JSON: expected ':', found '2'"),
        ("[1] x", ":1: invalid JSON: expected the end of the file, found 'x'"),
        ("[NaN]", ":1: invalid JSON: "),
        ('["\\ud800"]', ":1: invalid JSON: "),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_json_is_named_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    path = written(content, str(tmp_path))
    with pytest.raises(FormatError) as error:
        list(stream_json_items(path))
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


def outcome(reader: Callable[[Path], Iterable[object]], path: Path) -> str:
    """Whether a reader gave items or refused with a message that names the file; anything else is raised."""
    try:
        list(reader(path))
    except FormatError as error:
        return "error" if str(path) in str(error) else str(error)
    return "items"


@given(st.binary(max_size=80))
def test_any_bytes_give_items_or_a_format_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = written(content, place)
        for reader in (stream_json_items, iter_nonblank_lines, iter_csv_rows):
            assert outcome(reader, path) in ("items", "error")


def test_a_missing_file_a_folder_and_other_encodings_are_said(tmp_path: Path) -> None:
    written("{}", str(tmp_path), "texts.json")
    with pytest.raises(FormatError, match=r"no such file; did you mean 'texts.json'\?"):
        open_text(tmp_path / "text.json")
    with pytest.raises(FormatError, match="expected a file, found a folder"):
        open_text(tmp_path)
    with pytest.raises(FormatError, match=r"latin\.txt:1: byte 0xe9 is not UTF-8"):
        read_text(written("caf\xe9".encode("latin-1"), str(tmp_path), "latin.txt"))


def test_a_byte_order_mark_is_dropped_and_line_ends_are_kept(tmp_path: Path) -> None:
    assert read_text(written("\ufeffa\r\nb\rc\n".encode(), str(tmp_path))) == "a\r\nb\rc\n"


CELLS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_rows_are_what_was_written(rows: list[tuple[str, str]]) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    with tempfile.TemporaryDirectory() as place:
        path = written(buffer.getvalue(), place, "t.csv")
        assert [tuple(row.values()) for _, row in iter_csv_rows(path)] == rows


def test_a_row_with_too_many_fields_and_a_column_named_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError,
        match=":3: this row has more cells than the header, which has 2; put quotes around cells that contain ','",
    ):
        list(iter_csv_rows(written("a,b\n1,2\n1,2,3\n", str(tmp_path))))
    with pytest.raises(FormatError, match=r":1: column 'a' occurs more than once"):
        list(iter_csv_rows(written("a,a\n1,2\n", str(tmp_path))))


def test_a_field_of_ten_million_characters_is_read(tmp_path: Path) -> None:
    path = written("a\n" + "x" * 10_000_000 + "\n", str(tmp_path))
    assert [len(row["a"]) for _, row in iter_csv_rows(path)] == [10_000_000]


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("labl", str, "f:1: 'labl' is missing; did you mean 'label'?"),
        ("start", str, "f:1: 'start': expected text, found an integer 3"),
        ("flag", int, "f:1: 'flag': expected an integer, found true or false True"),
        ("label", (int, float), "f:1: 'label': expected an integer or a number, found text 'red'"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(name: str, kind: Any, message: str) -> None:
    fields = JsonObject({"label": "red", "start": 3, "flag": True}, "f:1")
    with pytest.raises(FormatError) as error:
        fields.get(name, kind)
    assert str(error.value) == message


def test_parse_json_names_where() -> None:
    with pytest.raises(FormatError, match=r"^f:3: invalid JSON: "):
        parse_json("{", "f:3")


@given(st.lists(st.text(min_size=1, max_size=6), max_size=6))
def test_an_implied_protocol_knows_every_label_by_its_own_spelling(labels: list[str]) -> None:
    labels = [label for label in labels if label.strip() and "\0" not in label and label.isprintable()]
    protocol = build_implied_protocol("mine", labels)
    names = {label: protocol.resolve_label(label).name for label in labels}
    assert all(protocol.has_label(name) for name in names.values())
