"""Agreement on one label in closed form: a test oracle for `agree`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.results import Estimate, Signature
from finecomb.core.study import Study
from finecomb.statistics.agreement.alpha import (
    binary_alpha_from_sums,
    two_agree_percentage,
    two_agree_sums,
    undefined_agreement_reason,
)
from finecomb.statistics.inference.resampling import Floats, Sums, bootstrap_interval_from_sums
from finecomb.statistics.measures.unit_grid import UnitLevel, UnitVotes, build_unit_grid, count_unit_votes
from finecomb.statistics.selection.view import View, as_view


def binary_alpha_sums(tallies: UnitVotes) -> Sums:
    """Compute D_o, n_1 and n of each document, (categories, documents, 3); 0 with fewer than two annotators."""
    k, m = tallies.marked.astype(np.float64), tallies.annotators_per_unit.astype(np.float64)
    pairable = m >= 2
    disagreement = np.where(pairable, 2 * k * (m - k) / np.maximum(m - 1, 1), 0.0)
    ones, total = np.where(pairable, k, 0.0), np.broadcast_to(np.where(pairable, m, 0.0), k.shape)
    return np.stack([tallies.grid.sum_per_document(values) for values in (disagreement, ones, total)], axis=-1)


def undefined_category_reason(tallies: UnitVotes, row: int = 0) -> str:
    """Return the reason why agreement on a category is undefined."""
    return undefined_agreement_reason(
        tallies.readers, bool(tallies.marked[row][tallies.annotators_per_unit >= 2].any())
    )


Statistic = tuple[Callable[[UnitVotes], Sums], Callable[[Sums], Floats]]

STATISTICS: dict[str, Statistic] = {
    "alpha": (binary_alpha_sums, binary_alpha_from_sums),
    "two-agree": (two_agree_sums, two_agree_percentage),
}


def closed_form_agreement(
    study: Study | View,
    statistic: str = "alpha",
    label: str | None = None,
    tokens: str = "words",
    level: UnitLevel = "token",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Compute agreement on marks of one category, or on any mark, pooled over documents, with an interval."""
    selection = as_view(study)
    if label is not None and label not in selection.categories:
        raise FinecombError(f"no label is called {label!r}{did_you_mean(label, selection.categories)}")
    counted = count_unit_votes(
        selection.study, build_unit_grid(selection.study, level, tokens), [label] if label else None
    )
    if statistic not in STATISTICS:
        raise FinecombError(f"no such statistic: {statistic!r}{did_you_mean(statistic, STATISTICS)}; `agree` has more")
    to_sums, of_sums = STATISTICS[statistic]
    sums = to_sums(counted)[0]
    signature = Signature.from_fields(
        statistic=statistic,
        unit=level,
        label=label or "any",
        tokens=tokens if level == "token" else None,
        **selection.fields,
        annotators=selection.study.annotations["annotator"].n_unique(),
        documents=len(counted.readers),
        draws=draws,
        seed=seed,
    )
    value = float(of_sums(sums.sum(axis=0)[None])[0])
    if math.isnan(value):
        return Estimate(value, math.nan, math.nan, signature, undefined_category_reason(counted))
    low, high = bootstrap_interval_from_sums(sums, of_sums, draws, np.random.default_rng(seed))
    return Estimate(value, low, high, signature)
