"""Continuum: the marks of one text as intervals with a category and an annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Continuum:
    """Marks of one text, sorted by annotator and position."""

    annotators: int
    """Number of annotators of the text (n), including those without marks."""
    length: float
    """Length of the text in characters."""
    owner: Ints
    """(marks,): annotator of each mark, 0 to n - 1, ascending."""
    start: Floats
    """(marks,): start of each mark in characters."""
    end: Floats
    """(marks,): end of each mark in characters, always greater than `start`."""
    category: Ints
    """(marks,): number of each mark's label."""

    @classmethod
    def from_arrays(
        cls, annotators: int, length: float, owner: Ints, start: Floats, end: Floats, category: Ints
    ) -> Self:
        """Build a continuum from sorted marks. An omission, which has no length, becomes an interval of length 1."""
        empty = np.where(end == start, 0.5, 0.0)
        order = np.lexsort((category, end, start, owner))
        return cls(annotators, length, owner[order], (start - empty)[order], (end + empty)[order], category[order])

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def marks_per_annotator(self) -> float:
        """Mean number of marks per annotator, which normalises disorder."""
        return len(self) / self.annotators


@dataclass(frozen=True, slots=True)
class DocumentContinuum:
    """The continuum of one document, with the IDs of its marks."""

    document: str
    continuum: Continuum
    marks: tuple[str, ...]
    """Mark IDs, in the order of the continuum."""


def build_document_continua(study: Study, categories: tuple[str, ...]) -> list[DocumentContinuum]:
    """Build the continuum of each document, in order; a discontinuous mark becomes one interval around its spans.

    Marks without a span on the text are excluded, as are pooled votes, which do not identify the annotators.
    """
    crowds = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    is_one_reader = ~pl.col("annotator").is_in(crowds.implode())
    people = (
        study.annotations.filter(is_one_reader).select("document", "annotator").unique().sort("document", "annotator")
    )
    people = people.with_columns(owner=pl.int_range(pl.len()).over("document"))
    readers = dict(people.group_by("document").len().iter_rows())
    codes = {name: code for code, name in enumerate(categories)}
    edges = study.spans.filter(pl.col("part") == TEXT_PART).group_by("mark")
    marks = study.marks.select("document", "annotator", "label", mark="id")
    rows = marks.join(edges.agg(pl.col("start").min(), pl.col("end").max()), on="mark", how="inner").join(
        people, on=["document", "annotator"], how="inner"
    )
    rows = rows.with_columns(
        category=pl.col("label").replace_strict(codes, default=len(codes), return_dtype=pl.Int64)
    ).sort("owner", "start", "end", "category", "mark")
    parts = rows.partition_by("document", as_dict=True)
    lengths = dict(study.documents.select("id", pl.col("text").str.len_chars()).iter_rows())
    texts = []
    for id, length in lengths.items():
        part = parts.get((id,), rows.clear())
        start, end = (part[name].to_numpy().astype(np.float64) for name in ("start", "end"))
        owner, category = (part[name].to_numpy().astype(np.int64) for name in ("owner", "category"))
        continuum = Continuum.from_arrays(readers.get(id, 0), float(length), owner, start, end, category)
        texts.append(DocumentContinuum(id, continuum, tuple(part["mark"])))
    return texts
