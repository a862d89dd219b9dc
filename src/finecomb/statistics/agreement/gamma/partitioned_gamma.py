"""Gamma of many texts as work on partitions: each text is a row, and so is what was measured of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.engine.partitions import Tables
from finecomb.statistics.agreement.gamma.continuum import Continuum, DocumentContinuum
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings, TextGamma, TextGammaJob, measure_text_gamma
from finecomb.version import __version__

_INTS, _FLOATS = pl.List(pl.Int64), pl.List(pl.Float64)
_ARRAY_FIELDS = ("weight", "observed", "expected", "error")
_TEXT_SCHEMA: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "document": pl.String,
    "annotators": pl.Int64,
    "length": pl.Float64,
    "owner": _INTS,
    "start": _FLOATS,
    "end": _FLOATS,
    "category": _INTS,
}
_RESULT_SCHEMA: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "document": pl.String,
    **dict.fromkeys(_ARRAY_FIELDS, _FLOATS),
    "lowest": _FLOATS,
    "samples": pl.Int64,
    "why": pl.String,
}


def gamma_input_rows(texts: Iterable[DocumentContinuum]) -> pl.DataFrame:
    """Texts with their marks, one a row."""
    return pl.DataFrame([_gamma_input_row(text.document, text.continuum) for text in texts], _TEXT_SCHEMA, orient="row")


def _gamma_input_row(document: str, marks: Continuum) -> tuple[Any, ...]:
    columns = (marks.owner, marks.start, marks.end, marks.category)
    return document, marks.annotators, float(marks.length), *(column.tolist() for column in columns)


def read_text_gammas(table: pl.DataFrame) -> Iterator[TextGamma]:
    """What was measured of each text, as it was before it became a row."""
    for row in table.iter_rows(named=True):
        arrays = {name: np.array(row[name], dtype=np.float64) for name in _ARRAY_FIELDS}
        lowest_observed, lowest_expected = row["lowest"]
        yield TextGamma(
            row["document"],
            arrays["weight"],
            arrays["observed"],
            arrays["expected"],
            arrays["error"],
            lowest=(lowest_observed, lowest_expected),
            samples=row["samples"],
            why=row["why"],
        )


@dataclass(frozen=True, slots=True)
class GammaWork:
    """Gamma as work that can be sent to other processes: all that it depends on beside the texts."""

    settings: GammaSettings
    dissimilarity: Dissimilarity
    categories: int
    seed: int

    def key(self) -> str:
        """All that a text's gamma depends on beside the text."""
        distances = self.dissimilarity.categories
        table = None if distances is None else distances.tolist()
        return "\x1f".join(map(str, ("gamma", self.settings, table, self.categories, self.seed, __version__)))

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """What is measured of each text."""
        return _tabulate_text_gammas(
            [measure_text_gamma(self._build_job(*row)) for row in rows.select(list(_TEXT_SCHEMA)).iter_rows()]
        )

    def _build_job(self, document: str, annotators: int, length: float, *columns: list[float]) -> TextGammaJob:
        kinds = (np.int64, np.float64, np.float64, np.int64)
        arrays: list[Any] = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
        marks = Continuum(annotators, length, *arrays)
        return TextGammaJob(document, marks, self.settings, self.dissimilarity, self.categories, self.seed)

    def handle_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """An error: a text that no process survives has no result, and a number without it would be another number."""
        document = row["document"][0]
        way = f"leave it out with {param('where')}"
        raise FinecombError(f"gamma of text {document!r} cannot be computed: {reason}; {way}")


def _tabulate_text_gammas(results: Sequence[TextGamma]) -> Tables:
    rows = [
        (
            text.document,
            *(getattr(text, name).tolist() for name in _ARRAY_FIELDS),
            list(text.lowest),
            text.samples,
            text.why,
        )
        for text in results
    ]
    return {"texts": pl.DataFrame(rows, _RESULT_SCHEMA, orient="row")}
