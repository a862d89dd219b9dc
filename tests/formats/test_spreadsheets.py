"""Tables for spreadsheets: nothing in them runs, and what Excel cannot hold is said, not refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.records import Document, Settings
from finecomb.core.study import Study

HOSTILE = '=HYPERLINK("http://evil.example","x")'


def study(text: str) -> Study:
    return Study.from_items([Settings(), Document(id="=d", text=text, meta={"model": "-2+3"})])


@pytest.mark.parametrize("text", [HOSTILE, "'=quoted", "- a list", "plain", "-5"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx"])
def test_formulas_come_back_as_the_text_they_are(text: str, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"table{ending}"
    fc.write(study(text), file)
    document = next(fc.read(file).iter_documents())
    assert (document.id, document.text, document.meta["model"]) == ("=d", text, "-2+3")


def test_no_cell_of_a_csv_file_is_run(tmp_path: Path) -> None:
    fc.write(study(HOSTILE), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert f"'{HOSTILE}" in cells
    assert not any(cell[:1] in tuple("=+-@\t\r") for cell in cells if cell)


def test_a_table_of_others_keeps_its_apostrophes(tmp_path: Path) -> None:
    (tmp_path / "theirs.csv").write_text("text,id\n'-tis so,a\n", encoding="utf-8")
    assert next(fc.read(tmp_path / "theirs.csv").iter_documents()).text == "'-tis so"


def test_control_characters_go_into_a_workbook_and_come_back_with_a_note(tmp_path: Path) -> None:
    text = "bell \x07 and \x1b[31m red"
    (note,) = [line for line in fc.write(study(text), tmp_path / "table.xlsx") if "control" in line]
    assert note.startswith("1 cells contain control characters")
    assert next(fc.read(tmp_path / "table.xlsx").iter_documents()).text == text


def test_a_cell_that_is_too_long_is_cut_with_a_note(tmp_path: Path) -> None:
    text = "😀" * 20_000
    (note,) = [line for line in fc.write(study(text), tmp_path / "table.xlsx") if "truncated" in line]
    assert "row 2, column 'text'" in note
    assert next(fc.read(tmp_path / "table.xlsx").iter_documents()).text == "😀" * 16_383
