"""Estimates with confidence intervals and signatures, and results: tables that can be shown, plotted and converted."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from finecomb.core.errors import ParameterError
from finecomb.version import signature_version

if TYPE_CHECKING:
    import pandas

    from finecomb.core.protocol import Protocol

_MAX_REPR_ROWS = 8
"""Maximum rows that `repr` prints; with title, header, row count, note and signature it stays below 15 lines."""
_MAX_REPR_WIDTH = 110
_MAX_CELL_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Signature:
    """Settings needed to reproduce a number, as `name:value` pairs in a fixed order, ending with the version."""

    fields: tuple[tuple[str, str], ...]

    @classmethod
    def from_fields(cls, **fields: object) -> Signature:
        """Build a signature from keyword arguments in their order; None is omitted, and the version is appended.

        >>> print(Signature.from_fields(statistic="alpha", unit="token", seed=0))  # doctest: +ELLIPSIS
        statistic:alpha|unit:token|seed:0|version:...
        """
        named = [(name, str(value)) for name, value in fields.items() if value is not None]
        return cls((*named, ("version", signature_version())))

    def insert(self, **fields: object) -> Signature:
        """Return the signature with more fields before the version; None is omitted.

        >>> print(Signature((("statistic", "alpha"), ("version", "1"))).insert(interval="hall"))
        statistic:alpha|interval:hall|version:1
        """
        more = tuple((name, str(value)) for name, value in fields.items() if value is not None)
        end = len(self.fields) - (bool(self.fields) and self.fields[-1][0] == "version")
        return Signature((*self.fields[:end], *more, *self.fields[end:])) if more else self

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]

    def __str__(self) -> str:
        return "|".join(f"{name}:{value}" for name, value in self.fields)


def shared_signature(signatures: Iterable[Signature]) -> Signature:
    """Return the fields that have the same value in all signatures, in the order of the first signature.

    >>> first, second = (Signature((("statistic", "alpha"), ("label", name))) for name in "ab")
    >>> print(shared_signature([first, second]))
    statistic:alpha
    """
    first, *others = [signature.fields for signature in signatures] or [()]
    return Signature(tuple(field for field in first if all(field in fields for fields in others)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its confidence interval. Undefined values are NaN, with the reason in `why`."""

    value: float
    low: float
    high: float
    signature: Signature
    why: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.value) and not self.why:
            raise ValueError("an undefined estimate needs a reason in `why`")

    def __str__(self) -> str:
        return f"{self.short()}  {self.signature}"

    def short(self, digits: int = 3) -> str:
        """Return the value with its interval, e.g. `0.412 [0.380, 0.450]`, or the reason why it is undefined."""
        if math.isnan(self.value):
            return self.why
        if math.isnan(self.low):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of a result: identifying columns and an estimate."""

    columns: Mapping[str, object]
    """Identifying columns, e.g. `{"measure": "coverage", "label": "redundant", "model": "gpt2"}`."""
    estimate: Estimate


class ResultRow(dict[str, Any]):
    """One row of a result, with its columns also as attributes: `row.value` is `row["value"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the row has no column {name!r}; it has {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Result:
    """Base class of results: rows, notes, a signature, conversions, search and plotting."""

    title: str = ""
    """Title of the table, e.g. `Agreement`."""
    notes: tuple[str, ...] = ()
    """Notes on the numbers, e.g. which annotators were omitted."""
    signature: str = ""
    """Signature fields that all rows share."""

    def rows(self) -> list[ResultRow]:
        """Return the rows of the table with full precision."""
        raise NotImplementedError

    def findings(self) -> list[Finding]:
        """Return the estimates of the result, which is what `plot` draws."""
        findings: list[Finding] = []
        for row in self.rows():
            if isinstance(row.get("value"), float):
                numbers = [row.get(name) for name in ("value", "low", "high")]
                value, low, high = (number if isinstance(number, float) else math.nan for number in numbers)
                not_columns = ("value", "low", "high", "why", "signature")
                columns = {name: cell for name, cell in row.items() if name not in not_columns}
                why = str(row.get("why") or "undefined")
                findings.append(Finding(columns, Estimate(value, low, high, Signature(()), why)))
        return findings

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per row."""
        return [dict(row) for row in self.rows()]

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars DataFrame; undefined numbers are NaN, and the column `why` gives the reason."""
        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame; requires pandas."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, with confidence intervals."""
        return str(_import_renderer().table_text(self, "markdown", digits))

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), with confidence intervals."""
        return str(_import_renderer().table_text(self, "latex", digits))

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Plot values with their confidence intervals; with `path` (.svg, .png or .pdf), write the figure to a file.

        `options` are those of the drawing: `width`, `font_size` and `theme`. Returns a figure that a notebook displays,
        with `save(path)`, `to_svg()` and `to_altair()`.
        """
        return _import_renderer().plot_result(self, path, **options)

    def find(self, **columns: object) -> ResultRow:
        """Return the only row whose columns have these values.

        Raises
        ------
        ParameterError
            If no row matches, or more than one.
        """
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        for name in columns:
            if rows and name not in names:
                raise ParameterError(f"unknown column {name!r}", parameter=name, choices=names)
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
        """Return at most 15 lines: title, header, first rows, row count, and one line each for notes and signature."""
        lines = [self.title or type(self).__name__, *_format_table_lines(self.rows())]
        if self.notes:
            more = f" (and {len(self.notes) - 1} more in .notes)" if len(self.notes) > 1 else ""
            lines.append(_truncate(f"note: {self.notes[0]}{more}", _MAX_REPR_WIDTH))
        if self.signature:
            lines.append(_truncate(self.signature, _MAX_REPR_WIDTH))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(_import_renderer().result_html(self))


class Table(Result, Sequence[ResultRow]):
    """A result with plain rows."""

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
        """Signature fields that all rows share."""
        return str(shared_signature(finding.estimate.signature for finding in self))

    def __repr__(self) -> str:
        return Result.__repr__(self)


def _import_renderer() -> Any:
    """Import the module that renders results; it is in the higher layer `reporting`, so it is imported on first use."""
    return importlib.import_module("finecomb.reporting.result_rendering")


def _format_table_lines(rows: Sequence[ResultRow]) -> Iterator[str]:
    if not rows:
        yield "(no rows)"
        return
    head = rows[:_MAX_REPR_ROWS]
    names = [name for name in head[0] if name != "signature" and any(row.get(name) not in ("", None) for row in head)]
    cells = [[_format_cell(row.get(name)) for name in names] for row in head]
    widths = [max(len(name), *(len(row[index]) for row in cells)) for index, name in enumerate(names)]
    while sum(widths) + 2 * len(widths) > _MAX_REPR_WIDTH and len(widths) > 1:  # the last columns matter least
        widths.pop()
    yield "  ".join(name.ljust(width) for name, width in zip(names, widths, strict=False)).rstrip()
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
    if len(rows) > _MAX_REPR_ROWS:
        yield f"... and {len(rows) - _MAX_REPR_ROWS:,} more rows"


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return _truncate("" if value is None else " ".join(str(value).split()), _MAX_CELL_WIDTH)


def _truncate(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
