"""Tables of results: for display in the terminal, and as CSV, Markdown, LaTeX or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from finecomb.core.results import Estimate, Finding

Row = Mapping[str, object]


class BestNumber(float):
    """Number that is significantly better than the numbers it is compared with; bold in a paper table."""


class BestText(str):
    """Formatted value, e.g. with its interval, that is significantly better than others; bold in a paper table."""

    __slots__ = ()


_COLUMN_GAP = 3  # terminal cells


def format_json_tables(
    rows: Iterable[Row], signature: str = "", notes: Sequence[str] = (), **more: Iterable[Row]
) -> str:
    """Format tables as JSON: `{"table": rows, "signature": ..., "notes": [...]}`, with further tables by name."""
    tables = {name: _rows_for_json(members) for name, members in more.items()}
    content = {"table": _rows_for_json(rows), **tables, "signature": signature, "notes": list(notes)}
    return json.dumps(content, ensure_ascii=False, indent=1)


def _rows_for_json(rows: Iterable[Row]) -> list[dict[str, object]]:
    return [{name: _finite_or_none(value) for name, value in row.items()} for row in rows]


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def estimate_row(estimate: Estimate, **columns: object) -> dict[str, object]:
    """Return an estimate as a row: `columns`, then `value`, `low`, `high` and `why`, and the signature last."""
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {**columns, **numbers, "why": estimate.why, "signature": str(estimate.signature)}


def finding_rows(findings: Sequence[Finding]) -> tuple[list[Row], str]:
    """Return findings as rows, and the signature they share; the signature of a row contains only what differs."""
    fields = [dict(finding.estimate.signature.fields) for finding in findings]
    shared = {
        name: value
        for name, value in (fields[0] if fields else {}).items()
        if all(f.get(name) == value for f in fields)
    }
    rows: list[Row] = []
    for finding, rest in zip(findings, fields, strict=True):
        particular = "|".join(f"{name}:{value}" for name, value in rest.items() if name not in shared)
        rows.append(estimate_row(finding.estimate, **finding.columns) | {"signature": particular})
    # identifying columns first, then values, then test results
    names = sorted(
        dict.fromkeys(name for row in rows for name in row),
        key=lambda name: _LAST_COLUMNS.index(name) if name in _LAST_COLUMNS else -1,
    )
    signature = "|".join(f"{name}:{value}" for name, value in shared.items())
    return [{name: row.get(name, "") for name in names} for row in rows], signature


_LAST_COLUMNS = (
    "value",
    "low",
    "high",
    "p",
    "p_adjusted",
    "df",
    "a_mean",
    "b_mean",
    "n",
    "texts",
    "test",
    "why",
    "signature",
)


def frame_rows(frame: pl.DataFrame) -> list[Row]:
    """Return a data frame as rows."""
    return list(frame.iter_rows(named=True))


def _visible_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns to print: all except the signature and empty columns."""
    names = list(rows[0]) if rows else []
    return [name for name in names if name != "signature" and any(row.get(name) not in ("", None) for row in rows)]


def _format_cell(value: object, digits: int) -> str:
    match value:
        case None | "":
            return "–" if value is None else ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            text = "–" if math.isnan(value) else f"{value:.{digits}f}"
            return BestText(text) if isinstance(value, BestNumber) else text
        case str():
            return value
    return str(value)


# --- file formats ------------------------------------------------------------------------------------------------


TableFormat = Literal["table", "csv", "markdown", "latex", "json"]
FORMAT_BY_SUFFIX: Mapping[str, TableFormat] = {".csv": "csv", ".md": "markdown", ".tex": "latex", ".json": "json"}
"""File format by suffix."""


def format_rows(rows: Sequence[Row], digits: int = 3) -> list[dict[str, str]]:
    """Format rows for display: each value with its interval in one cell, empty columns omitted."""
    with_intervals = []
    for row in rows:
        value, low, high = (row.get(name) for name in ("value", "low", "high"))
        if isinstance(value, float) and "low" in row:
            rest = {name: cell for name, cell in row.items() if name not in ("low", "high")}
            text = format_interval(value, low, high, digits)
            row = {**rest, "value": BestText(text) if isinstance(value, BestNumber) else text}
        with_intervals.append(row)
    names = [
        name
        for name in _visible_columns(with_intervals)
        if any(_format_cell(row[name], digits) for row in with_intervals)
    ]
    return [{name: _format_cell(row[name], digits) for name in names} for row in with_intervals]


def format_interval(value: float, low: object, high: object, digits: int = 3) -> str:
    """Format a value with its interval, if it has one.

    >>> format_interval(0.5, 0.25, 0.75, 2), format_interval(0.5, None, None), format_interval(math.nan, None, None)
    ('0.50 [0.25, 0.75]', '0.500', '–')
    """
    if math.isnan(value) or not isinstance(low, float) or not isinstance(high, float) or math.isnan(low):
        return _format_cell(value, digits)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def format_table(rows: Sequence[Row], format: TableFormat, title: str = "", digits: int = 3) -> str:
    """Format a table as CSV (all columns, unrounded), Markdown, LaTeX (booktabs) or JSON."""
    if format == "json":
        return format_json_tables(rows)
    if format == "csv":
        file = io.StringIO()
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(
            [["" if _finite_or_none(row.get(name)) is None else row.get(name) for name in names] for row in rows]
        )
        return file.getvalue().rstrip("\n")
    cells = format_rows(rows, digits)
    names = list(cells[0]) if cells else []
    numbers = {name for name in names if any(isinstance(row.get(name), int | float) for row in rows)}
    if format == "markdown":
        rules = ["---:" if name in numbers else "---" for name in names]
        escaped = [[f"**{text}**" if isinstance(text, BestText) else text for text in row.values()] for row in cells]
        body = [[text.replace("|", "\\|") for text in row] for row in escaped]
        lines = [f"| {' | '.join(line)} |" for line in (names, rules, *body)]
        return "\n".join([f"**{title}**", "", *lines] if title else lines)
    columns = "".join("r" if name in numbers else "l" for name in names)
    lines = [" & ".join(map(_escape_latex, row)) + r" \\" for row in (names, *(row.values() for row in cells))]
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    return "\n".join([*([f"% {title}"] if title else []), *table, r"\end{tabular}"])


_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
}


def _escape_latex(text: str) -> str:
    plain = "".join(_LATEX_ESCAPES.get(sign, sign) for sign in text).replace("–", "--")
    return rf"\textbf{{{plain}}}" if isinstance(text, BestText) else plain


def print_rows(
    console: Console, rows: Sequence[Row], title: str = "", empty: str = "No rows.", digits: int = 3
) -> None:
    """Print a table, or `empty` if it has no rows; a table wider than the console is split into blocks of columns."""
    if not rows:
        console.print(empty, style="dim")
    visible = _visible_columns(rows)
    rows = [{name: row.get(name) for name in visible} for row in rows]
    for block in _split_columns(rows, console.width, digits):
        # Build a Rich table: numbers right-aligned, nulls as dashes, empty columns omitted
        grid = Table(
            title=title or None, title_justify="left", title_style="bold", box=None, padding=(0, _COLUMN_GAP, 0, 0)
        )
        names = _visible_columns(block)
        for name in names:
            number = any(isinstance(row[name], int | float) for row in block)
            grid.add_column(name, justify="right" if number else "left", header_style="dim", overflow="fold")
        for row in block:
            grid.add_row(*(_format_cell(row[name], digits) for name in names))
        console.print(grid)
        title = ""


def _split_columns(rows: Sequence[Row], width: int, digits: int) -> Iterator[list[Row]]:
    """Yield the rows in blocks of columns that fit `width`; identifying columns are repeated in every block.

    Text columns can wrap, so only their longest word counts.
    """
    names = list(rows[0] if rows else {})
    need = {
        name: max(_min_folded_width(name), *(_min_folded_width(_format_cell(row[name], digits)) for row in rows))
        + _COLUMN_GAP
        for name in names
    }
    keys = names[: names.index("value")] if "value" in names else names[:1]
    room = max(width, sum(need[name] for name in keys) + max((need[name] for name in names), default=0))
    while names:
        used, taken = sum(need[name] for name in keys), list(keys)
        for name in names[len(keys) :]:
            if used + need[name] > room:
                break
            used += need[name]
            taken.append(name)
        yield [{name: row[name] for name in taken} for row in rows]
        rest = names[len(taken) :]
        names = [*keys, *rest] if rest else []


def _min_folded_width(words: str) -> int:
    """Return the minimum width of a text wrapped at spaces, in terminal cells."""
    return max((cell_len(word) for word in words.split()), default=1)
