"""Each annotator's recall and precision on tokens when nobody knows the truth (after Dawid and Skene 1979).

For one label, each token is in error (z = 1) with probability pi, and annotator j, who read the text, marks it with
probability r_j when z = 1 and q_j when z = 0, independently of the others given z:

    recall r_j,   precision pi r_j / (pi r_j + (1 - pi) q_j).

Fitted by EM to the largest posterior under Beta priors, which are as if some more tokens had been seen: one in error
that j marked and one that j missed (r_j), one sound token that j left alone and a hundredth of one that j marked (q_j),
one token in error and one sound (pi). EM starts at the share of readers who marked the token, so that z = 1 means
"marked by more". Tokens of one text are not independent, so intervals resample texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.statistics.inference.resampling import percentile_interval, weight_batches
from finecomb.statistics.measures.unit_grid import UnitGrid, locate_spans_on_grid, remove_range_overlaps
from finecomb.statistics.selection.view import ANY, View

Floats = NDArray[np.float64]

RECALL_PRIOR = (1.0, 1.0)
FALSE_ALARM_PRIOR = (0.01, 1.0)
RATE_PRIOR = (1.0, 1.0)
_MAX_EM_STEPS, _EM_TOLERANCE = 500, 1e-6
_BATCH = 50  # resamples fitted at once


@dataclass(frozen=True, slots=True)
class TokenPatterns:
    """Tokens with the same readers and the same marks are one pattern; how many of them each document has."""

    marked: Floats
    """(patterns, annotators): 1 where the annotator marked it."""
    passed: Floats
    """(patterns, annotators): 1 where the annotator read it and did not mark it."""
    counts: Floats
    """(documents, patterns)."""


class DawidSkeneFit:
    """Estimates of a batch of samples: `recall` and `precision` are (samples, annotators), `rate` is (samples,)."""

    def __init__(self, recall: Floats, alarm: Floats, rate: Floats) -> None:
        self.recall, self.alarm, self.rate = recall, alarm, rate
        hits, false = rate[:, None] * recall, (1 - rate[:, None]) * alarm
        self.precision = hits / (hits + false)


def participation_matrix(view: View, grid: UnitGrid, annotators: list[str]) -> NDArray[np.bool_]:
    """Who read what, (documents, annotators)."""
    place = {name: at for at, name in enumerate(annotators)}
    read = np.zeros((len(grid.documents), len(annotators)), dtype=np.bool_)
    who = view.study.annotations["annotator"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    read[grid.document_positions(view.study.annotations["document"]), who] = True
    return read


def mark_matrix(view: View, grid: UnitGrid, annotators: list[str], label: str = ANY) -> NDArray[np.bool_]:
    """Who marked what, (units, annotators); `any` for all labels."""
    place = {name: at for at, name in enumerate(annotators)}
    rows = locate_spans_on_grid(view.study, grid)
    rows = rows if label == ANY else rows.filter(pl.col("label") == label)
    who = view.study.annotations.select(
        annotation="id", who=pl.col("annotator").replace_strict(place, return_dtype=pl.Int64)
    )
    ranges = remove_range_overlaps(rows.join(who, on="annotation", how="left"), ["who"])
    edges = np.zeros((len(grid) + 1, len(annotators)), dtype=np.int32)
    np.add.at(edges, (ranges["first"].to_numpy(), ranges["who"].to_numpy()), 1)
    np.add.at(edges, (ranges["last"].to_numpy(), ranges["who"].to_numpy()), -1)
    result: NDArray[np.bool_] = np.cumsum(edges, axis=0)[:-1] > 0
    return result


def count_token_patterns(marks: NDArray[np.bool_], read: NDArray[np.bool_], grid: UnitGrid) -> TokenPatterns:
    """Count equal tokens; of texts with two readers or more."""
    document = np.repeat(np.arange(len(grid.documents)), grid.sizes)
    pairable = (read.sum(axis=1) >= 2)[document]
    marks, document = marks[pairable], document[pairable]
    both = np.concatenate([np.packbits(marks, axis=1), np.packbits(read, axis=1)[document]], axis=1)
    _, first, which = np.unique(both, axis=0, return_index=True, return_inverse=True)
    cells = document * len(first) + which.ravel()
    counts = np.bincount(cells, minlength=len(grid.documents) * len(first)).reshape(len(grid.documents), len(first))
    marked, readers = marks[first], read[document[first]]
    return TokenPatterns(marked.astype(np.float64), (readers & ~marked).astype(np.float64), counts.astype(np.float64))


def fit_dawid_skene(tokens: TokenPatterns, weights: Floats) -> DawidSkeneFit:
    """EM for a batch of samples at once; `weights` are counts of the patterns, (samples, patterns)."""
    share = tokens.marked.sum(axis=1) / (tokens.marked + tokens.passed).sum(axis=1)
    z = np.broadcast_to(share, weights.shape)
    estimate = _maximisation_step(tokens, weights, z)
    for _ in range(_MAX_EM_STEPS):
        before = estimate.recall
        estimate = _maximisation_step(tokens, weights, _expectation_step(tokens, estimate))
        if np.abs(estimate.recall - before).max() < _EM_TOLERANCE:
            break
    return estimate


def _expectation_step(tokens: TokenPatterns, estimate: DawidSkeneFit) -> Floats:
    """E step: probability of an error for each sample and pattern."""
    wrong = (
        np.log(estimate.recall) @ tokens.marked.T
        + np.log1p(-estimate.recall) @ tokens.passed.T
        + np.log(estimate.rate)[:, None]
    )
    sound = (
        np.log(estimate.alarm) @ tokens.marked.T
        + np.log1p(-estimate.alarm) @ tokens.passed.T
        + np.log1p(-estimate.rate)[:, None]
    )
    return np.exp(wrong - np.logaddexp(wrong, sound))


def _maximisation_step(tokens: TokenPatterns, weights: Floats, z: Floats) -> DawidSkeneFit:
    """M step, with the priors as so many tokens more."""
    wrong, sound = weights * z, weights * (1 - z)
    recall = _smoothed_share(wrong @ tokens.marked, wrong @ tokens.passed, RECALL_PRIOR)
    alarm = _smoothed_share(sound @ tokens.marked, sound @ tokens.passed, FALSE_ALARM_PRIOR)
    return DawidSkeneFit(recall, alarm, _smoothed_share(wrong.sum(axis=1), sound.sum(axis=1), RATE_PRIOR))


def _smoothed_share(yes: Floats, no: Floats, prior: tuple[float, float]) -> Floats:
    result: Floats = (yes + prior[0]) / (yes + no + sum(prior))
    return result


class AnnotatorSkills(NamedTuple):
    """Recall and precision of each annotator, (annotators, 3): value and the ends of a percentile interval."""

    recall: Floats
    precision: Floats


def estimate_annotator_skill(tokens: TokenPatterns, draws: int, rng: np.random.Generator) -> AnnotatorSkills:
    """Fit to the data and to resampled documents; ends are NaN with fewer than two documents."""
    whole = fit_dawid_skene(tokens, tokens.counts.sum(axis=0)[None])
    used = tokens.counts[tokens.counts.sum(axis=1) > 0]
    batches = weight_batches(len(used), draws, rng, _BATCH) if len(used) > 1 and draws else ()
    fits = [fit_dawid_skene(tokens, weights @ used) for weights in batches]
    rows = []
    for name in ("recall", "precision"):
        value = getattr(whole, name)[0]
        values = np.concatenate(
            [np.zeros((0, len(value))), *(getattr(part, name) for part in fits)]
        )  # (draws, annotators)
        ends = [percentile_interval(column) for column in values.T]
        rows.append(np.column_stack([value, np.array(ends).reshape(-1, 2)]))
    return AnnotatorSkills(*rows)
