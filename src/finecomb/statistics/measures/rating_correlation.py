"""Do people who mark more errors in a text also rate it lower?"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick

from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import json_entry
from finecomb.statistics.inference.resampling import draw_annotation_resamples
from finecomb.statistics.measures.annotation_matrix import Floats, back_off_labels_to_groups, build_annotation_matrix
from finecomb.statistics.measures.mark_overlap import correlation_sums, estimate_pearson
from finecomb.statistics.selection.view import View

ALL = "all"


def count_rating_correlation(
    view: View,
    question: str,
    ratings: View | None = None,
    *,
    detail: Literal["label", "group"] = "label",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Pearson's r between an annotator's own number of marks in a text and their own rating of it.

    Goyal et al. (2022), Table 3 and footnote 4. `question` is a question of the document; where ratings were given
    under another protocol, `ratings` is the view of that, joined by document and annotator. One row for each annotator
    and, as `all`, one for all pairs of everybody together. Columns: measure, label, annotator, n, p (two-tailed t-test
    of r, which takes the pairs for independent; the interval does not, it draws documents again). NaN with fewer than
    three pairs, or when counts or ratings do not vary.
    """
    marked = back_off_labels_to_groups(view) if detail == "group" else view
    reading = build_annotation_matrix(marked, (), "document")
    rating = _annotation_ratings(reading.rows, ratings or view, question)
    counts, is_rated = reading.sum_by_category(), np.isfinite(rating)
    names = reading.rows["annotator"].to_numpy()
    annotators = [(ALL, is_rated), *((str(name), is_rated & (names == name)) for name in sorted(set(names)))]
    findings = []
    for annotator, mine in annotators:
        places = np.flatnonzero(mine)
        resampled = draw_annotation_resamples(
            reading.document_positions[places],
            reading.annotator_positions[places],
            draws,
            np.random.default_rng(seed),
            "documents",
        )
        who = {"annotator": annotator, "question": question, **view.fields, "documents": resampled.documents.shape[1]}
        for row, label in enumerate(reading.labels):
            sums = correlation_sums(
                counts[row, places], rating[places], resampled.document, resampled.documents.shape[1]
            )
            signature = Signature.from_fields(statistic="count-rating", label=label, **who, draws=draws, seed=seed)
            estimate = estimate_pearson(sums, resampled, signature)
            columns = {"measure": "count-rating", "label": label, "annotator": annotator, "n": len(places)}
            findings.append(Finding({**columns, "p": pearson_p_value(estimate.value, len(places))}, estimate))
    return findings


def _annotation_ratings(rows: pl.DataFrame, ratings: View, question: str) -> Floats:
    """Each annotation's own rating, (annotations,); NaN where there is none."""
    answer = json_entry("answers", question).cast(pl.Float64, strict=False)
    answers = ratings.study.annotations.select("document", "annotator", rating=answer).drop_nulls()
    answers = answers.unique(["document", "annotator"], keep="first", maintain_order=True)
    joined = rows.select("document", "annotator").join(
        answers, on=["document", "annotator"], how="left", maintain_order="left"
    )
    return joined["rating"].fill_null(np.nan).to_numpy()


def pearson_p_value(r: float, n: int) -> float:
    """p of Pearson's r under no correlation, from t with n - 2 degrees of freedom."""
    if math.isnan(r) or n < 3:
        return math.nan
    if abs(r) == 1:
        return 0.0
    return float(2 * scipy.stats.t.sf(abs(r) * math.sqrt((n - 2) / (1 - r * r)), n - 2))
