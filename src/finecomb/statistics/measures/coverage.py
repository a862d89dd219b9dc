"""Span coverage: the share of a text's tokens covered by marks."""

from __future__ import annotations

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.results import Estimate
from finecomb.core.study import Study
from finecomb.statistics.inference.intervals import IntervalMethod
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.unit_grid import OverlapMode
from finecomb.statistics.selection.view import ANY_LABEL, View, as_view


def coverage(
    study: Study | View,
    label: str | None = None,
    tokens: str = "words",
    overlap: OverlapMode = "add",
    interval: IntervalMethod = "auto",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Compute the share of tokens covered per annotation, averaged over annotations, with an interval over documents.

    Dou et al. (2022), section 6. Annotations without marks count as 0, and texts without tokens are excluded. The
    result is NaN without annotations. A token in two marks counts twice with overlap `add`, as in Scarecrow, and once
    with `union`.
    """
    view = as_view(study)
    category = label or ANY_LABEL
    if category not in (ANY_LABEL, *view.categories):
        raise FinecombError(f"unknown label {category!r}{did_you_mean(category, view.categories)}")
    findings = measure(view, ["coverage"], tokens=tokens, overlap=overlap, interval=interval, draws=draws, seed=seed)
    return next(finding.estimate for finding in findings if finding.columns["label"] == category)
