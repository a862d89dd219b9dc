"""What a paper shows: exhibits as rows of a registry, and what one of them becomes for a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding
from finecomb.core.palette import LabelStyle, label_styles
from finecomb.core.study import Study
from finecomb.statistics.selection.view import Filters, View, view

ExhibitRow = Mapping[str, object]
T = TypeVar("T")


class ResamplingOptions(TypedDict):
    """What every statistic with an interval takes."""

    draws: int
    seed: int


@dataclass(frozen=True, slots=True)
class PaperStudy:
    """The study that a paper's exhibits are made from."""

    study: Study
    draws: int = 1000
    seed: int = 0
    audit: Study | None = None
    """Verdicts on its marks, for Scarecrow's Figure 16."""
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was made for one exhibit and serves others too."""

    def compute_once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once."""
        if key not in self.memo:
            self.memo[key] = make()
        result: T = self.memo[key]
        return result

    def view(self, **filters: Any) -> View:
        """What statistics read of it."""
        return view(self.study, Filters(**filters))

    @property
    def label_looks(self) -> dict[str | None, LabelStyle]:
        """How each label of its protocols looks."""
        return {
            name: look for protocol in self.study.protocols.values() for name, look in label_styles(protocol).items()
        }

    @property
    def resampling_options(self) -> ResamplingOptions:
        """How intervals are drawn."""
        return {"draws": self.draws, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Rendering:
    """One exhibit as made from a study: a table in the paper's layout, and for a figure its chart."""

    table: tuple[ExhibitRow, ...]
    """In the paper's layout; of a figure, one row for each mark of its chart."""
    caption: str
    chart: Any = None
    """An Altair chart whose marks are the rows of the table."""
    html: str = ""
    """A text with its marks, where the paper shows one."""
    graphs: Mapping[str, str] = field(default_factory=dict)
    """Further drawings by name, as SVG."""
    signature: str = ""

    def __post_init__(self) -> None:
        rows = tuple({name: _nan_to_none(value) for name, value in row.items()} for row in self.table)
        object.__setattr__(self, "table", rows)  # what is undefined is None, as in files


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One row of the registry: a figure or table of a paper, the function that makes it, and what that needs."""

    paper: str
    number: str
    """As the paper has it: `Figure 2`."""
    title: str
    make: Callable[[PaperStudy], Rendering]
    needs: str
    """What a study must have, in a few words."""

    @property
    def file_stem(self) -> str:
        """The stem of its files: `figure-2`."""
        return self.number.lower().replace(" ", "-")

    @property
    def function_name(self) -> str:
        """Where the function is, as it can be imported."""
        return f"{self.make.__module__.rpartition('.')[2]}.{self.make.__name__}"


def _nan_to_none(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def require(condition: object, reason: str) -> None:
    """An error that says what an exhibit lacks."""
    if not condition:
        raise FinecombError(reason)


def point_row(estimate: Estimate, **columns: object) -> dict[str, object]:
    """A row of a figure: what it is about, then value, low and high; None where undefined."""
    ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {**columns, **{name: None if math.isnan(end) else end for name, end in ends.items()}}


def point_rows(findings: Sequence[Finding], *columns: str) -> list[dict[str, object]]:
    """Rows of a figure from findings that have a value; where there is none, the exhibit cannot be made."""
    rows = [
        point_row(finding.estimate, **{name: finding.columns.get(name) for name in columns})
        for finding in findings
        if not math.isnan(finding.estimate.value)
    ]
    reason = next((finding.estimate.why for finding in findings), "there is nothing to measure")
    require(rows, reason)
    return rows


def require_defined(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The findings, where one of them has a value; else the exhibit cannot be made, for the reason that they give."""
    values = [finding.estimate.value for finding in findings]
    reason = next((finding.estimate.why for finding in findings), "there is nothing to measure")
    require(any(not math.isnan(value) for value in values), reason)
    return findings


def first_signature(findings: Sequence[Finding]) -> str:
    """How the numbers were made, from the first of them."""
    return str(findings[0].estimate.signature) if findings else ""


def pivot_rows(rows: Sequence[ExhibitRow], down: str, across: str, value: str = "value") -> list[dict[str, object]]:
    """Rows with one column for each value of `across`; None where a cell has nothing."""
    columns = list(dict.fromkeys(str(row[across]) for row in rows))
    cells: dict[str, dict[str, object]] = {}
    for row in rows:
        cells.setdefault(str(row[down]), {})[str(row[across])] = row[value]
    return [{down: name, **{column: line.get(column) for column in columns}} for name, line in cells.items()]
