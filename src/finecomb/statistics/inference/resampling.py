"""Inference over whole documents: resamples, estimates with an interval or the reason why there is none, p-values.

This is the only module that draws resamples. Tokens of one text are not independent, so whole documents are drawn with
replacement, and annotators as well where that is asked for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finecomb.core.estimate import Estimate, Signature

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sums = NDArray[np.float64]  # (documents, statistics): sufficient statistics of each document
Weights = NDArray[np.float64]  # (draws, documents): how often each document was drawn
Resample = Literal["documents", "two-way"]
Average = Literal["annotation", "document", "pooled"]

CONFIDENCE = 0.95
FEW_DOCUMENTS = "fewer than two documents, so no interval"
SAME_DOCUMENTS = "all documents give the same value, so no interval"
SAME_RESAMPLES = "all resamples give the same value, so no interval"
NO_RESAMPLES = "no resamples were drawn, so no interval"
UNDEFINED_RESAMPLES = "no resample has a value, so no interval"

_MAX_WEIGHTS_IN_MEMORY = 2_000_000  # weights held at once
MAX_CACHED_WEIGHTS = 40_000_000
"""Weights that are kept for further numbers; where there are more, they are drawn again in batches for each."""


def ratio_or_nan(numerator: Floats, denominator: Floats) -> Floats:
    """numerator / denominator, NaN where the denominator is 0."""
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


# --- weights -----------------------------------------------------------------------------------------------------


def weight_batches(documents: int, draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[Weights]:
    """Weights of `draws` resamples in batches of `size` resamples; without a size, as many as memory allows."""
    shares = np.full(documents, 1 / documents) if documents else np.zeros(0)
    for count in draws_per_batch(draws, documents, size):
        yield rng.multinomial(documents, shares, size=count).astype(np.float64) if documents else np.zeros((count, 0))


def draws_per_batch(draws: int, width: int, size: int = 0) -> list[int]:
    """Numbers of draws that add up to `draws`, so that no more than a few million numbers are held at once."""
    most = size or max(1, _MAX_WEIGHTS_IN_MEMORY // max(1, width))
    return [min(most, draws - first) for first in range(0, draws, most)] or [0]


def resampled_document_weights(documents: int, draws: int, rng: np.random.Generator) -> Weights:
    """How often each document comes up in each resample, (draws, documents)."""
    weights, row = np.empty((draws, documents)), 0
    for batch in weight_batches(documents, draws, rng):
        weights[row : row + len(batch)] = batch
        row += len(batch)
    return weights


@functools.lru_cache(maxsize=8)
def seeded_document_weights(documents: int, draws: int, seed: int) -> Weights:
    """The same for a seed, made once for all rows with so many documents; no resample of fewer than two documents."""
    weights = resampled_document_weights(documents, draws if documents > 1 else 0, np.random.default_rng(seed))
    weights.flags.writeable = False
    return weights


def seeded_weight_batches(documents: int, draws: int, seed: int) -> Iterator[Weights]:
    """The rows of `seeded_document_weights`: all at once, or in batches where they would take too much memory."""
    if documents * draws <= MAX_CACHED_WEIGHTS:
        yield seeded_document_weights(documents, draws, seed)
        return
    rng = np.random.default_rng(seed)
    yield from weight_batches(documents, draws, rng, size=max(1, MAX_CACHED_WEIGHTS // documents))


def study_and_resample_weights(documents: int, draws: int, seed: int) -> Weights:
    """The study itself (every document once) in the first row, then its resamples; (1 + draws, documents)."""
    return np.concatenate([np.ones((1, documents)), seeded_document_weights(documents, draws, seed)])


def study_and_resample_batches(documents: int, draws: int, seed: int) -> Iterator[Weights]:
    """The rows of `study_and_resample_weights`, in batches where all at once would take too much memory."""
    batches = seeded_weight_batches(documents, draws, seed)
    yield np.concatenate([np.ones((1, documents)), next(batches)])
    yield from batches


def resampled_positions(size: int, draws: int, rng: np.random.Generator) -> Ints:
    """Positions of resampled values, (draws, size): for medians and ranks, which no sums can give."""
    return rng.integers(size, size=(draws if size > 1 else 0, size))


def resampled_sums(sums: Sums, draws: int, rng: np.random.Generator) -> Sums:
    """Sums of each resample of documents, (draws, statistics); none of fewer than two documents."""
    draws = draws if len(sums) > 1 else 0
    return np.concatenate([weights @ sums for weights in weight_batches(len(sums), draws, rng)])


@dataclass(frozen=True, slots=True)
class Resamples:
    """Resamples of the annotations of a group, drawn once for all its numbers."""

    document: Ints
    """(annotations,): which document each annotation is about, counted from 0 within the group."""
    annotator: Ints
    """(annotations,): whose it is, likewise."""
    documents: Weights
    """(draws, documents): how often each document was drawn."""
    annotators: Floats | None = None
    """(draws, annotators), or None when annotators stay as they are."""

    def sum_per_document(self, values: Floats) -> Floats:
        """Sums of `values`, (labels, annotations), over the annotations of each document, (labels, documents)."""
        order = np.argsort(self.document, kind="stable")
        starts = np.searchsorted(self.document[order], np.arange(self.documents.shape[1]))
        return np.add.reduceat(values[:, order], starts, axis=1) if len(order) else values

    def resampled_ratios(self, top: Floats, bottom: Floats, average: Average = "annotation") -> Floats:
        """sum(top) / sum(bottom) of each resample, (draws, labels), from amounts of shape (labels, annotations)."""
        if self.annotators is not None:
            return np.stack(
                [self._two_way_ratios(*amounts, average) for amounts in zip(top, bottom, strict=True)], axis=1
            )
        tops, bottoms = document_average_terms(self.sum_per_document(top), self.sum_per_document(bottom), average)
        return ratio_or_nan(self.documents @ tops.T, self.documents @ bottoms.T)

    def _two_way_ratios(self, top: Floats, bottom: Floats, average: Average) -> Floats:
        """One label: an annotation counts as often as its document times as often as its annotator was drawn."""
        assert self.annotators is not None
        shape = self.documents.shape[1], self.annotators.shape[1]
        cells = self.document * shape[1] + self.annotator
        tables = [np.bincount(cells, amounts, shape[0] * shape[1]).reshape(shape) for amounts in (top, bottom)]
        tops, bottoms = (self.annotators @ table.T for table in tables)  # (draws, documents)
        tops, bottoms = document_average_terms(tops, bottoms, average)
        return ratio_or_nan((self.documents * tops).sum(axis=1), (self.documents * bottoms).sum(axis=1))


def document_average_terms(top: Floats, bottom: Floats, average: Average) -> tuple[Floats, Floats]:
    """What to add up over documents: the amounts themselves, or each document's mean and 1 where it has one."""
    if average != "document":
        return top, bottom
    means = ratio_or_nan(top, bottom)
    return np.nan_to_num(means), np.isfinite(means).astype(np.float64)


def draw_annotation_resamples(
    document: Ints, annotator: Ints, draws: int, rng: np.random.Generator, resample: Resample = "documents"
) -> Resamples:
    """Draw whole documents with replacement and, for `two-way`, annotators as well and independently.

    Owen (2007), "The pigeonhole bootstrap": an annotation enters as often as its document times its annotator. It needs
    no complete crossing, and errs towards wider intervals.
    """
    _, texts = np.unique(document, return_inverse=True)
    _, people = np.unique(annotator, return_inverse=True)
    weights = resampled_document_weights(_distinct_count(texts), draws, rng)
    return Resamples(
        texts,
        people,
        weights,
        resampled_document_weights(_distinct_count(people), draws, rng) if resample == "two-way" else None,
    )


def draw_document_resamples(documents: int, draws: int, seed: int) -> Resamples:
    """Resamples of documents that count once each."""
    numbers = np.arange(documents)
    return draw_annotation_resamples(numbers, np.zeros_like(numbers), draws, np.random.default_rng(seed))


def _distinct_count(numbers: Ints) -> int:
    return int(numbers.max(initial=-1)) + 1


# --- estimates ---------------------------------------------------------------------------------------------------


def percentile_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Percentile interval of the resamples that have a value; NaN when none has."""
    defined = values[np.isfinite(values)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_interval_from_sums(
    sums: Sums, statistic: Callable[[Sums], Floats], draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Percentile interval of `statistic`, a function of the sums of each resample, (draws, statistics) -> (draws,).

    (NaN, NaN) with fewer than two documents or when no resample gives a value.
    """
    return percentile_interval(statistic(resampled_sums(sums, draws, rng)))


def few_documents_reason(documents: int) -> str:
    """Why so many documents give no interval, or nothing."""
    return FEW_DOCUMENTS if documents < 2 else ""


def no_interval_reason(values: Floats) -> str:
    """Why resamples of documents with these values, (documents,), can give no honest interval, or nothing."""
    defined = values[np.isfinite(values)]
    return few_documents_reason(len(defined)) or (SAME_DOCUMENTS if np.ptp(defined) == 0 else "")


def undefined_estimate(signature: Signature, why: str) -> Estimate:
    """An estimate without a value."""
    return Estimate(math.nan, math.nan, math.nan, signature, why)


def estimate_with_interval(
    value: float, values: Floats, signature: Signature, why: str = "", missing_interval_reason: str = ""
) -> Estimate:
    """`value` with the percentile interval of the `values` of its resamples, and the reason for what is missing.

    `why` is the reason where `value` is undefined; `without` a reason, known beforehand, why there is no interval.
    """
    if math.isnan(value):
        return undefined_estimate(signature, why)
    if reason := missing_interval_reason or _no_spread_reason(values):
        return Estimate(float(value), math.nan, math.nan, signature, reason)
    return Estimate(float(value), *percentile_interval(values), signature)


def estimate_from_sums(
    sums: Sums, statistic: Callable[[Sums], Floats], draws: int, seed: int, signature: Signature, why: str = ""
) -> Estimate:
    """A statistic of the sums of documents, (documents, statistics), with its interval over documents."""
    value = float(statistic(sums.sum(axis=0)[None])[0])
    values = statistic(resampled_sums(sums, draws, np.random.default_rng(seed)))
    return estimate_with_interval(value, values, signature, why, few_documents_reason(len(sums)))


def _no_spread_reason(values: Floats) -> str:
    """Why the values of resamples give no interval, or nothing."""
    if not len(values):
        return NO_RESAMPLES
    defined = values[np.isfinite(values)]
    if not len(defined):
        return UNDEFINED_RESAMPLES
    return SAME_RESAMPLES if np.ptp(defined) == 0 else ""


# --- tests -------------------------------------------------------------------------------------------------------


def permutation_p_value(null: Floats, observed: float, exact: bool = False) -> float:
    """Two-sided p of a permutation test: the share of arrangements at least as far from 0, ties within rounding.

    With `exact`, `null` holds every arrangement; else p = (1 + hits) / (1 + draws) (Phipson and Smyth 2010), NaN
    without draws. An arrangement without a value is no hit.
    """
    hits = int((np.abs(null) >= abs(observed) * (1 - 1e-12) - 1e-12).sum())
    if exact:
        return hits / len(null)
    return (1 + hits) / (1 + len(null)) if len(null) else math.nan


def mean_difference_interval(
    first: Floats, second: Floats, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Percentile interval of mean(first) - mean(second) when both groups are resampled."""
    means = [resampled_sums(values, draws, rng) / len(values) for values in (first, second)]
    return percentile_interval(means[0] - means[1])
