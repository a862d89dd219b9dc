"""Bootstrap over documents: resamples, estimates with an interval or the reason why it is missing, and p-values.

No other module draws resamples. Tokens of one text are not independent, so whole documents are drawn with replacement,
and on request annotators as well.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finecomb.core.results import Estimate, Signature

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sums = NDArray[np.float64]  # (documents, statistics): sufficient statistics per document
Weights = NDArray[np.float64]  # (draws, documents): number of times each document was drawn
ResampleMode = Literal["documents", "two-way"]
Average = Literal["annotation", "document", "pooled"]

DEFAULT_CONFIDENCE = 0.95
FEW_DOCUMENTS_REASON = "fewer than two documents, so there is no interval"
SAME_DOCUMENTS_REASON = "all documents give the same value, so there is no interval"
SAME_RESAMPLES_REASON = "all resamples give the same value, so there is no interval"
NO_RESAMPLES_REASON = "no resamples were drawn, so there is no interval"
UNDEFINED_RESAMPLES_REASON = "the value is undefined in every resample, so there is no interval"

_MAX_WEIGHTS_IN_MEMORY = 2_000_000  # maximum number of weights in memory at once
MAX_CACHED_WEIGHTS = 40_000_000
"""Maximum number of cached weights. For larger studies, weights are drawn again in batches for each statistic."""


def ratio_or_nan(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, or NaN where the denominator is not positive."""
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


# --- weights -----------------------------------------------------------------------------------------------------


def draw_weight_batches(documents: int, draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[Weights]:
    """Yield the weights of `draws` resamples in batches of `size`; 0 means as many per batch as memory allows."""
    counts = (
        [min(size, draws - first) for first in range(0, draws, size)] if size else draws_per_batch(draws, documents)
    )
    for count in counts or [0]:
        yield resampled_document_weights(documents, count, rng)


def draws_per_batch(draws: int, width: int) -> list[int]:
    """Return batch sizes that add up to `draws` and keep at most a few million numbers in memory."""
    most = max(1, _MAX_WEIGHTS_IN_MEMORY // max(1, width))
    return [min(most, draws - first) for first in range(0, draws, most)] or [0]


def resampled_document_weights(documents: int, draws: int, rng: np.random.Generator) -> Weights:
    """Draw resamples, and return how many times each document occurs in each resample, (draws, documents)."""
    weights = np.zeros((draws, documents))
    rows = max(1, _MAX_WEIGHTS_IN_MEMORY // max(1, documents))
    for first in range(0, draws if documents else 0, rows):  # in batches, since all integers at once double the memory
        batch = weights[first : first + rows]
        batch[:] = rng.multinomial(documents, np.full(documents, 1 / documents), size=len(batch))
    return weights


@functools.lru_cache(maxsize=8)
def seeded_document_weights(documents: int, draws: int, seed: int) -> Weights:
    """Return the resampled document weights for a seed, cached for all statistics over the same number of documents.

    Fewer than two documents give no resamples.
    """
    weights = resampled_document_weights(documents, draws if documents > 1 else 0, np.random.default_rng(seed))
    weights.flags.writeable = False  # cached and shared by all callers
    return weights


def seeded_weight_batches(documents: int, draws: int, seed: int, with_study: bool = False) -> Iterator[Weights]:
    """Yield the rows of `seeded_document_weights` in one batch, or in several if one would take too much memory.

    With `with_study`, the first row has the weights of the study itself, as in `study_and_resample_weights`.
    """
    study = np.ones((1 if with_study else 0, documents))
    if documents * draws <= MAX_CACHED_WEIGHTS:
        weights = seeded_document_weights(documents, draws, seed)
        yield np.concatenate([study, weights]) if with_study else weights
        return
    rng = np.random.default_rng(seed)
    for batch in draw_weight_batches(documents, draws, rng, size=max(1, MAX_CACHED_WEIGHTS // documents)):
        yield np.concatenate([study, batch]) if len(study) else batch
        study = study[:0]


def study_and_resample_weights(documents: int, draws: int, seed: int) -> Weights:
    """Return the weights of the study itself (all ones), then those of its resamples, (1 + draws, documents)."""
    return np.concatenate([np.ones((1, documents)), seeded_document_weights(documents, draws, seed)])


def resampled_positions(size: int, draws: int, rng: np.random.Generator) -> Ints:
    """Draw positions of resampled values, (draws, size), for statistics other than sums, e.g. medians and ranks."""
    return rng.integers(size, size=(draws if size > 1 else 0, size))


def resampled_sums(sums: Sums, draws: int, rng: np.random.Generator) -> Sums:
    """Draw resamples and return their sums over documents, (draws, statistics); none with fewer than two documents."""
    draws = draws if len(sums) > 1 else 0
    return np.concatenate([weights @ sums for weights in draw_weight_batches(len(sums), draws, rng)])


@dataclass(frozen=True, slots=True)
class Resamples:
    """Resamples of one group of annotations, drawn once and shared by all statistics of the group."""

    document: Ints
    """(annotations,): document of each annotation, numbered from 0 within the group."""
    annotator: Ints
    """(annotations,): annotator of each annotation, numbered from 0 within the group."""
    documents: Weights
    """(draws, documents): number of times each document was drawn."""
    annotators: Floats | None = None
    """(draws, annotators): number of times each annotator was drawn, or None if annotators are not resampled."""

    def sum_annotations_by_document(self, values: Floats) -> Floats:
        """Sum `values`, (labels, annotations), over the annotations of each document, (labels, documents)."""
        order = np.argsort(self.document, kind="stable")
        starts = np.searchsorted(self.document[order], np.arange(self.documents.shape[1]))
        return np.add.reduceat(values[:, order], starts, axis=1) if len(order) else values

    def resampled_ratios(self, top: Floats, bottom: Floats, average: Average = "annotation") -> Floats:
        """Compute sum(top) / sum(bottom) per resample, (draws, labels), from arrays of shape (labels, annotations)."""
        if self.annotators is not None:
            return np.stack(
                [self._two_way_ratios(*amounts, average) for amounts in zip(top, bottom, strict=True)], axis=1
            )
        tops, bottoms = self.sum_annotations_by_document(top), self.sum_annotations_by_document(bottom)
        if average == "document":
            tops, bottoms = document_average_terms(tops, bottoms, average)
        return ratio_or_nan(self.documents @ tops.T, self.documents @ bottoms.T)

    def _two_way_ratios(self, top: Floats, bottom: Floats, average: Average) -> Floats:
        """Compute the ratios of one label, weighting each annotation by its document's weight times its annotator's."""
        assert self.annotators is not None
        shape = self.documents.shape[1], self.annotators.shape[1]
        cells = self.document * shape[1] + self.annotator
        tables = [np.bincount(cells, amounts, shape[0] * shape[1]).reshape(shape) for amounts in (top, bottom)]
        tops, bottoms = (self.annotators @ table.T for table in tables)  # (draws, documents)
        tops, bottoms = document_average_terms(tops, bottoms, average)
        return ratio_or_nan((self.documents * tops).sum(axis=1), (self.documents * bottoms).sum(axis=1))


def document_average_terms(top: Floats, bottom: Floats, average: Average) -> tuple[Floats, Floats]:
    """Return the terms to sum over documents: the amounts or, for `document`, each document's mean and the number 1."""
    if average != "document":
        return top, bottom
    means = ratio_or_nan(top, bottom)
    return np.nan_to_num(means), np.isfinite(means).astype(np.float64)


def draw_annotation_resamples(
    document: Ints, annotator: Ints, draws: int, rng: np.random.Generator, resample: ResampleMode = "documents"
) -> Resamples:
    """Draw whole documents with replacement and, for `two-way`, also annotators, independently of documents.

    Owen (2007), "The pigeonhole bootstrap": the weight of an annotation is its document's weight times its annotator's.
    The method does not require every annotator to annotate every document, and its intervals tend to be too wide rather
    than too narrow.
    """
    _, texts = np.unique(document, return_inverse=True)
    _, people = np.unique(annotator, return_inverse=True)
    weights = resampled_document_weights(int(texts.max(initial=-1)) + 1, draws, rng)
    if resample == "documents":
        return Resamples(texts, people, weights)
    return Resamples(texts, people, weights, resampled_document_weights(int(people.max(initial=-1)) + 1, draws, rng))


def draw_document_resamples(documents: int, draws: int, seed: int) -> Resamples:
    """Draw resamples of documents that have one annotation each."""
    numbers = np.arange(documents)
    return draw_annotation_resamples(numbers, np.zeros_like(numbers), draws, np.random.default_rng(seed))


# --- estimates ---------------------------------------------------------------------------------------------------


def percentile_interval(values: Floats, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return the percentile interval of the defined values; NaN if none is defined."""
    defined = values[np.isfinite(values)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_interval_from_sums(
    sums: Sums, statistic: Callable[[Sums], Floats], draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Compute the percentile interval of `statistic`, which maps sums of shape (draws, statistics) to (draws,).

    (NaN, NaN) with fewer than two documents, or if the statistic is undefined in every resample.
    """
    return percentile_interval(statistic(resampled_sums(sums, draws, rng)))


def few_documents_reason(documents: int) -> str:
    """Return the reason why there are too few documents for an interval, or an empty string if there are enough."""
    return FEW_DOCUMENTS_REASON if documents < 2 else ""


def undefined_estimate(signature: Signature, why: str) -> Estimate:
    """Build an estimate without a value, with the reason."""
    return Estimate(math.nan, math.nan, math.nan, signature, why)


def estimate_with_interval(
    value: float,
    values: Floats,
    signature: Signature,
    why: str = "",
    missing_interval_reason: str = "",
    document_values: Floats | None = None,
) -> Estimate:
    """Build the estimate of `value` with the percentile interval of its resampled `values`.

    `why` is the reason reported if `value` is undefined. `missing_interval_reason` is the reason if it is known in
    advance that there is no interval. There is none either if fewer than two of the `document_values`, (documents,),
    are defined, or if all of them are equal.
    """
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    reason, defined = missing_interval_reason, values[np.isfinite(values)]
    if not reason and document_values is not None:
        of_documents = document_values[np.isfinite(document_values)]
        if len(of_documents) < 2:
            reason = FEW_DOCUMENTS_REASON
        elif np.ptp(of_documents) == 0:
            reason = SAME_DOCUMENTS_REASON
    if not reason and not len(values):
        reason = NO_RESAMPLES_REASON
    if not reason and not len(defined):
        reason = UNDEFINED_RESAMPLES_REASON
    if not reason and np.ptp(defined) == 0:
        reason = SAME_RESAMPLES_REASON
    if reason:
        return Estimate(float(value), math.nan, math.nan, signature, reason)
    low, high = np.quantile(defined, [(1 - DEFAULT_CONFIDENCE) / 2, (1 + DEFAULT_CONFIDENCE) / 2])
    return Estimate(float(value), float(low), float(high), signature.insert(interval="percentile"))


def estimate_from_sums(
    sums: Sums, statistic: Callable[[Sums], Floats], draws: int, seed: int, signature: Signature, why: str = ""
) -> Estimate:
    """Estimate a statistic of the sums over documents, (documents, statistics), with its bootstrap interval."""
    value = float(statistic(sums.sum(axis=0)[None])[0])
    values = statistic(resampled_sums(sums, draws, np.random.default_rng(seed)))
    return estimate_with_interval(value, values, signature, why, few_documents_reason(len(sums)))


# --- tests -------------------------------------------------------------------------------------------------------


def permutation_p_value(null: Floats, observed: float, exact: bool = False) -> float:
    """Return the two-sided p-value of a permutation test: the share of arrangements at least as far from 0 as observed.

    With `exact`, `null` holds every arrangement. Otherwise p = (1 + hits) / (1 + draws) (Phipson and Smyth 2010); p is
    NaN without draws. Ties, up to rounding, count as hits. Arrangements without a value do not.
    """
    hits = int((np.abs(null) >= abs(observed) * (1 - 1e-12) - 1e-12).sum())
    if exact:
        return hits / len(null)
    return (1 + hits) / (1 + len(null)) if len(null) else math.nan
