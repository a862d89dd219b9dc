"""Tests of plain texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from finecomb.core.errors import FormatError
from finecomb.core.records import Document
from finecomb.formats import Options, detect_format
from finecomb.formats.plain_text import read


def test_every_line_is_a_text_also_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "generated.txt"
    path.write_bytes("The Foxes won .\r\n\r\nÇa va .\n".encode())
    assert detect_format(path).name == "text"
    assert list(read(path, Options())) == [
        Document(id="generated-1", text="The Foxes won ."),
        Document(id="generated-2", text=""),
        Document(id="generated-3", text="Ça va ."),
    ]


def test_a_folder_of_texts_has_a_text_for_each_file(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n\nsecond\n")
    assert detect_format(tmp_path).name == "text"
    assert next(iter(read(tmp_path, Options()))) == Document(id="a", text="a\n\nsecond")
    (tmp_path / "a.ann").write_text("")
    assert detect_format(tmp_path).name == "brat"


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="contains no text files"):
        list(read(tmp_path, Options()))
