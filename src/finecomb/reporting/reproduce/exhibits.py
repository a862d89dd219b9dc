"""Exhibits: the tables and figures of a paper, and their renderings for a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from finecomb.core.errors import FinecombError
from finecomb.core.palette import LabelStyle, label_styles
from finecomb.core.results import Estimate, Finding
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import Chart
from finecomb.statistics.selection.view import Filters, View, view

ExhibitRow = Mapping[str, object]
T = TypeVar("T")


class ResamplingOptions(TypedDict):
    """Keyword arguments of statistics with resampled intervals."""

    draws: int
    seed: int


@dataclass(frozen=True, slots=True)
class PaperStudy:
    """Study that the exhibits of a paper are computed from."""

    study: Study
    draws: int = 1000
    seed: int = 0
    audit: Study | None = None
    """Study with auditors' judgements of the marks, for Figure 16 of Scarecrow."""
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """Results shared by several exhibits."""

    def compute_once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, computed on the first call with this key."""
        if key not in self.memo:
            self.memo[key] = make()
        result: T = self.memo[key]
        return result

    def view(self, **filters: Any) -> View:
        """Return a filtered view of the study for statistics."""
        return view(self.study, Filters(**filters))

    @property
    def label_styles(self) -> dict[str | None, LabelStyle]:
        """Style of each label, over all protocols of the study."""
        return {
            name: style for protocol in self.study.protocols.values() for name, style in label_styles(protocol).items()
        }

    @property
    def resampling_options(self) -> ResamplingOptions:
        """Number of draws and seed for resampled intervals."""
        return {"draws": self.draws, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class RenderedExhibit:
    """Exhibit computed from a study: a table in the layout of the paper, and a chart if it is a figure.

    All rows have the same columns; for a figure, there is one row per mark of its chart. `html` is a text with its
    marks, if the paper shows one. `graphs` are further SVG figures by name.
    """

    table: tuple[ExhibitRow, ...]
    caption: str
    chart: Chart | None = None
    html: str = ""
    graphs: Mapping[str, str] = field(default_factory=dict)
    signature: str = ""

    def __post_init__(self) -> None:
        names = dict.fromkeys(name for row in self.table for name in row)
        rows = tuple(
            {name: None if isinstance(value := row.get(name), float) and math.isnan(value) else value for name in names}
            for row in self.table
        )
        object.__setattr__(self, "table", rows)  # undefined values are None, as in the files


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Table or figure of a paper, with the function that computes it and its requirements."""

    paper: str
    number: str
    """Number in the paper, e.g. `Figure 2`."""
    title: str
    make: Callable[[PaperStudy], RenderedExhibit]
    needs: str
    """Short description of what a study must contain."""

    @property
    def file_stem(self) -> str:
        """File name without suffix, e.g. `figure-2`."""
        return self.number.lower().replace(" ", "-")

    @property
    def function_name(self) -> str:
        """Import path of the function."""
        return f"{self.make.__module__.rpartition('.')[2]}.{self.make.__name__}"


def require_exhibit_data(condition: object, reason: str) -> None:
    """Raise an error with the reason why an exhibit is not available, unless the condition holds."""
    if not condition:
        raise FinecombError(reason)


def point_row(estimate: Estimate, **columns: object) -> dict[str, object]:
    """Return one row of a figure's table: identifying columns, then value, low and high (None if undefined)."""
    ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {**columns, **{name: None if math.isnan(end) else end for name, end in ends.items()}}


def point_rows(findings: Sequence[Finding], *columns: str) -> list[dict[str, object]]:
    """Return the rows of a figure's table for all defined findings; raise an error if none is defined."""
    rows = [
        point_row(finding.estimate, **{name: finding.columns.get(name) for name in columns})
        for finding in findings
        if not math.isnan(finding.estimate.value)
    ]
    reason = next((finding.estimate.why for finding in findings), "the study has no data for this exhibit")
    require_exhibit_data(rows, reason)
    return rows


def require_defined(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings if any of them is defined; otherwise raise an error with their reason."""
    values = [finding.estimate.value for finding in findings]
    reason = next((finding.estimate.why for finding in findings), "the study has no data for this exhibit")
    require_exhibit_data(any(not math.isnan(value) for value in values), reason)
    return findings


def first_signature(findings: Sequence[Finding]) -> str:
    """Return the signature of the first finding, or an empty string."""
    return str(findings[0].estimate.signature) if findings else ""


def pivot_rows(rows: Sequence[ExhibitRow], down: str, across: str, value: str = "value") -> list[dict[str, object]]:
    """Pivot rows so that each value of `across` becomes a column; missing cells are None."""
    columns = list(dict.fromkeys(str(row[across]) for row in rows))
    cells: dict[str, dict[str, object]] = {}
    for row in rows:
        cells.setdefault(str(row[down]), {})[str(row[across])] = row[value]
    return [{down: name, **{column: line.get(column) for column in columns}} for name, line in cells.items()]
