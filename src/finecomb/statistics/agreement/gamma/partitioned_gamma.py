"""Gamma of many texts as partitioned work; input and result tables have one row per text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    """Build the input table of the gamma computation, with one row per text that holds its marks."""
    rows = []
    for text in texts:
        marks = text.continuum
        columns = (marks.owner, marks.start, marks.end, marks.category)
        rows.append((text.document, marks.annotators, float(marks.length), *(column.tolist() for column in columns)))
    return pl.DataFrame(rows, _TEXT_SCHEMA, orient="row")


def text_gammas_from_table(table: pl.DataFrame) -> Iterator[TextGamma]:
    """Yield the gamma result of each text from a table of results."""
    for row in table.iter_rows(named=True):
        arrays = {name: np.array(row.pop(name), dtype=np.float64) for name in _ARRAY_FIELDS}
        yield TextGamma(**{**row, **arrays, "lowest": tuple(row["lowest"])})


@dataclass(frozen=True, slots=True)
class GammaWork:
    """Gamma computation that can be sent to other processes, with all inputs except the texts."""

    settings: GammaSettings
    dissimilarity: Dissimilarity
    categories: int
    seed: int

    def key(self) -> str:
        """Return a cache key that covers all inputs except the texts."""
        distances = self.dissimilarity.categories
        table = None if distances is None else distances.tolist()
        # The version in the key prevents reuse of results from another version.
        return "\x1f".join(map(str, ("gamma", self.settings, table, self.categories, self.seed, __version__)))

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """Compute gamma for each text of a partition."""
        results = []
        for document, annotators, length, *columns in rows.select(list(_TEXT_SCHEMA)).iter_rows():
            kinds = (np.int64, np.float64, np.float64, np.int64)
            arrays: list[Any] = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
            marks = Continuum(annotators, length, *arrays)
            text = measure_text_gamma(
                TextGammaJob(document, marks, self.settings, self.dissimilarity, self.categories, self.seed)
            )
            measured = (getattr(text, name).tolist() for name in _ARRAY_FIELDS)
            results.append((document, *measured, list(text.lowest), text.samples, text.why))
        return {"texts": pl.DataFrame(results, _RESULT_SCHEMA, orient="row")}

    def handle_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """Raise an error for a text that no process could compute, since omitting the text would change the result."""
        document = row["document"][0]
        fix = f"exclude it with {param('where')}"
        raise FinecombError(f"gamma cannot be computed for text {document!r}: {reason}; {fix}")
