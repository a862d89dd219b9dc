"""Correlation between the number of errors that an annotator marks in a text and the annotator's rating of the text."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl
import scipy  # submodules load on first use, which keeps start-up fast

from finecomb.core.frames import json_entry
from finecomb.core.results import Finding, Signature
from finecomb.statistics.inference.resampling import draw_annotation_resamples
from finecomb.statistics.measures.mark_overlap import correlation_sums, estimate_pearson
from finecomb.statistics.measures.unit_grid import Floats, build_annotation_matrix
from finecomb.statistics.selection.view import View, back_off_labels_to_groups

ALL_ANNOTATORS = "all"


def mark_count_rating_correlation(
    view: View,
    question: str,
    ratings: View | None = None,
    *,
    detail: Literal["label", "group"] = "label",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Compute Pearson's r between the number of marks and the rating that an annotator gave to the same text.

    Goyal et al. (2022), Table 3 and footnote 4. `question` is a question about the document. If ratings were given
    under another protocol, `ratings` is the view of that protocol, joined by document and annotator. There is one row
    per annotator, and one row, `all`, that pools all pairs. Columns: measure, label, annotator, n, p. p comes from a
    two-tailed t-test of r, which assumes independent pairs. The interval resamples documents and does not make this
    assumption. The result is NaN with fewer than three pairs, or if counts or ratings do not vary.
    """
    marked = back_off_labels_to_groups(view) if detail == "group" else view
    matrix = build_annotation_matrix(marked, (), "document")
    rating = _annotation_ratings(matrix.rows, ratings or view, question)
    counts, is_rated = matrix.sum_by_category(), np.isfinite(rating)
    names = matrix.rows["annotator"].to_numpy()
    annotators = [(ALL_ANNOTATORS, is_rated), *((str(name), is_rated & (names == name)) for name in sorted(set(names)))]
    findings = []
    for annotator, mask in annotators:
        positions = np.flatnonzero(mask)
        resampled = draw_annotation_resamples(
            matrix.document_positions[positions],
            matrix.annotator_positions[positions],
            draws,
            np.random.default_rng(seed),
            "documents",
        )
        fields = {
            "annotator": annotator,
            "question": question,
            **view.fields,
            "documents": resampled.documents.shape[1],
        }
        for row, label in enumerate(matrix.labels):
            sums = correlation_sums(
                counts[row, positions], rating[positions], resampled.document, resampled.documents.shape[1]
            )
            signature = Signature.from_fields(statistic="count-rating", label=label, **fields, draws=draws, seed=seed)
            estimate = estimate_pearson(sums, resampled, signature)
            columns = {"measure": "count-rating", "label": label, "annotator": annotator, "n": len(positions)}
            findings.append(Finding({**columns, "p": pearson_p_value(estimate.value, len(positions))}, estimate))
    return findings


def _annotation_ratings(rows: pl.DataFrame, ratings: View, question: str) -> Floats:
    """Return the rating of each annotation, (annotations,); NaN where it is missing."""
    answer = json_entry("answers", question).cast(pl.Float64, strict=False)
    answers = ratings.study.annotations.select("document", "annotator", rating=answer).drop_nulls()
    answers = answers.unique(["document", "annotator"], keep="first", maintain_order=True)
    joined = rows.select("document", "annotator").join(
        answers, on=["document", "annotator"], how="left", maintain_order="left"
    )
    return joined["rating"].fill_null(np.nan).to_numpy()


def pearson_p_value(r: float, n: int) -> float:
    """Return the p-value of Pearson's r for the null hypothesis of no correlation, from t with n - 2 df."""
    if math.isnan(r) or n < 3:
        return math.nan
    if abs(r) == 1:
        return 0.0
    return float(2 * scipy.stats.t.sf(abs(r) * math.sqrt((n - 2) / (1 - r * r)), n - 2))
