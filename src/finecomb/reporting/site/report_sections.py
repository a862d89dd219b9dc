"""Tables that other commands have written (critics, stress, calibrate, estimate, score), shown in a report."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from finecomb.core.errors import FinecombError, param
from finecomb.core.estimate import Estimate, Signature
from finecomb.reporting.figures.figure_model import DotFigure, DotRow, ReportFigure, TableFigure, TableRow, build_axis

_MAX_DOT_ROWS = 40  # rows that are dots; a longer table is a table
_ESTIMATE_COLUMNS = ("value", "low", "high")


@dataclass(frozen=True, slots=True)
class ExternalTable:
    """A file as it was given: its name, its text and its rows."""

    name: str
    """Of the file, e.g. `stress.json`."""
    text: str
    rows: tuple[TableRow, ...]
    signature: str = ""

    @property
    def title(self) -> str:
        """What the section is called."""
        words = re.sub(r"[-_]+", " ", self.name.rpartition(".")[0]).strip()
        return words[:1].upper() + words[1:]

    @property
    def id(self) -> str:
        """The name of its files."""
        return "with-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def parse_external_table(name: str, text: str) -> ExternalTable:
    """The rows of a file: JSON as `--json` prints it, or CSV as `--table-out` writes it."""
    try:
        rows, signature = (
            _parse_json_rows(json.loads(text)) if name.endswith(".json") else (list(_parse_csv_rows(text)), "")
        )
    except (ValueError, csv.Error) as error:
        raise FinecombError(
            f"{param('with_', name)}: cannot be read ({error}); "
            f"expected what {param('json')} or {param('table_out')} wrote"
        ) from None
    if not rows:
        raise FinecombError(
            f"{param('with_', name)}: has no rows; expected what {param('json')} printed or {param('table_out')} wrote"
        )
    return ExternalTable(name, text, tuple(rows), signature)


def _parse_json_rows(content: object) -> tuple[list[TableRow], str]:
    rows = content.get("table") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("no list of rows")
    signature = str(content.get("signature") or "") if isinstance(content, dict) else ""
    plain_rows = [
        {str(name): _plain_value(value) for name, value in row.items() if name != "signature"} for row in rows
    ]
    return list(plain_rows), signature


def _plain_value(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def _parse_csv_rows(text: str) -> Iterator[TableRow]:
    for row in csv.DictReader(io.StringIO(text), strict=True):
        if None in row or None in row.values():
            raise ValueError("a row has more or fewer cells than the head")
        yield {name: _parse_cell(cell) for name, cell in row.items()}


def _parse_cell(cell: str) -> object:
    try:
        number = float(cell)
    except ValueError:
        return cell or None
    return number if math.isfinite(number) else None


def build_external_figures(tables: Sequence[ExternalTable]) -> list[ReportFigure]:
    """A figure for each table: dots with intervals where its rows are estimates, else the table itself."""
    return [_build_external_figure(table) for table in tables]


def _build_external_figure(table: ExternalTable) -> ReportFigure:
    caption = f"From {table.name}, as another command wrote it; the file is in with/."
    signature = table.signature or f"file:{table.name}"
    rows = [_build_dot_row(row) for row in table.rows]
    dots = [row for row in rows if row is not None]
    if len(dots) < len(rows) or not dots or len(dots) > _MAX_DOT_ROWS:
        return TableFigure(table.id, table.title, caption, table.rows, signature)
    estimates = [row.estimate for row in dots]
    return DotFigure(
        table.id, table.title, caption, table.rows, signature, rows=tuple(dots), axis=build_axis(estimates),
        empty="" if any(math.isfinite(one.value) for one in estimates) else "Every number in it is undefined.",
    )  # fmt: skip


def _build_dot_row(row: Mapping[str, object]) -> DotRow | None:
    """A row with `value` as a dot, named by its words; None where it is no estimate."""
    if "value" not in row:
        return None
    value, low, high = (_finite_or_nan(row.get(name)) for name in _ESTIMATE_COLUMNS)
    words = [
        str(cell)
        for name, cell in row.items()
        if isinstance(cell, str) and cell and name not in (*_ESTIMATE_COLUMNS, "why")
    ]
    why = str(row.get("why") or "undefined")
    estimate = Estimate(value, low, high, Signature(()), why if math.isnan(value) else "")
    return DotRow(", ".join(words) or "all", estimate)


def _finite_or_nan(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan
