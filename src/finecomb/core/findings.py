"""Findings: the rows of a result as one value that a notebook can show, draw and pass on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from finecomb.core.estimate import Finding
from finecomb.core.hooks import FINDINGS_HOOKS

if TYPE_CHECKING:
    import pandas


class Findings(list[Finding]):
    """A list of findings that knows itself as a table, a chart and a page."""

    def __init__(self, findings: Iterable[Finding] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(findings)
        self.notes = tuple(notes)
        """What their reader should hear, e.g. who was left out."""

    def rows(self) -> list[dict[str, Any]]:
        """One row per finding: its columns, then value, low, high, why and signature."""
        return [
            {
                **finding.columns,
                "value": finding.estimate.value,
                "low": finding.estimate.low,
                "high": finding.estimate.high,
                "why": finding.estimate.why,
                "signature": str(finding.estimate.signature),
            }
            for finding in self
        ]

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame of the rows; what is undefined is NaN, and `why` says why."""
        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas frame of the rows; needs pandas and nothing else."""
        import pandas

        return pandas.DataFrame(self.rows())

    def chart(self) -> Any:
        """A chart of the values with their intervals, as Altair draws it."""
        return FINDINGS_HOOKS["chart"](self)

    def _repr_html_(self) -> str:
        return str(FINDINGS_HOOKS["html"](self))
