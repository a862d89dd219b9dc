"""Values and intervals of ratios of sums when documents, or documents and annotators, are drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finecomb.measure.bootstrap import ratio

Resample = Literal["documents", "two-way"]
Average = Literal["annotation", "document", "pooled"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Draw:
    """How often each document and each annotator of a group comes up in each draw, made once for all its numbers."""

    document: Ints
    """(annotations,): which document each read, counted from 0 within the group."""
    annotator: Ints
    """(annotations,): who read it, likewise."""
    documents: Floats
    """(draws, documents): how often each was drawn."""
    annotators: Floats | None = None
    """(draws, annotators), or None when annotators stay as they are."""

    def per_document(self, values: Floats) -> Floats:
        """Sums of `values`, (labels, annotations), over the annotations of each document, (labels, documents)."""
        order = np.argsort(self.document, kind="stable")
        starts = np.searchsorted(self.document[order], np.arange(self.documents.shape[1]))
        return np.add.reduceat(values[:, order], starts, axis=1) if len(order) else values

    def values(self, top: Floats, bottom: Floats, average: Average = "annotation") -> Floats:
        """sum(top) / sum(bottom) of each draw, (draws, labels), from amounts of shape (labels, annotations)."""
        if self.annotators is not None:
            return np.stack([self._two_way(*each, average) for each in zip(top, bottom, strict=True)], axis=1)
        sums = averaged(self.per_document(top), self.per_document(bottom), average)
        return ratio(self.documents @ sums[0].T, self.documents @ sums[1].T)

    def _two_way(self, top: Floats, bottom: Floats, average: Average) -> Floats:
        """One label: an annotation counts as often as its document times as often as its annotator was drawn."""
        assert self.annotators is not None
        shape = self.documents.shape[1], self.annotators.shape[1]
        cells = self.document * shape[1] + self.annotator
        tables = [np.bincount(cells, each, shape[0] * shape[1]).reshape(shape) for each in (top, bottom)]
        tops, bottoms = (self.annotators @ each.T for each in tables)  # (draws, documents)
        sums = averaged(tops, bottoms, average)
        return ratio(*((self.documents * each).sum(axis=1) for each in sums))


def averaged(top: Floats, bottom: Floats, average: Average) -> tuple[Floats, Floats]:
    """What to add up over documents: the amounts themselves, or each document's own mean and 1 where it has one."""
    if average != "document":
        return top, bottom
    own = ratio(top, bottom)
    return np.nan_to_num(own), np.isfinite(own).astype(np.float64)


def draw(document: Ints, annotator: Ints, draws: int, rng: np.random.Generator, resample: Resample) -> Draw:
    """Draw whole documents with replacement and, for `two-way`, annotators as well and independently.

    Owen (2007), "The pigeonhole bootstrap": an annotation enters as often as its document times its annotator. It needs
    no complete crossing, and errs towards wider intervals.
    """
    _, texts = np.unique(document, return_inverse=True)
    _, people = np.unique(annotator, return_inverse=True)
    weights = _multinomial(texts, draws, rng)
    return Draw(texts, people, weights, _multinomial(people, draws, rng) if resample == "two-way" else None)


def _multinomial(numbered: Ints, draws: int, rng: np.random.Generator) -> Floats:
    size = int(numbered.max()) + 1 if len(numbered) else 0
    if not size:
        return np.zeros((draws, 0))
    return rng.multinomial(size, np.full(size, 1 / size), size=draws).astype(np.float64)


def percentiles(drawn: Floats, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of the draws that have a value; NaN when none has."""
    values = drawn[np.isfinite(drawn)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
