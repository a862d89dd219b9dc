"""Marks of a study that stay in their file until they are asked for, and then only those of some annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

MAX_NAMED_DOCUMENTS = 20_000
"""Documents up to which a file is asked for each by name; of more, it is asked for the range of their ids."""

BATCH_SIZE = 200_000
"""Marks that are copied at a time."""


@dataclass(frozen=True, slots=True)
class StoredMarks:
    """The marks of a study as a lazy table with the columns of `frames.MARKS`."""

    table: pl.LazyFrame
    is_part: bool = False
    """Whether the study has only some of the annotations that the table has marks of."""

    def as_partial(self) -> StoredMarks:
        """The same table, for a study that has lost annotations."""
        return replace(self, is_part=True)

    def with_labels(self, label: pl.Expr) -> StoredMarks:
        """The same marks with other labels."""
        return replace(self, table=self.table.with_columns(label=label))

    def scan(self, annotations: pl.DataFrame) -> pl.LazyFrame:
        """The marks of a study with these annotations, to be counted without holding them; in no particular order."""
        if not self.is_part:
            return self.table
        return self.table.join(annotations.lazy().select(annotation="id"), on="annotation", how="semi")

    def read(self, annotations: pl.DataFrame) -> pl.DataFrame:
        """The marks of a study with these annotations, in the order of the file."""
        if not self.is_part:
            return self.table.collect(engine="streaming")
        near = self.table.filter(_prefilter(annotations)).collect(engine="streaming")
        return near.filter(pl.col("annotation").is_in(annotations["id"].implode()))

    def read_numbered(self, columns: Iterable[str]) -> pl.DataFrame:
        """Some columns of all marks, with the number of the row in place of the id."""
        return self.table.select(columns).with_row_index("id").collect(engine="streaming")

    def iter_batches(self, numbers: pl.Series) -> Iterator[pl.DataFrame]:
        """The marks with these numbers, which are in order, some at a time."""
        places, last = numbers.to_numpy(), -1 if numbers.is_empty() else int(numbers[-1])
        for first in range(0, last + 1, BATCH_SIZE):
            inside = places[np.searchsorted(places, first) : np.searchsorted(places, first + BATCH_SIZE)]
            if len(inside):
                yield self.table.slice(first, BATCH_SIZE).collect(engine="streaming")[inside - first]


def _prefilter(annotations: pl.DataFrame) -> pl.Expr:
    """What marks of some annotations have in common, in words by which a file can leave out most others unread."""
    documents, annotators = (annotations[name].unique() for name in ("document", "annotator"))
    near = pl.col("annotator").is_in(annotators.implode())
    if len(documents):
        near &= (pl.col("document") >= documents.min()) & (pl.col("document") <= documents.max())
    return near & pl.col("document").is_in(documents.implode()) if len(documents) <= MAX_NAMED_DOCUMENTS else near
