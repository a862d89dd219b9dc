"""Marks that stay on disk until they are needed; only the marks of the requested annotations are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

MAX_NAMED_DOCUMENTS = 20_000
"""Maximum number of document IDs in a filter of marks; with more documents, only the range of the IDs is used."""

BATCH_SIZE = 200_000
"""Marks per batch."""


@dataclass(frozen=True, slots=True)
class StoredMarks:
    """The marks of a study as a lazy table with the columns of `frames.MARK_COLUMNS`."""

    table: pl.LazyFrame
    is_part: bool = False
    """True if the study has only some of the annotations whose marks are in the table."""

    def for_partial_study(self) -> StoredMarks:
        """Return the table with `is_part` set, for a study with only some of the annotations."""
        return replace(self, is_part=True)

    def with_labels(self, label: pl.Expr) -> StoredMarks:
        """Return the table with other labels."""
        return replace(self, table=self.table.with_columns(label=label))

    def scan(self, annotations: pl.DataFrame) -> pl.LazyFrame:
        """Return a lazy frame of the marks of these annotations, in no particular order."""
        if not self.is_part:
            return self.table
        return self.table.join(annotations.lazy().select(annotation="id"), on="annotation", how="semi")

    def read(self, annotations: pl.DataFrame) -> pl.DataFrame:
        """Read the marks of these annotations, in file order."""
        if not self.is_part:
            return self.table.collect(engine="streaming")
        # A filter that keeps all marks of the annotations and skips most others without reading them
        documents, annotators = (annotations[name].unique() for name in ("document", "annotator"))
        may_match = pl.col("annotator").is_in(annotators.implode())
        if len(documents):
            may_match &= (pl.col("document") >= documents.min()) & (pl.col("document") <= documents.max())
        if len(documents) <= MAX_NAMED_DOCUMENTS:
            may_match &= pl.col("document").is_in(documents.implode())
        near = self.table.filter(may_match).collect(engine="streaming")
        return near.filter(pl.col("annotation").is_in(annotations["id"].implode()))

    def read_numbered(self, columns: Iterable[str]) -> pl.DataFrame:
        """Read some columns of all marks, with row numbers instead of IDs."""
        return self.table.select(columns).with_row_index("id").collect(engine="streaming")

    def iter_batches(self, numbers: pl.Series) -> Iterator[pl.DataFrame]:
        """Read the marks with these row numbers, which must be sorted, in batches."""
        places, last = numbers.to_numpy(), -1 if numbers.is_empty() else int(numbers[-1])
        for first in range(0, last + 1, BATCH_SIZE):
            inside = places[np.searchsorted(places, first) : np.searchsorted(places, first + BATCH_SIZE)]
            if len(inside):
                yield self.table.slice(first, BATCH_SIZE).collect(engine="streaming")[inside - first]
