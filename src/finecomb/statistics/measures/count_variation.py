"""How much error counts would vary with a given number of documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import (
    draw_annotation_resamples,
    estimate_with_interval,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.annotation_matrix import Floats, build_annotation_matrix
from finecomb.statistics.selection.view import View


def variation(
    view: View,
    sizes: Sequence[int] = (50,),
    by: Sequence[str] = (),
    *,
    replace: bool = True,
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    r"""Coefficient of variation (sd / mean) of the number of marks in `n` documents drawn from the study's, by label.

    Dou et al. (2022), appendix C, Table 5 and Figure 9. They draw 1,000 times; here mean and sd are what endless
    drawing gives: $n \bar c$ and $\sqrt n \sigma$ over documents' counts $c_d$, times $\sqrt{(N - n) / (N - 1)}$
    without replacement. The interval comes from drawing the study's N documents again. Columns: measure, label,
    documents, the `by` columns, mean, sd. NaN without marks, and without replacement when all documents are asked for.
    """
    if any(size < 1 for size in sizes):
        raise FinecombError(f"documents to draw are at least 1, not {min(sizes)}")
    reading = build_annotation_matrix(view, by, "document")  # the texts are not looked at
    counts = reading.sum_by_category()
    findings = []
    for columns, at in reading.groups(by):
        resampled = draw_annotation_resamples(
            reading.document_positions[at],
            reading.annotator_positions[at],
            draws,
            np.random.default_rng(seed),
            "documents",
        )
        document_counts = resampled.sum_per_document(counts[:, at])  # c_d, (labels, N)
        again = coefficient_of_variation(resampled.documents, document_counts)
        of = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        fields: dict[str, Any] = {"replace": "yes" if replace else "no", "of": of, **view.fields}
        fields |= {"among": document_counts.shape[1], "draws": draws, "seed": seed}
        for size in sizes:
            for row, label in enumerate(reading.labels):
                signature = Signature.from_fields(statistic="variation", label=label, documents=size, **fields)
                more, estimate = _variation_estimate(size, document_counts[row], again[:, row], replace, signature)
                about = {"measure": "variation", "label": label, "documents": size}
                findings.append(Finding({**about, **columns, **more}, estimate))
    return findings


def coefficient_of_variation(weights: Floats, counts: Floats) -> Floats:
    """sd / mean over documents, (draws, labels), when each counts as often as its weight; NaN where the mean is 0."""
    total = weights.sum(axis=1, keepdims=True)
    if not total.all():
        return np.full((len(weights), len(counts)), np.nan)
    mean, square = weights @ counts.T / total, weights @ (counts**2).T / total
    return ratio_or_nan(np.sqrt(np.maximum(square - mean**2, 0)), mean)


def _variation_estimate(
    size: int, counts: Floats, again: Floats, replace: bool, signature: Signature
) -> tuple[dict[str, float], Estimate]:
    """Mean and sd of the sum over `size` documents, and the coefficient."""
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
        return "one document cannot vary"
    if not replace and size >= len(counts):
        return f"without replacement, {size} of {len(counts)} documents leave nothing to vary"
    return ""
