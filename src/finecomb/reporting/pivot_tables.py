"""Results of `measure` and `test` with paper-style tables: systems in columns, best values in bold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from finecomb.core.errors import ParameterError, param
from finecomb.core.protocol import Protocol
from finecomb.core.results import Finding, Findings, Table
from finecomb.reporting.tables import (
    BestNumber,
    BestText,
    Row,
    TableFormat,
    finding_rows,
    format_interval,
    format_table,
    frame_rows,
)
from finecomb.statistics.comparisons.human_or_machine import pivot_measures_to_columns
from finecomb.statistics.comparisons.system_ranking import BestValue
from finecomb.statistics.measures.cross_tables import pivot_findings


class PivotTable(Table):
    """Table with one column per group, whose Markdown and LaTeX include the interval of each value."""

    def __init__(
        self,
        rows: Iterable[Row],
        lows: Sequence[Row] = (),
        highs: Sequence[Row] = (),
        *,
        title: str = "",
        measure: str = "",
        best: Collection[BestValue] = (),
    ) -> None:
        super().__init__(rows, title=title)
        self.lows, self.highs, self.measure, self.best = lows, highs, measure, best

    def paper_rows(self, digits: int = 3) -> list[Row]:
        """Return the rows as a paper prints them, with intervals and with the best values marked."""
        if not self.lows:
            return list(self.rows())
        rows: list[Row] = []
        for values, lows, highs in zip(self.rows(), self.lows, self.highs, strict=True):
            label, cells = str(values.get("label")), dict[str, object]()
            for name, value in values.items():
                text = format_interval(value, lows[name], highs[name], digits) if isinstance(value, float) else value
                cells[name] = BestText(text) if BestValue(self.measure, label, name) in self.best else text
            rows.append(cells)
        return rows

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, values with their intervals."""
        return format_table(self.paper_rows(digits), "markdown", self.title, digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), values with their intervals."""
        return format_table(self.paper_rows(digits), "latex", self.title, digits)


class Measures(Findings):
    """Measures by label and group.

    Attributes
    ----------
    by : tuple of str
        Grouping columns.
    best : frozenset of BestValue
        Measure, label and group of each value that is significantly lower than in all other groups.
    """

    def __init__(
        self,
        findings: Iterable[Finding] = (),
        notes: Iterable[str] = (),
        *,
        title: str = "Measures",
        protocol: Protocol | None = None,
        by: Sequence[str] = (),
        best: Iterable[BestValue] = (),
        is_ranked: bool = False,
    ) -> None:
        super().__init__(findings, notes, title=title, protocol=protocol)
        self.by, self.best, self._is_ranked = tuple(by), frozenset(best), is_ranked

    def table_rows(self) -> list[Row]:
        """Return the rows for display: best values marked, and no column `level` if all rows are about tokens."""
        rows: list[Row] = []
        for row, finding in zip(finding_rows(self)[0], self, strict=True):
            key = [str(finding.columns.get(name)) for name in ("measure", "label", *self.by)]
            is_best = len(self.by) == 1 and BestValue(*key) in self.best
            rows.append({**row, "value": BestNumber(finding.estimate.value)} if is_best else row)
        if {row.get("level", "") for row in rows} <= {"", "token"}:
            return [{name: cell for name, cell in row.items() if name != "level"} for row in rows]
        return rows

    def pivots(self) -> list[PivotTable]:
        """Return one table per measure, with labels in rows and groups in columns.

        With several grouping columns, the last one is in columns, the others are in rows, and all labels are pooled.

        Raises
        ------
        ParameterError
            If the measures are not grouped by any column.
        """
        if not self.by:
            example = param("by", "temperature,top_p")
            raise ParameterError(
                f"{param('grid')} requires {param('by')} with at least one column, e.g. {example}", parameter="by"
            )
        chosen = [finding for finding in self if len(self.by) == 1 or finding.columns["label"] == "any"]
        down, across = list(self.by[:-1]) or ["label"], self.by[-1]
        tables = []
        for name in dict.fromkeys(str(finding.columns["measure"]) for finding in chosen):
            rows = [finding for finding in chosen if finding.columns["measure"] == name]
            sides = [
                frame_rows(pivot_findings(rows, down, across, side, self._is_ranked))
                for side in ("value", "low", "high")
            ]
            tables.append(PivotTable(*sides, title=f"{name}, {across} across", measure=name, best=self.best))
        return tables

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, values with their intervals and the best values in bold."""
        return self._format_table("markdown", digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), values with their intervals and the best values in bold."""
        return self._format_table("latex", digits)

    def _format_table(self, format: TableFormat, digits: int) -> str:
        return format_table(self.table_rows(), format, self.title, digits)


class HumanOrMachine(Findings):
    """Accuracy of people at distinguishing human from machine text, by group."""

    def __init__(
        self,
        findings: Iterable[Finding] = (),
        notes: Iterable[str] = (),
        *,
        title: str = "Human-or-machine",
        protocol: Protocol | None = None,
        find_overall: Callable[[], Sequence[Finding]] = tuple,
    ) -> None:
        super().__init__(findings, notes, title=title, protocol=protocol)
        self._find_overall = find_overall

    def pivots(self) -> list[PivotTable]:
        """Return one table with groups in rows and measures in columns, as in papers.

        A star marks an accuracy that differs from chance (corrected p below .05).
        """
        return [PivotTable(pivot_measures_to_columns(self, self._find_overall()), title=self.title)]
