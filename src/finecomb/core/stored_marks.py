"""Marks of a study that stay in their file until they are asked for, and then only those of some annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

MOST_NAMED = 20_000
"""Documents up to which a file is asked for each by name; of more, it is asked for the range of their ids."""


@dataclass(frozen=True, slots=True)
class StoredMarks:
    """The marks of a study as a lazy table with the columns of `frames.MARKS`."""

    table: pl.LazyFrame
    is_part: bool = False
    """Whether the study has only some of the annotations that the table has marks of."""

    def part(self) -> StoredMarks:
        """The same table, for a study that has lost annotations."""
        return replace(self, is_part=True)

    def relabelled(self, label: pl.Expr) -> StoredMarks:
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
        near = self.table.filter(_near(annotations)).collect(engine="streaming")
        return near.filter(pl.col("annotation").is_in(annotations["id"].implode()))


def _near(annotations: pl.DataFrame) -> pl.Expr:
    """What marks of some annotations have in common, in words by which a file can leave out most others unread."""
    documents, annotators = (annotations[name].unique() for name in ("document", "annotator"))
    near = pl.col("annotator").is_in(annotators.implode())
    if len(documents):
        near &= (pl.col("document") >= documents.min()) & (pl.col("document") <= documents.max())
    return near & pl.col("document").is_in(documents.implode()) if len(documents) <= MOST_NAMED else near
