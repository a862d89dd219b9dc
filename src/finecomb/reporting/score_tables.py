"""Scores as rows: flat for programs, each ratio with its interval in one cell for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from finecomb.core.estimate import Estimate, Finding
from finecomb.reporting.tables import BestText, Row, finding_rows
from finecomb.statistics.gold.scores import Score
from finecomb.statistics.selection.view import ANY

RATIOS = ("recall", "precision", "f1")


def score_rows(scores: Sequence[Score]) -> tuple[list[Row], str]:
    """Flat rows, and the signature that all of them share; a row's own adds what is particular to it."""
    signatures, shared = finding_rows([Finding({}, score.recall) for score in scores])
    rows = zip(scores, signatures, strict=True)
    return [score.row() | {"signature": rest["signature"]} for score, rest in rows], shared


def format_score_rows(scores: Sequence[Score], best: Collection[tuple[str, str]] = (), digits: int = 3) -> list[Row]:
    """Rows for people: `0.288 [0.253–0.322]`, or in words why there is no number; the rule stands in the signature.

    `best` are judge and ratio of what is best beyond chance over all labels.
    """
    rows: list[Row] = []
    for score in scores:
        flat = score.row()
        counts = {name: flat[name] for name in ("gold", "predicted", "matched")}
        right = {"right": flat["right"]} if any(row.matched != row.right for row in scores) else {}
        ratios = {name: _format_estimate(getattr(score, name), digits) for name in RATIOS}
        if score.columns.get("label") == ANY:
            ratios |= {name: BestText(ratios[name]) for name in RATIOS if (score.columns["judge"], name) in best}
        about = {name: value for name, value in score.columns.items() if name != "match"}
        rows.append({**about, **counts, **right, **ratios})
    return rows


def _format_estimate(estimate: Estimate, digits: int) -> str:
    """With an interval that a narrow table does not break in two."""
    return estimate.short(digits).replace(", ", "–")


def score_findings(scores: Sequence[Score]) -> list[Finding]:
    """Recall, precision and F1 of every score as findings, each ratio a measure of its own."""
    return [Finding({"measure": name, **score.columns}, getattr(score, name)) for name in RATIOS for score in scores]
