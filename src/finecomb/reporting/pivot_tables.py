"""Results of measures and tests that can be printed as in a paper: systems across, the best number bold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from finecomb.core.errors import ParameterError, param
from finecomb.core.estimate import Finding
from finecomb.core.protocol import Protocol
from finecomb.core.results import Findings, Table
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
from finecomb.statistics.comparisons.human_or_machine import wide_rows
from finecomb.statistics.comparisons.system_ranking import BestValue
from finecomb.statistics.measures.cross_tables import pivot


class PivotTable(Table):
    """A table with one column per group, whose Markdown and LaTeX have the interval of each number."""

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
        """Return the rows with intervals, the best numbers marked as such; the rows themselves without intervals."""
        if not self.lows:
            return list(self.rows())
        return [self._paper_row(at, digits) for at in range(len(self))]

    def _paper_row(self, at: int, digits: int) -> Row:
        values, lows, highs = self.rows()[at], self.lows[at], self.highs[at]
        label = str(values.get("label"))
        cells: dict[str, object] = {}
        for name, value in values.items():
            text = format_interval(value, lows[name], highs[name], digits) if isinstance(value, float) else value
            cells[name] = BestText(text) if BestValue(self.measure, label, name) in self.best else text
        return cells

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, numbers with their intervals."""
        return format_table(self.paper_rows(digits), "markdown", self.title, digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), numbers with their intervals."""
        return format_table(self.paper_rows(digits), "latex", self.title, digits)


class Measures(Findings):
    """Measures by label and group.

    Attributes
    ----------
    by : tuple of str
        The columns whose values make the groups.
    best : frozenset of BestValue
        Measure, label and group of the values that are lower than those of all other groups, beyond chance.
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
        """Return the rows as tables print them: best numbers marked, and no column `level` where all are tokens."""
        rows: list[Row] = [
            {**row, "value": BestNumber(finding.estimate.value)} if self._is_best(finding) else row
            for row, finding in zip(finding_rows(self)[0], self, strict=True)
        ]
        if {row.get("level", "") for row in rows} <= {"", "token"}:
            return [{name: cell for name, cell in row.items() if name != "level"} for row in rows]
        return rows

    def _is_best(self, finding: Finding) -> bool:
        if len(self.by) != 1:
            return False
        return BestValue(*(str(finding.columns.get(name)) for name in ("measure", "label", self.by[0]))) in self.best

    def pivots(self) -> list[PivotTable]:
        """Return one table per measure: labels down and groups across or, for two columns, all marks by both columns.

        Raises
        ------
        ParameterError
            If the measures are not grouped by any column.
        """
        if not self.by:
            example = param("by", "temperature,top_p")
            raise ParameterError(
                f"{param('grid')} needs one column (labels down) or two, e.g. {example}", parameter="by"
            )
        chosen = [finding for finding in self if len(self.by) == 1 or finding.columns["label"] == "any"]
        down, across = list(self.by[:-1]) or ["label"], self.by[-1]
        tables = []
        for name in dict.fromkeys(str(finding.columns["measure"]) for finding in chosen):
            rows = [finding for finding in chosen if finding.columns["measure"] == name]
            sides = [frame_rows(pivot(rows, down, across, side, self._is_ranked)) for side in ("value", "low", "high")]
            tables.append(PivotTable(*sides, title=f"{name}, {across} across", measure=name, best=self.best))
        return tables

    def to_markdown(self, digits: int = 3) -> str:
        """Return the table in Markdown, numbers with their intervals and the best numbers bold."""
        return self._format("markdown", digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the table in LaTeX (booktabs), numbers with their intervals and the best numbers bold."""
        return self._format("latex", digits)

    def _format(self, format: TableFormat, digits: int) -> str:
        return format_table(self.table_rows(), format, self.title, digits)


class HumanOrMachine(Findings):
    """Accuracy of people who told human from machine text, by group."""

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
        """Return one table with groups down and measures across, as papers print it.

        A star marks an accuracy that differs from chance (corrected p below .05).
        """
        return [PivotTable(wide_rows(self, self._find_overall()), title=self.title)]
