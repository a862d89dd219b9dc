"""The marks of one text as gamma reads them: intervals with a category, each by one annotator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.span import TEXT
from finecomb.core.study import Study

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Continuum:
    """Marks of one text, those of one annotator side by side and in text order."""

    annotators: int
    """n: how many read the text; one who marked nothing counts."""
    length: float
    """Characters of the text."""
    owner: Ints
    """(marks,): whose each mark is, 0 to n - 1, ascending."""
    start: Floats
    """(marks,)"""
    end: Floats
    """(marks,): always behind `start`."""
    category: Ints
    """(marks,): a number for the label."""

    @classmethod
    def from_arrays(
        cls, annotators: int, length: float, owner: Ints, start: Floats, end: Floats, category: Ints
    ) -> Self:
        """In order; an omission, which has no length, becomes the interval of length 1 around its place."""
        empty = np.where(end == start, 0.5, 0.0)
        order = np.lexsort((category, end, start, owner))
        unordered = cls(annotators, length, owner, start - empty, end + empty, category)
        return replace(
            unordered,
            owner=owner[order],
            start=unordered.start[order],
            end=unordered.end[order],
            category=category[order],
        )

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def marks_per_annotator(self) -> float:
        """Marks per annotator, by which a disorder is divided."""
        return len(self) / self.annotators


@dataclass(frozen=True, slots=True)
class DocumentContinuum:
    """The marks of one document: their continuum, and which marks they are."""

    document: str
    continuum: Continuum
    marks: tuple[str, ...]
    """Ids, in the order of the continuum."""


def continua(study: Study, categories: tuple[str, ...]) -> list[DocumentContinuum]:
    """One for each document, in order. A discontinuous mark is the interval that encloses its spans on the text.

    Marks without a place on the text are left out, as are pooled votes, which do not say who marked what.
    """
    crowds = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    is_one_reader = ~pl.col("annotator").is_in(crowds.implode())
    people = (
        study.annotations.filter(is_one_reader).select("document", "annotator").unique().sort("document", "annotator")
    )
    people = people.with_columns(owner=pl.int_range(pl.len()).over("document"))
    readers = dict(people.group_by("document").len().iter_rows())
    codes = {name: code for code, name in enumerate(categories)}
    rows = _mark_extents(study).join(people, on=["document", "annotator"], how="inner")
    rows = rows.with_columns(
        category=pl.col("label").replace_strict(codes, default=len(codes), return_dtype=pl.Int64)
    ).sort("owner", "start", "end", "category", "mark")
    parts = rows.partition_by("document", as_dict=True)
    lengths = dict(study.documents.select("id", pl.col("text").str.len_chars()).iter_rows())
    return [_build_continuum(id, lengths[id], readers.get(id, 0), parts.get((id,), rows.clear())) for id in lengths]


def _mark_extents(study: Study) -> pl.DataFrame:
    """Where each mark begins and ends on the text: mark, document, annotator, label, start, end."""
    edges = study.spans.filter(pl.col("part") == TEXT).group_by("mark")
    marks = study.marks.select("document", "annotator", "label", mark="id")
    return marks.join(edges.agg(pl.col("start").min(), pl.col("end").max()), on="mark", how="inner")


def _build_continuum(document: str, length: int, readers: int, rows: pl.DataFrame) -> DocumentContinuum:
    start, end = (rows[name].to_numpy().astype(np.float64) for name in ("start", "end"))
    owner, category = (rows[name].to_numpy().astype(np.int64) for name in ("owner", "category"))
    continuum = Continuum.from_arrays(readers, float(length), owner, start, end, category)
    return DocumentContinuum(document, continuum, tuple(rows["mark"]))
