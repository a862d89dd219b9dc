"""How much error counts would vary with a given number of documents."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.measure.reading import Floats, read_view
from finecomb.measure.resample import draw, percentiles
from finecomb.measure.view import View


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

    Dou et al. (2022), appendix C, Table 5 and Figure 9. They draw 1,000 times; here mean and sd are what endless drawing
    gives: $n \bar c$ and $\sqrt n \sigma$ over documents' counts $c_d$, times $\sqrt{(N - n) / (N - 1)}$ without
    replacement. The interval comes from drawing the study's N documents again. Columns: measure, label, documents, the
    `by` columns, mean, sd. NaN without marks, and without replacement when all documents or more are asked for.
    """
    if any(size < 1 for size in sizes):
        raise FinecombError(f"documents to draw are at least 1, not {min(sizes)}")
    reading = read_view(view, by, "document")  # the texts are not looked at
    counts = reading.spread()
    findings = []
    for columns, members in reading.groups(by):
        drawn = draw(
            reading.documents[members], reading.annotators[members], draws, np.random.default_rng(seed), "documents"
        )
        each = drawn.per_document(counts[:, members])  # c_d, (labels, N)
        again = _coefficient(drawn.documents, each)  # (draws, labels)
        once = _coefficient(np.ones((1, drawn.documents.shape[1])), each)[0]
        said = {**view.fields, "replace": "yes" if replace else "no", "of": _of(columns), "draws": draws, "seed": seed}
        for size in sizes:
            for row, label in enumerate(reading.labels):
                shown = {"measure": "variation", "label": label, "documents": size, **columns}
                signature = Signature.of(
                    statistic="variation", label=label, size=size, of_documents=each.shape[1], **said
                )
                findings.append(_finding(shown, signature, size, each[row], once[row], again[:, row], replace))
    return findings


def _of(columns: dict[str, str | None]) -> str | None:
    return "+".join(f"{name}={value}" for name, value in columns.items()) or None


def _coefficient(weights: Floats, counts: Floats) -> Floats:
    """sd / mean over documents, (draws, labels), when each counts as often as its weight; NaN where the mean is 0."""
    total = weights.sum(axis=1, keepdims=True)
    if not total.all():
        return np.full((len(weights), len(counts)), np.nan)
    mean, square = weights @ counts.T / total, weights @ (counts**2).T / total
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return np.divide(spread, mean, out=np.full_like(mean, np.nan), where=mean > 0)


def _finding(
    columns: dict[str, object],
    signature: Signature,
    size: int,
    counts: Floats,
    once: float,
    again: Floats,
    replace: bool,
) -> Finding:
    whole = len(counts)
    left = 1.0 if replace else (whole - size) / (whole - 1) if whole > 1 else 0.0  # finite population correction
    factor = math.sqrt(left / size) if left > 0 else math.nan
    mean = size * counts.mean() if whole else math.nan
    value = float(once * factor)
    columns = {**columns, "mean": float(mean), "sd": float(mean * value)}
    why = _why(size, counts, replace)
    if why:
        return Finding(columns | {"sd": math.nan}, Estimate(math.nan, math.nan, math.nan, signature, why))
    return Finding(columns, Estimate(value, *percentiles(again * factor), signature))


def _why(size: int, counts: Floats, replace: bool) -> str:
    if not len(counts):
        return "no annotations"
    if not counts.any():
        return "no marks"
    if len(counts) < 2:
        return "one document cannot vary"
    if not replace and size >= len(counts):
        return f"without replacement {size} of {len(counts)} documents leave nothing to vary"
    return ""
