"""Results: tables with notes and a signature that a notebook can show, draw, convert and search."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from finecomb.core.errors import ParameterError
from finecomb.core.estimate import Estimate, Finding, Signature

if TYPE_CHECKING:
    import pandas

    from finecomb.core.protocol import Protocol

_REPR_ROWS = 8
"""Rows that `repr` prints: with title, header, count of the rest, note and signature it has fewer than 15 lines."""
_REPR_WIDTH = 110
_SHORT_CELL = 24


class ResultRow(dict[str, Any]):
    """One row of a result; its columns are attributes too: `row.value` is `row["value"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the row has no column {name!r}; it has {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Result:
    """What every result offers: rows, notes, a signature, conversions, a search and a drawing."""

    title: str = ""
    """What the table shows, e.g. `Agreement`."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers should know, e.g. which annotators were left out."""
    signature: str = ""
    """How the numbers were made, as far as all rows have it in common."""

    def rows(self) -> list[ResultRow]:
        """Return the rows of the table, with every digit."""
        raise NotImplementedError

    def findings(self) -> list[Finding]:
        """Return the estimates of the result, which is what `plot` draws."""
        return [_row_finding(row) for row in self.rows() if isinstance(row.get("value"), float)]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per row."""
        return [dict(row) for row in self.rows()]

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars DataFrame; undefined numbers are NaN, and the column `why` gives the reason."""
        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, numbers with their intervals."""
        return str(_renderer().table_text(self, "markdown", digits))

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), numbers with their intervals."""
        return str(_renderer().table_text(self, "latex", digits))

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw values with their intervals; with `path` (.svg, .png or .pdf) write the figure there.

        Returns an object that a notebook shows as a picture.
        """
        return _renderer().plot_result(self, path)

    def find(self, **columns: object) -> ResultRow:
        """Return the only row whose columns have these values.

        Raises
        ------
        ParameterError
            If no row or more than one row has them.
        """
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        for name in columns:
            if rows and name not in names:
                raise ParameterError(f"no column is called {name!r}", parameter=name, choices=names)
        matches = [row for row in rows if all(row.get(name) == value for name, value in columns.items())]
        if len(matches) == 1:
            return matches[0]
        wanted = ", ".join(f"{name}={value!r}" for name, value in columns.items())
        if matches:
            others = [name for name in names if len({str(row.get(name)) for row in matches}) > 1]
            others = [name for name in others if name not in ("value", "low", "high", "why", "signature")]
            raise ParameterError(f"{len(matches)} rows have {wanted}; also give {' or '.join(others[:3])}")
        for name in columns:
            choices = list(dict.fromkeys(str(row.get(name)) for row in rows))
            if str(columns[name]) not in choices:
                raise ParameterError(f"no row has {wanted}", parameter=name, choices=choices)
        raise ParameterError(f"no row has {wanted}")

    def __repr__(self) -> str:
        """At most 15 lines: title, header, the first rows, how many more, and notes and signature in one line each."""
        lines = [self.title or type(self).__name__, *_text_lines(self.rows())]
        if self.notes:
            more = f" (and {len(self.notes) - 1} more in .notes)" if len(self.notes) > 1 else ""
            lines.append(_cut(f"note: {self.notes[0]}{more}", _REPR_WIDTH))
        if self.signature:
            lines.append(_cut(self.signature, _REPR_WIDTH))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(_renderer().result_html(self))


class Table(Result, Sequence[ResultRow]):
    """A result made of plain rows."""

    def __init__(
        self,
        rows: Iterable[Mapping[str, object]] = (),
        *,
        title: str = "",
        notes: Iterable[str] = (),
        signature: str = "",
    ) -> None:
        self._rows = [ResultRow(row) for row in rows]
        self.title, self.notes, self.signature = title, tuple(notes), signature

    def rows(self) -> list[ResultRow]:
        """Return the rows of the table."""
        return list(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Findings(Result, list[Finding]):
    """A result whose rows are estimates: a list of `Finding` that is also a table."""

    def __init__(
        self,
        findings: Iterable[Finding] = (),
        notes: Iterable[str] = (),
        *,
        title: str = "Estimates",
        protocol: Protocol | None = None,
    ) -> None:
        super().__init__(findings)
        self.notes, self.title, self.protocol = tuple(notes), title, protocol

    def rows(self) -> list[ResultRow]:
        """Return one row per finding: its columns, then value, low, high, why, and the signature."""
        return [
            ResultRow(
                finding.columns,
                value=finding.estimate.value,
                low=finding.estimate.low,
                high=finding.estimate.high,
                why=finding.estimate.why,
                signature=str(finding.estimate.signature),
            )
            for finding in self
        ]

    def findings(self) -> list[Finding]:
        """Return the findings as a plain list."""
        return list(self)

    @property
    def signature(self) -> str:  # type: ignore[override]
        """What the signatures of all rows have in common."""
        return shared_signature([finding.estimate for finding in self])

    def __repr__(self) -> str:
        return Result.__repr__(self)


def _row_finding(row: ResultRow) -> Finding:
    numbers = [row.get(name) for name in ("value", "low", "high")]
    value, low, high = (number if isinstance(number, float) else math.nan for number in numbers)
    columns = {name: cell for name, cell in row.items() if name not in ("value", "low", "high", "why", "signature")}
    return Finding(columns, Estimate(value, low, high, Signature(()), str(row.get("why") or "undefined")))


def shared_signature(estimates: Sequence[Estimate]) -> str:
    """Return the fields that the signatures of all estimates share, as `name:value|name:value`."""
    fields = [dict(estimate.signature.fields) for estimate in estimates]
    first = fields[0] if fields else {}
    shared = {name: value for name, value in first.items() if all(other.get(name) == value for other in fields)}
    return str(Signature(tuple(shared.items())))


def _renderer() -> Any:
    """Return the module that draws results: it lives in `reporting`, above this layer, and is loaded on first use."""
    return importlib.import_module("finecomb.reporting.result_rendering")


def _text_lines(rows: Sequence[ResultRow]) -> Iterator[str]:
    if not rows:
        yield "(no rows)"
        return
    head = rows[:_REPR_ROWS]
    names = [name for name in head[0] if name != "signature" and any(row.get(name) not in ("", None) for row in head)]
    cells = [[_cell(row.get(name)) for name in names] for row in head]
    widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(names)]
    while sum(widths) + 2 * len(widths) > _REPR_WIDTH and len(widths) > 1:  # the last columns are the least needed
        widths.pop()
    yield "  ".join(name.ljust(width) for name, width in zip(names, widths, strict=False)).rstrip()
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
    if len(rows) > _REPR_ROWS:
        yield f"... and {len(rows) - _REPR_ROWS:,} more rows"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return _cut("" if value is None else " ".join(str(value).split()), _SHORT_CELL)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
