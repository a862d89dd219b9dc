"""Tables of other commands (criticize, stress, calibrate, estimate, score) as sections of a report."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from finecomb.core.errors import FinecombError, param
from finecomb.core.guarded_json import load_json
from finecomb.core.results import Estimate, Signature
from finecomb.reporting.figures.figure_model import BaseFigure, DotFigure, DotRow, TableFigure, TableRow, build_axis

_MAX_DOT_ROWS = 40  # longer tables are shown as tables
_ESTIMATE_COLUMNS = ("value", "low", "high")


@dataclass(frozen=True, slots=True)
class ExternalTable:
    """File with a table: its name, text and rows."""

    name: str
    """File name, e.g. `stress.json`."""
    text: str
    rows: tuple[TableRow, ...]
    signature: str = ""

    @property
    def title(self) -> str:
        """Section title."""
        words = re.sub(r"[-_]+", " ", self.name.rpartition(".")[0]).strip()
        return words[:1].upper() + words[1:]

    @property
    def id(self) -> str:
        """Stem of the files of the section."""
        return "with-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def parse_external_table(name: str, text: str) -> ExternalTable:
    """Parse the rows of a JSON file printed with `--json` or a CSV file written with `--table-out`."""
    try:
        rows, signature = (
            _parse_json_rows(load_json(text)) if name.endswith(".json") else (list(_parse_csv_rows(text)), "")
        )
    except (ValueError, csv.Error) as error:
        raise FinecombError(
            f"{param('with_', name)}: cannot be read ({error}); "
            f"expected a file written with {param('json')} or {param('table_out')}"
        ) from None
    if not rows:
        raise FinecombError(f"{param('with_', name)}: the table has no rows")
    return ExternalTable(name, text, tuple(rows), signature)


def _parse_json_rows(content: object) -> tuple[list[TableRow], str]:
    rows = content.get("table") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("the table is not a list of rows")
    signature = str(content.get("signature") or "") if isinstance(content, dict) else ""
    return [
        {
            str(name): (
                value
                if value is None or isinstance(value, str | int | float)
                else json.dumps(value, ensure_ascii=False)
            )
            for name, value in row.items()
            if name != "signature"
        }
        for row in rows
    ], signature


def _parse_csv_rows(text: str) -> Iterator[TableRow]:
    reader = csv.reader(io.StringIO(text), strict=True)
    header = next(reader, [])
    for cells in filter(None, reader):  # blank lines are skipped, as csv.DictReader does
        if len(cells) != len(header):
            raise ValueError(f"line {reader.line_num} has {len(cells)} cells; the header has {len(header)}")
        yield {name: _parse_cell(cell) for name, cell in zip(header, cells, strict=True)}


def _parse_cell(cell: str) -> object:
    try:
        number = float(cell)
    except ValueError:
        return cell or None
    return number if math.isfinite(number) else None


def build_external_figures(tables: Sequence[ExternalTable]) -> list[BaseFigure]:
    """Build one figure per table: dots with intervals if all rows are estimates, otherwise the table itself."""
    figures: list[BaseFigure] = []
    for table in tables:
        caption = f"Table of another command, from with/{table.name}."
        facts = (table.id, table.title, caption, table.rows, table.signature or f"file:{table.name}")
        if not 0 < len(table.rows) <= _MAX_DOT_ROWS or any("value" not in row for row in table.rows):
            figures.append(TableFigure(*facts))
            continue
        dots = tuple(map(_build_dot_row, table.rows))
        is_known = any(math.isfinite(dot.estimate.value) for dot in dots)
        axis = build_axis([dot.estimate for dot in dots])
        figures.append(DotFigure(*facts, rows=dots, axis=axis, empty="" if is_known else "All values are undefined."))
    return figures


def _build_dot_row(row: Mapping[str, object]) -> DotRow:
    """Build a dot from a row with a `value`, named by its text cells."""
    value, low, high = (
        float(cell) if isinstance(cell := row.get(name), int | float) and math.isfinite(cell) else math.nan
        for name in _ESTIMATE_COLUMNS
    )
    words = [
        str(cell)
        for name, cell in row.items()
        if isinstance(cell, str) and cell and name not in (*_ESTIMATE_COLUMNS, "why")
    ]
    why = str(row.get("why") or "undefined") if math.isnan(value) else ""
    return DotRow(", ".join(words) or "all", Estimate(value, low, high, Signature(()), why))
