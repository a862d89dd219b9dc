"""CSV and TSV tables with one mark a row.

What a spreadsheet would run as a formula is written with an apostrophe before it, which is taken away again when a
table is read whose columns begin as ours do.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from finecomb.core.spreadsheet_cells import escape_cell, unescape_cell
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.mark_table import TABLE_FEATURES
from finecomb.formats.mark_table_records import TABLE_OPTIONS, NumberedRow, read_records
from finecomb.formats.mark_table_rows import build_table
from finecomb.formats.source_files import csv_rows, read_start

_LEADING_COLUMNS = ("document", "text")
"""How the columns of our own tables begin."""


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Documents, annotators and annotations of a table; its first line shows what separates its fields."""
    delimiter = _detect_delimiter(path)

    def rows() -> Iterator[NumberedRow]:
        for number, cells in csv_rows(path, delimiter):
            ours = tuple(cells)[:2] == _LEADING_COLUMNS
            yield number, {name: unescape_cell(cell) for name, cell in cells.items()} if ours else cells

    return read_records(rows, path, options)


def _detect_delimiter(path: Path) -> str:
    """The separator that is commonest in the first line; a comma when there is none."""
    first = read_start(path, 1 << 16).partition("\n")[0]
    return max(",;\t", key=first.count) if first else ","


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a table, with tabs between fields when the name ends in `.tsv`, else with commas."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with build_table(items) as (columns, rows), path.open("w", encoding="utf-8", newline="") as file:
        # Ending lines with CR LF makes the csv module quote a lone CR inside a field, which it would not otherwise.
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter, lineterminator="\r\n")
        writer.writerow({name: escape_cell(name) for name in columns})
        writer.writerows({name: escape_cell(cell) for name, cell in cells.items()} for cells in rows)
        sync_to_disk(file)


FORMAT = Format(
    "csv", "a CSV table", read, write, suffixes=(".csv", ".tsv"), holds=TABLE_FEATURES, options=TABLE_OPTIONS
)
