"""Results as tables: for people in the terminal, for programs as one JSON object."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from finecomb.core.estimate import Estimate, Finding

Row = Mapping[str, object]


class BestNumber(float):
    """A number that is better than all others it stands beside, beyond chance: bold in a paper's table."""


class BestText(str):
    """The same for a number that is text already, e.g. with its interval."""

    __slots__ = ()


_COLUMN_GAP = 3  # cells between columns


def as_json(rows: Iterable[Row], signature: str = "", notes: Sequence[str] = (), **more: Iterable[Row]) -> str:
    """`{"table": rows, "signature": ..., "notes": [...]}` and more tables by name; what is undefined is null."""
    tables = {name: _json_rows(members) for name, members in more.items()}
    whole = {"table": _json_rows(rows), **tables, "signature": signature, "notes": list(notes)}
    return json.dumps(whole, ensure_ascii=False, indent=1)


def _json_rows(rows: Iterable[Row]) -> list[dict[str, object]]:
    return [{name: _finite_or_none(value) for name, value in row.items()} for row in rows]


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def estimate_row(estimate: Estimate, **columns: object) -> dict[str, object]:
    """The columns `value`, `low`, `high` and `why` of an estimate, after `columns`, and its signature last."""
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {**columns, **numbers, "why": estimate.why, "signature": str(estimate.signature)}


def finding_rows(findings: Sequence[Finding]) -> tuple[list[Row], str]:
    """Findings as rows, and the signature that all of them share; a row's own adds what is particular to it."""
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
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=_column_rank)
    return [{name: row.get(name, "") for name in names} for row in rows], "|".join(
        f"{n}:{v}" for n, v in shared.items()
    )


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


def _column_rank(name: str) -> int:
    """What a row is about comes first, then its number, then how that was tested."""
    return _LAST_COLUMNS.index(name) + 1 if name in _LAST_COLUMNS else 0


def frame_rows(frame: pl.DataFrame) -> list[Row]:
    """A frame as rows."""
    return list(frame.iter_rows(named=True))


def build_table(rows: Sequence[Row], title: str = "", digits: int = 3) -> Table:
    """Rows as a quiet table: numbers to the right, nulls as a dash, columns that are empty throughout left out."""
    grid = Table(
        title=title or None, title_justify="left", title_style="bold", box=None, padding=(0, _COLUMN_GAP, 0, 0)
    )
    names = _visible_columns(rows)
    for name in names:
        number = any(isinstance(row[name], int | float) for row in rows)
        grid.add_column(name, justify="right" if number else "left", header_style="dim", overflow="fold")
    for row in rows:
        grid.add_row(*(_format_cell(row[name], digits) for name in names))
    return grid


def _visible_columns(rows: Sequence[Row]) -> list[str]:
    """Columns worth printing: not the signature, and none that is empty throughout."""
    names = list(rows[0]) if rows else []
    return [name for name in names if name != "signature" and any(row[name] not in ("", None) for row in rows)]


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


# --- other formats -----------------------------------------------------------------------------------------------


TableFormat = Literal["table", "csv", "markdown", "latex", "json"]
FORMAT_BY_SUFFIX: Mapping[str, TableFormat] = {".csv": "csv", ".md": "markdown", ".tex": "latex", ".json": "json"}
"""The format of a file by its ending."""


def format_rows(rows: Sequence[Row], digits: int = 3) -> list[dict[str, str]]:
    """Rows as people read them: a number with its interval in one cell, and no column that is empty throughout."""
    with_intervals = [_merge_interval(row, digits) for row in rows]
    names = [
        name
        for name in _visible_columns(with_intervals)
        if any(_format_cell(row[name], digits) for row in with_intervals)
    ]
    return [{name: _format_cell(row[name], digits) for name in names} for row in with_intervals]


def _merge_interval(row: Row, digits: int) -> Row:
    value, low, high = (row.get(name) for name in ("value", "low", "high"))
    if not isinstance(value, float) or "low" not in row:
        return row
    rest = {name: cell for name, cell in row.items() if name not in ("low", "high")}
    text = format_interval(value, low, high, digits)
    return {**rest, "value": BestText(text) if isinstance(value, BestNumber) else text}


def format_interval(value: float, low: object, high: object, digits: int = 3) -> str:
    """A number with its interval, or alone where it has none.

    >>> format_interval(0.5, 0.25, 0.75, 2), format_interval(0.5, None, None), format_interval(math.nan, None, None)
    ('0.50 [0.25, 0.75]', '0.500', '–')
    """
    if math.isnan(value) or not isinstance(low, float) or not isinstance(high, float) or math.isnan(low):
        return _format_cell(value, digits)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def format_table(rows: Sequence[Row], format: TableFormat, title: str = "", digits: int = 3) -> str:
    """A table as CSV (all columns, all digits), Markdown, LaTeX (booktabs) or JSON."""
    if format == "json":
        return as_json(rows)
    if format == "csv":
        return _csv(rows)
    cells = format_rows(rows, digits)
    numbers = {
        name for name in (cells[0] if cells else {}) if any(isinstance(row.get(name), int | float) for row in rows)
    }
    return (_markdown if format == "markdown" else _latex)(cells, numbers, title)


def _csv(rows: Sequence[Row]) -> str:
    file = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(
        [["" if _finite_or_none(row.get(name)) is None else row.get(name) for name in names] for row in rows]
    )
    return file.getvalue().rstrip("\n")


def _markdown(cells: Sequence[Mapping[str, str]], numbers: Collection[str], title: str) -> str:
    names = list(cells[0]) if cells else []
    rules = ["---:" if name in numbers else "---" for name in names]
    lines = [names, rules, *([_escape_markdown(text) for text in row.values()] for row in cells)]
    return "\n".join([*([f"**{title}**", ""] if title else []), *(f"| {' | '.join(line)} |" for line in lines)])


def _escape_markdown(text: str) -> str:
    plain = text.replace("|", "\\|")
    return f"**{plain}**" if isinstance(text, BestText) else plain


_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
}


def _latex(cells: Sequence[Mapping[str, str]], numbers: Collection[str], title: str) -> str:
    names = list(cells[0]) if cells else []
    columns = "".join("r" if name in numbers else "l" for name in names)
    lines = [" & ".join(map(_escape_latex, row)) + r" \\" for row in (names, *(row.values() for row in cells))]
    head = [f"% {title}"] if title else []
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    return "\n".join([*head, *body, r"\end{tabular}"])


def _escape_latex(text: str) -> str:
    plain = "".join(_LATEX_ESCAPES.get(sign, sign) for sign in text).replace("–", "--")
    return rf"\textbf{{{plain}}}" if isinstance(text, BestText) else plain


def print_rows(
    console: Console, rows: Sequence[Row], title: str = "", empty: str = "Nothing to show.", digits: int = 3
) -> None:
    """Print a table, or the words for an empty one; a table too wide comes in blocks of columns that fit."""
    if not rows:
        console.print(empty, style="dim")
    cells = _visible_columns(rows)
    rows = [{name: row[name] for name in cells} for row in rows]
    for block in _split_columns(rows, console.width, digits):
        console.print(build_table(block, title, digits))
        title = ""


def _split_columns(rows: Sequence[Row], width: int, digits: int) -> Iterator[list[Row]]:
    """The rows with only so many columns at a time as fit `width`; what a row is about leads every block.

    Columns of words may be folded, so only what cannot be folded counts: the longest word.
    """
    names = list(rows[0] if rows else {})
    need = {
        name: max(_min_width(name), *(_min_width(_format_cell(row[name], digits)) for row in rows)) + _COLUMN_GAP
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


def _min_width(words: str) -> int:
    """Cells that a text needs when it is folded at spaces."""
    return max((cell_len(word) for word in words.split()), default=1)
