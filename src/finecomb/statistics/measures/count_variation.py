"""Coefficient of variation of mark counts in samples of a given number of documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from finecomb.core.errors import FinecombError, param
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import (
    draw_annotation_resamples,
    estimate_with_interval,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.unit_grid import Floats, build_annotation_matrix
from finecomb.statistics.selection.view import View


def mark_count_variation(
    view: View,
    sizes: Sequence[int] = (50,),
    by: Sequence[str] = (),
    *,
    replace: bool = True,
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    r"""Compute the coefficient of variation (sd / mean) of the number of marks in n random documents, by label.

    Dou et al. (2022), appendix C, Table 5 and Figure 9. The paper draws 1,000 samples. Here, mean and sd are the exact
    limits $n \bar c$ and $\sqrt n \sigma$ over document counts $c_d$; without replacement, sd is multiplied by
    $\sqrt{(N - n) / (N - 1)}$. The interval resamples the study's N documents. Columns: measure, label, documents, the
    `by` columns, mean, sd. The result is NaN without marks, with a single document, and without replacement if n is at
    least N.
    """
    if any(size < 1 for size in sizes):
        raise FinecombError(f"{param('sizes')} must be at least 1, found {min(sizes)}")
    matrix = build_annotation_matrix(view, by, "document")  # level document: the counts need no tokens
    counts = matrix.sum_by_category()
    findings = []
    for columns, members in matrix.groups(by):
        resampled = draw_annotation_resamples(
            matrix.document_positions[members],
            matrix.annotator_positions[members],
            draws,
            np.random.default_rng(seed),
            "documents",
        )
        document_counts = resampled.sum_annotations_by_document(counts[:, members])  # c_d, (labels, N)
        resampled_variation = coefficient_of_variation(resampled.documents, document_counts)
        group = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        fields: dict[str, Any] = {"replace": "yes" if replace else "no", "of": group, **view.fields}
        fields |= {"among": document_counts.shape[1], "draws": draws, "seed": seed}
        for size in sizes:
            for row, label in enumerate(matrix.labels):
                signature = Signature.from_fields(statistic="variation", label=label, documents=size, **fields)
                moments, estimate = _variation_estimate(
                    size, document_counts[row], resampled_variation[:, row], replace, signature
                )
                row_columns = {"measure": "variation", "label": label, "documents": size}
                findings.append(Finding({**row_columns, **columns, **moments}, estimate))
    return findings


def coefficient_of_variation(weights: Floats, counts: Floats) -> Floats:
    """Compute the weighted coefficient of variation over documents, (draws, labels); NaN where the mean is 0."""
    total = weights.sum(axis=1, keepdims=True)
    if not total.all():
        return np.full((len(weights), len(counts)), np.nan)
    mean, square = weights @ counts.T / total, weights @ (counts**2).T / total
    return ratio_or_nan(np.sqrt(np.maximum(square - mean**2, 0)), mean)


def _variation_estimate(
    size: int, counts: Floats, again: Floats, replace: bool, signature: Signature
) -> tuple[dict[str, float], Estimate]:
    """Return the mean and sd of the number of marks in `size` documents, and their coefficient of variation."""
    mean = float(size * counts.mean()) if len(counts) else math.nan
    if why := _undefined_reason(size, counts, replace):
        return {"mean": mean, "sd": math.nan}, undefined_estimate(signature, why)
    left = 1.0 if replace else (len(counts) - size) / (len(counts) - 1)  # finite population correction
    factor = math.sqrt(left / size)
    value = float(counts.std() / counts.mean()) * factor
    return {"mean": mean, "sd": mean * value}, estimate_with_interval(value, again * factor, signature)


def _undefined_reason(size: int, counts: Floats, replace: bool) -> str:
    if not len(counts):
        return "no annotations"
    if not counts.any():
        return "no marks"
    if len(counts) < 2:
        return "a single document has no variation"
    if not replace and size >= len(counts):
        return f"{size} documents drawn without replacement from {len(counts)} have no variation"
    return ""
