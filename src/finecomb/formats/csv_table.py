"""CSV and TSV tables with one mark per row.

Cells that a spreadsheet would evaluate as formulas are written with a leading apostrophe. It is removed when a table is
read whose first columns are those that Finecomb writes.
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
from finecomb.formats.mark_table_reader import TABLE_OPTIONS, NumberedRow, read_records
from finecomb.formats.mark_table_writer import build_table
from finecomb.formats.source_files import iter_csv_rows, read_first_characters

_LEADING_COLUMNS = ("document", "text")
"""First columns of tables that Finecomb writes."""


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents, annotators and annotations from a table; the delimiter is detected from the first line."""
    first = read_first_characters(path, 1 << 16).partition("\n")[0]
    delimiter = max(",;\t", key=first.count) if first else ","

    def rows() -> Iterator[NumberedRow]:
        for number, cells in iter_csv_rows(path, delimiter):
            ours = tuple(cells)[:2] == _LEADING_COLUMNS
            yield number, {name: unescape_cell(cell) for name, cell in cells.items()} if ours else cells

    return read_records(rows, path, options)


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a table, tab-separated if the name ends in `.tsv`, otherwise comma-separated."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with build_table(items) as (columns, rows), path.open("w", encoding="utf-8", newline="") as file:
        # With CR LF line endings, the csv module quotes a lone CR inside a field, which it does not do otherwise.
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter, lineterminator="\r\n")
        writer.writerow({name: escape_cell(name) for name in columns})
        writer.writerows({name: escape_cell(cell) for name, cell in cells.items()} for cells in rows)
        sync_to_disk(file)


FORMAT = Format(
    "csv", "a CSV table", read, write, suffixes=(".csv", ".tsv"), holds=TABLE_FEATURES, options=TABLE_OPTIONS
)
