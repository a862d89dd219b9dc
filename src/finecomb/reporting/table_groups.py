"""Results with several lazily computed tables, and score tables with intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from finecomb.core.errors import ParameterError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.results import Finding, Findings, Result, ResultRow, Table
from finecomb.reporting.score_tables import RATIOS, format_score_rows, score_rows
from finecomb.reporting.tables import Row, finding_rows
from finecomb.statistics.gold.scores import Score

ResultType = TypeVar("ResultType", bound=Result)


class ScoreTable(Table):
    """Recall, precision and F1 as a table: flat rows for programs, ratios with intervals for display."""

    def __init__(self, scores: Iterable[Score], *, title: str = "", protocol: Protocol | None = None) -> None:
        self.scores, self.protocol = tuple(scores), protocol
        super().__init__((score.row() for score in self.scores), title=title, signature=score_rows(self.scores)[1])

    def display_table(self, best: Collection[tuple[str, str]] = (), digits: int = 3) -> Table:
        """Return the table for display; `best` contains the pairs of judge and ratio whose cell is in bold."""
        return Table(format_score_rows(self.scores, best, digits), title=self.title, signature=self.signature)

    def findings(self) -> list[Finding]:
        """Return each ratio as a finding."""
        return [
            Finding({"measure": name, **score.columns}, getattr(score, name))
            for name in RATIOS
            for score in self.scores
        ]

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw recall, precision and F1 with their intervals, as `Result.plot` does."""
        return Findings(self.findings(), title=self.title, protocol=self.protocol).plot(path, **options)

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, ratios with their intervals."""
        return self.display_table(digits=digits).to_markdown(digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), ratios with their intervals."""
        return self.display_table(digits=digits).to_latex(digits)

    def __repr__(self) -> str:
        return repr(_ratios_first(self.display_table()))

    def _repr_html_(self) -> str:
        return self.display_table()._repr_html_()


def _ratios_first(table: Table) -> Table:
    """Move ratios before counts in a score table, because `repr` cuts off the last columns."""
    counts = ("gold", "predicted", "matched", "right")
    rows = [
        {name: row[name] for name in sorted(row, key=lambda name: name in counts)} if "f1" in row else row
        for row in table
    ]
    return Table(rows, title=table.title, notes=table.notes, signature=table.signature)


class TableGroup(Result):
    """Result with several tables, each computed on first access; it displays the first of them."""

    def __init__(
        self,
        tables: Mapping[str, Callable[[], Result]],
        *,
        title: str = "",
        notes: Iterable[str] = (),
        signature: str = "",
        names: Sequence[str] | None = None,
    ) -> None:
        self._makers, self._tables = dict(tables), dict[str, Result]()
        self.title, self.notes, self.signature = title, tuple(notes), signature
        self.names = tuple(tables if names is None else names)
        """Names of the tables that have rows."""

    def table(self, name: str) -> Result:
        """Return a table by its name."""
        if name not in self._makers:
            raise ParameterError(f"unknown table {name!r}{did_you_mean(name, self._makers)}", parameter="name")
        if name not in self._tables:
            self._tables[name] = self._makers[name]()
        return self._tables[name]

    def _table_as(self, name: str, kind: type[ResultType]) -> ResultType:
        table = self.table(name)
        assert isinstance(table, kind)
        return table

    def rows(self) -> list[ResultRow]:
        """Return the rows of the first table, unrounded."""
        return self.table(self.names[0]).rows()

    def findings(self) -> list[Finding]:
        """Return the estimates of the first table."""
        return self.table(self.names[0]).findings()

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the first table, as `Result.plot` does."""
        return self.table(self.names[0]).plot(path, **options)

    def display_table(self, digits: int = 3) -> Table:
        """Return the first table for display, with the notes and signature of the result."""
        first = self.table(self.names[0])
        rows = first.display_table(digits=digits).rows() if isinstance(first, ScoreTable) else first.rows()
        return Table(rows, title=self.title or first.title, notes=self.notes, signature=self.signature)

    def to_markdown(self, digits: int = 3) -> str:
        """Return the first table in Markdown, values with their intervals."""
        return self.display_table(digits).to_markdown(digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the first table in LaTeX (booktabs), values with their intervals."""
        return self.display_table(digits).to_latex(digits)

    def __repr__(self) -> str:
        return "\n".join([repr(_ratios_first(self.display_table())), *self._other_table_names()])

    def _repr_html_(self) -> str:
        return self.display_table()._repr_html_() + "".join(
            f"<p><small>{line}</small></p>" for line in self._other_table_names()
        )

    def _other_table_names(self) -> list[str]:
        return [f"other tables: {', '.join(self.names[1:])}"] if len(self.names) > 1 else []


def flat_rows(table: Result) -> tuple[list[Row], str]:
    """Return the rows of a table for programs, and the signature they share."""
    if isinstance(table, ScoreTable):
        return score_rows(table.scores)
    if isinstance(table, Findings):
        return finding_rows(table)
    return list(table.rows()), table.signature
