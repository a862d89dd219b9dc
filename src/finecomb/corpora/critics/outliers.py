"""Outliers: documents whose structure is unlikely for their length, with conformal p-values.

T(x) depends on the length of a document, even per step, so the most unlikely documents are often the longest or the
shortest. Each document is compared with the real documents nearest in length: a line is fitted to their values and its
own, and p is the share of values at least as far above it. Because the document is included in the fit, its rank among
exchangeable documents is uniform (full conformal prediction, Vovk, Gammerman and Shafer 2005, conditional on lengths).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finecomb.corpora.critics.base import CriticScores

MIN_NEIGHBOURS = 50
"""Minimum number of real documents to compare with; a fifth of all real documents if that is more."""
_MIN_REGRESSION_POINTS = 20


@dataclass(frozen=True, slots=True)
class Outlier:
    """Document with the p-value of its structure among real documents of similar length."""

    id: str
    value: float
    """T(x) in nats."""
    per_step: float
    p: float
    """Conformal p-value: share of documents at least as unlikely, among similarly long real ones and this one."""
    usual: float
    """Expected value per step for a document of this length, from a line fitted to real documents and this one."""


def outliers(real: CriticScores, other: CriticScores) -> list[Outlier]:
    """Rank the documents of `other`, most unlikely for their length first, with p-values from held-out `real`.

    p = (1 + real neighbours at least as unlikely) / (1 + real neighbours). With fewer than 20 real documents, no line
    is fitted and values are compared directly.
    """
    if not len(real.ids):
        return []
    order = np.argsort(real.lengths, kind="stable")
    lengths, rates = real.lengths[order].astype(float), real.values_per_step[order]
    count = min(len(lengths), max(MIN_NEIGHBOURS, len(lengths) // 5))
    found: list[Outlier] = []
    for id, value, length, rate in zip(other.ids, other.values, other.lengths, other.values_per_step, strict=True):
        middle = (np.searchsorted(lengths, length, "left") + np.searchsorted(lengths, length, "right")) // 2
        start = int(np.clip(middle - count // 2, 0, len(lengths) - count))
        x, y = np.append(lengths[start : start + count], length), np.append(rates[start : start + count], rate)
        # The least-squares line at `x`, constant if there are few real documents or all lengths are equal
        centred = x - x.mean()
        spread = float(centred @ centred) if count >= _MIN_REGRESSION_POINTS else 0.0
        line = y.mean() + (float(centred @ y) / spread if spread > 0 else 0.0) * centred
        residuals = y - line
        # The document itself is the last residual, so p is at least 1 / (1 + neighbours)
        p = float(np.mean(residuals >= residuals[-1] - 1e-12))
        found.append(Outlier(id, float(value), float(rate), p, float(line[-1])))
    return sorted(found, key=lambda outlier: (outlier.p, -(outlier.per_step - outlier.usual)))
