"""Rows of score tables: flat rows for programs, and rows for display with a ratio and its interval in one cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from finecomb.core.results import Estimate, Finding
from finecomb.reporting.tables import BestText, Row, finding_rows
from finecomb.statistics.gold.scores import Score
from finecomb.statistics.selection.view import ANY_LABEL

RATIOS = ("recall", "precision", "f1")


def score_rows(scores: Sequence[Score]) -> tuple[list[Row], str]:
    """Return flat rows and the signature they share; the signature of a row contains only what differs."""
    signatures, shared = finding_rows([Finding({}, score.recall) for score in scores])
    rows = zip(scores, signatures, strict=True)
    return [score.row() | {"signature": own_fields["signature"]} for score, own_fields in rows], shared


def format_score_rows(scores: Sequence[Score], best: Collection[tuple[str, str]] = (), digits: int = 3) -> list[Row]:
    """Return rows for display, with cells such as `0.288 [0.253–0.322]` or the reason why a ratio is undefined.

    The match rule is in the signature. `best` contains the pairs of judge and ratio whose score is printed in bold.
    """
    rows: list[Row] = []
    for score in scores:
        flat = score.row()
        counts = {name: flat[name] for name in ("gold", "predicted", "matched")}
        right = {"right": flat["right"]} if any(row.matched != row.right for row in scores) else {}
        ratios = {name: _format_estimate(getattr(score, name), digits) for name in RATIOS}
        if score.columns.get("label") == ANY_LABEL:
            ratios |= {name: BestText(ratios[name]) for name in RATIOS if (score.columns["judge"], name) in best}
        about = {name: value for name, value in score.columns.items() if name != "match"}
        rows.append({**about, **counts, **right, **ratios})
    return rows


def _format_estimate(estimate: Estimate, digits: int) -> str:
    """Format an estimate with non-breaking spaces, so that narrow tables do not split its interval."""
    return estimate.short(digits).replace(", ", "–")
