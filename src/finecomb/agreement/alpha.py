"""Krippendorff's alpha for binary marks, in closed form, and the two-agree share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from finecomb.core.estimate import Estimate, Signature
from finecomb.core.study import Study
from finecomb.measure.bootstrap import Sums, interval, ratio
from finecomb.measure.grid import Level, Votes, lay, votes
from finecomb.measure.view import View, view


def alpha_sums(counted: Votes) -> Sums:
    """D_o, n_1 and n of each document, (categories, documents, 3); with fewer than two readers nothing is added."""
    k, m = counted.marked.astype(np.float64), counted.m.astype(np.float64)
    pairable = m >= 2
    disagreement = np.where(pairable, 2 * k * (m - k) / np.maximum(m - 1, 1), 0.0)
    ones, total = np.where(pairable, k, 0.0), np.broadcast_to(np.where(pairable, m, 0.0), k.shape)
    return np.stack([counted.grid.per_document(each) for each in (disagreement, ones, total)], axis=-1)


def alpha(sums: Sums) -> NDArray[np.float64]:
    r"""Krippendorff's alpha, nominal, of binary ratings: $1 - (n - 1) D_o / (2 n_1 (n - n_1))$ for each row of sums.

    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", for two values.
    NaN when nobody marked anything, or everybody everything: then chance disagreement is 0.
    """
    observed, ones, total = sums[..., 0], sums[..., 1], sums[..., 2]
    return 1 - ratio((total - 1) * observed, 2 * ones * (total - ones))


def two_agree_sums(counted: Votes) -> Sums:
    """Units marked by two or more and by any, (categories, documents, 2); fewer than two readers add nothing."""
    pairable = counted.m >= 2
    both, any_ = ((counted.marked >= least) & pairable for least in (2, 1))
    return np.stack([counted.grid.per_document(each.astype(np.float64)) for each in (both, any_)], axis=-1)


def two_agree(sums: Sums) -> NDArray[np.float64]:
    """Percentage of the units marked by anybody that were marked by two or more (Dou et al. 2022, appendix C)."""
    return 100 * ratio(sums[..., 0], sums[..., 1])


Statistic = tuple[Callable[[Votes], Sums], Callable[[Sums], NDArray[np.float64]]]

STATISTICS: dict[str, Statistic] = {"alpha": (alpha_sums, alpha), "two-agree": (two_agree_sums, two_agree)}


def agreement(
    study: Study | View,
    statistic: str = "alpha",
    label: str | None = None,
    tokens: str = "words",
    level: Level = "token",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Agreement on marks of one category, or on any mark, pooled over documents, with an interval over documents."""
    seen = study if isinstance(study, View) else view(study)
    counted = votes(seen.study, lay(seen.study, level, tokens), [label] if label else None)
    to_sums, of_sums = STATISTICS[statistic]
    sums = to_sums(counted)[0]
    signature = Signature.of(
        statistic=statistic,
        unit=level,
        label=label or "any",
        tokens=tokens if level == "token" else None,
        **seen.fields,
        annotators=seen.study.annotations["annotator"].n_unique(),
        documents=len(counted.readers),
        draws=draws,
        seed=seed,
    )
    value = float(of_sums(sums.sum(axis=0)[None])[0])
    if math.isnan(value):
        return Estimate(value, math.nan, math.nan, signature, why_undefined(counted))
    low, high = interval(sums, of_sums, draws, np.random.default_rng(seed))
    return Estimate(value, low, high, signature)


def why_undefined(counted: Votes, row: int = 0) -> str:
    """Why agreement on a category has no value."""
    if not len(counted.readers):
        return "no annotations"
    if (counted.readers < 2).all():
        return "no text was read by two annotators"
    pairable = counted.m >= 2
    return "everybody marked everything" if counted.marked[row][pairable].any() else "nobody marked anything"
