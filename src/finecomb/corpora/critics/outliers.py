"""Outliers: documents whose structure is unlikely for their length, with conformal p-values.

T(x) depends on how long a document is, also per step, so the most unlikely documents of all are often simply the
longest, or the shortest. A document is compared with the real documents nearest to it in length: a line is laid through
their values and its own, and p is the share of them that lie at least as far above the line. The document takes part in
the line like any other, so that among exchangeable documents its place is uniform (full conformal prediction, Vovk,
Gammerman and Shafer 2005, conditional on lengths).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finecomb.corpora.critics.base import CriticScores, Ints
from finecomb.corpora.critics.posteriors import Floats

MIN_NEIGHBOURS = 50
"""Real documents to compare with at least, or a fifth of all if that is more."""
_MIN_REGRESSION_POINTS = 20


@dataclass(frozen=True, slots=True)
class Outlier:
    """A document by how unlikely its structure is among real ones of its length."""

    id: str
    value: float
    """T(x)."""
    per_step: float
    p: float
    """Conformal: the share of real documents of about its length, itself among them, at least as unlikely."""
    usual: float
    """What is usual per step for its length: the line through real documents and itself."""


def outliers(real: CriticScores, other: CriticScores) -> list[Outlier]:
    """Documents of `other`, the most unlikely for their length first, with p-values against held-out `real` ones.

    p = (1 + real neighbours at least as unlikely) / (1 + real neighbours). With fewer than twenty real documents there
    is no line, and they are compared as they are.
    """
    if not len(real.ids):
        return []
    order = np.argsort(real.lengths, kind="stable")
    lengths, rates = real.lengths[order].astype(float), real.values_per_step[order]
    judged = [
        _conformal_test(lengths, rates, float(length), rate)
        for length, rate in zip(other.lengths, other.values_per_step, strict=True)
    ]
    table = np.array(judged, float).reshape(-1, 2)
    ranked = np.lexsort((-(other.values_per_step - table[:, 1]), table[:, 0]))
    return [_outlier(other, int(at), *table[at]) for at in ranked]


def _outlier(scores: CriticScores, at: int, p: float, usual: float) -> Outlier:
    return Outlier(scores.ids[at], float(scores.values[at]), float(scores.values_per_step[at]), float(p), float(usual))


def _conformal_test(lengths: Floats, rates: Floats, length: float, rate: float) -> tuple[float, float]:
    """p and the usual rate of one document among real ones, which are sorted by length."""
    near = _neighbours(lengths, length)
    x, y = np.append(lengths[near], length), np.append(rates[near], rate)
    line = _least_squares_line(x, y) if len(near) >= _MIN_REGRESSION_POINTS else np.full(len(x), y.mean())
    apart = y - line
    return float(np.mean(apart >= apart[-1] - 1e-12)), float(line[-1])


def _neighbours(lengths: Floats, length: float) -> Ints:
    """Places of the real documents nearest in the order of lengths."""
    count = min(len(lengths), max(MIN_NEIGHBOURS, len(lengths) // 5))
    middle = (np.searchsorted(lengths, length, "left") + np.searchsorted(lengths, length, "right")) // 2
    start = int(np.clip(middle - count // 2, 0, len(lengths) - count))
    return np.arange(start, start + count)


def _least_squares_line(x: Floats, y: Floats) -> Floats:
    """The values at `x` of the least-squares line; flat where all lengths are one."""
    apart = x - x.mean()
    spread = float(apart @ apart)
    slope = float(apart @ y) / spread if spread > 0 else 0.0
    line: Floats = y.mean() + slope * apart
    return line
