"""Span coverage: the share of a text's tokens that its marks cover."""

from __future__ import annotations

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Estimate
from finecomb.core.study import Study
from finecomb.statistics.measures.annotation_matrix import Overlap
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.selection.view import ANY, View, as_view


def coverage(
    study: Study | View,
    label: str | None = None,
    tokens: str = "words",
    overlap: Overlap = "add",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Tokens covered / tokens of each annotation, averaged over annotations, with an interval over documents.

    Dou et al. (2022), section 6. Annotations without marks count 0; texts without tokens are left out. NaN when nobody
    has read anything. `overlap` says whether a token in two marks counts twice (`add`, Scarecrow's) or once (`union`).
    """
    whole = as_view(study)
    category = label or ANY
    if category not in (ANY, *whole.categories):
        raise FinecombError(f"no marks can have the label {category!r}{did_you_mean(category, whole.categories)}")
    findings = measure(whole, ["coverage"], tokens=tokens, overlap=overlap, draws=draws, seed=seed)
    return next(finding.estimate for finding in findings if finding.columns["label"] == category)
