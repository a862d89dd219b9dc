"""Recall and precision of each annotator on tokens without gold annotations (after Dawid and Skene 1979).

For one label, each token is an error (z = 1) with probability pi. Annotator j of the text marks it with probability r_j
if z = 1 and q_j if z = 0, independently of the others given z:

    recall r_j,   precision pi r_j / (pi r_j + (1 - pi) q_j).

EM finds the posterior mode under Beta priors, which act as additional tokens: one error that j marked and one that j
missed (r_j), one correct token that j did not mark and 0.01 that j marked (q_j), one error and one correct token (pi).
EM starts at the share of annotators who marked the token, so that z = 1 is the class with more marks. Tokens of one
text are not independent, so intervals resample texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.statistics.inference.resampling import draw_weight_batches, percentile_interval
from finecomb.statistics.measures.unit_grid import UnitGrid, locate_spans_on_grid, remove_range_overlaps
from finecomb.statistics.selection.view import ANY_LABEL, View

Floats = NDArray[np.float64]

RECALL_PRIOR = (1.0, 1.0)
FALSE_ALARM_PRIOR = (0.01, 1.0)
ERROR_RATE_PRIOR = (1.0, 1.0)
_MAX_EM_STEPS, _EM_TOLERANCE = 500, 1e-6
_RESAMPLES_PER_BATCH = 50  # resamples fitted in one batch


@dataclass(frozen=True, slots=True)
class TokenPatterns:
    """Counts per document of token patterns; tokens with the same annotators and marks share a pattern."""

    marked: Floats
    """(patterns, annotators): 1 where the annotator marked the token."""
    passed: Floats
    """(patterns, annotators): 1 where the annotator annotated the text but did not mark the token."""
    counts: Floats
    """(documents, patterns): number of tokens with each pattern."""


class DawidSkeneFit:
    """Estimates for a batch of samples: `recall` and `precision` are (samples, annotators), `rate` is (samples,)."""

    def __init__(self, recall: Floats, alarm: Floats, rate: Floats) -> None:
        self.recall, self.alarm, self.rate = recall, alarm, rate
        hits, false = rate[:, None] * recall, (1 - rate[:, None]) * alarm
        self.precision = hits / (hits + false)


def participation_matrix(view: View, grid: UnitGrid, annotators: list[str]) -> NDArray[np.bool_]:
    """Return a mask of the documents that each annotator annotated, (documents, annotators)."""
    position_by_annotator = {name: position for position, name in enumerate(annotators)}
    participation = np.zeros((len(grid.documents), len(annotators)), dtype=np.bool_)
    annotator = (
        view.study.annotations["annotator"].replace_strict(position_by_annotator, return_dtype=pl.Int64).to_numpy()
    )
    participation[[grid.documents[id] for id in view.study.annotations["document"]], annotator] = True
    return participation


def mark_matrix(view: View, grid: UnitGrid, annotators: list[str], label: str = ANY_LABEL) -> NDArray[np.bool_]:
    """Return a mask of the units that each annotator marked with a label or with `any`, (units, annotators)."""
    position_by_annotator = {name: position for position, name in enumerate(annotators)}
    rows = locate_spans_on_grid(view.study, grid)
    rows = rows if label == ANY_LABEL else rows.filter(pl.col("label") == label)
    who = view.study.annotations.select(
        annotation="id", who=pl.col("annotator").replace_strict(position_by_annotator, return_dtype=pl.Int64)
    )
    ranges = remove_range_overlaps(rows.join(who, on="annotation", how="left"), ["who"])
    edges = np.zeros((len(grid) + 1, len(annotators)), dtype=np.int32)
    np.add.at(edges, (ranges["first"].to_numpy(), ranges["who"].to_numpy()), 1)
    np.add.at(edges, (ranges["last"].to_numpy(), ranges["who"].to_numpy()), -1)
    result: NDArray[np.bool_] = np.cumsum(edges, axis=0)[:-1] > 0
    return result


def count_token_patterns(marks: NDArray[np.bool_], read: NDArray[np.bool_], grid: UnitGrid) -> TokenPatterns:
    """Count the tokens with each pattern (which annotators marked them) in texts with at least two annotators."""
    document = np.repeat(np.arange(len(grid.documents)), grid.sizes)
    pairable = (read.sum(axis=1) >= 2)[document]
    marks, document = marks[pairable], document[pairable]
    # Tokens with equal bit rows form one pattern, which keeps EM small for long texts.
    bits = np.concatenate([np.packbits(marks, axis=1), np.packbits(read, axis=1)[document]], axis=1)
    _, first, pattern = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    cells = document * len(first) + pattern.ravel()
    counts = np.bincount(cells, minlength=len(grid.documents) * len(first)).reshape(len(grid.documents), len(first))
    marked, readers = marks[first], read[document[first]]
    return TokenPatterns(marked.astype(np.float64), (readers & ~marked).astype(np.float64), counts.astype(np.float64))


def fit_dawid_skene(tokens: TokenPatterns, weights: Floats) -> DawidSkeneFit:
    """Fit the model by EM to a batch of samples; `weights` are counts of the patterns, (samples, patterns)."""
    share = tokens.marked.sum(axis=1) / (tokens.marked + tokens.passed).sum(axis=1)
    z = np.broadcast_to(share, weights.shape)
    estimate = _maximisation_step(tokens, weights, z)
    for _ in range(_MAX_EM_STEPS):
        before = estimate.recall
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
        estimate = _maximisation_step(tokens, weights, np.exp(wrong - np.logaddexp(wrong, sound)))
        if np.abs(estimate.recall - before).max() < _EM_TOLERANCE:
            break
    return estimate


def _maximisation_step(tokens: TokenPatterns, weights: Floats, z: Floats) -> DawidSkeneFit:
    """Compute the estimates from the error probabilities, with the priors as additional tokens (M step)."""
    wrong, sound = weights * z, weights * (1 - z)
    recall = _smoothed_share(wrong @ tokens.marked, wrong @ tokens.passed, RECALL_PRIOR)
    alarm = _smoothed_share(sound @ tokens.marked, sound @ tokens.passed, FALSE_ALARM_PRIOR)
    return DawidSkeneFit(recall, alarm, _smoothed_share(wrong.sum(axis=1), sound.sum(axis=1), ERROR_RATE_PRIOR))


def _smoothed_share(yes: Floats, no: Floats, prior: tuple[float, float]) -> Floats:
    result: Floats = (yes + prior[0]) / (yes + no + sum(prior))
    return result


class AnnotatorSkills(NamedTuple):
    """Recall and precision of each annotator, (annotators, 3): value, and the limits of a percentile interval."""

    recall: Floats
    precision: Floats


def estimate_annotator_skills(tokens: TokenPatterns, draws: int, rng: np.random.Generator) -> AnnotatorSkills:
    """Fit the model to the data and to resampled documents. Intervals are NaN with fewer than two documents."""
    fit = fit_dawid_skene(tokens, tokens.counts.sum(axis=0)[None])
    counts = tokens.counts[tokens.counts.sum(axis=1) > 0]
    batches = draw_weight_batches(len(counts), draws, rng, _RESAMPLES_PER_BATCH) if len(counts) > 1 and draws else ()
    fits = [fit_dawid_skene(tokens, weights @ counts) for weights in batches]
    rows = []
    for name in ("recall", "precision"):
        value = getattr(fit, name)[0]
        # (draws, annotators)
        values = np.concatenate([np.zeros((0, len(value))), *(getattr(part, name) for part in fits)])
        ends = [percentile_interval(column) for column in values.T]
        rows.append(np.column_stack([value, np.array(ends).reshape(-1, 2)]))
    return AnnotatorSkills(*rows)
