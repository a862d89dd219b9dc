"""Means that may be monitored while a study is annotated: marks per text, and the share of texts with an error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finecomb.core.results import Estimate, Finding, Signature
from finecomb.statistics.inference.confidence_sequence import (
    MIN_COUNT_TEXTS,
    MonitoredMean,
    confidence_sequence_boundary,
    monitored_mean,
)
from finecomb.statistics.inference.mean_interval import hall_interval
from finecomb.statistics.judges.ppi import TextValues, ppi_mean
from finecomb.statistics.judges.text_allocation import TextStrata
from finecomb.statistics.selection.view import View

Floats = NDArray[np.float64]
ERROR_SHARE, MARKS_PER_TEXT = "texts with an error", "marks per text"


def monitored_means(view: View, strata: TextStrata | None = None) -> list[Finding]:
    """Estimate marks per text and the share of texts with an error, with intervals that stay valid during monitoring.

    The intervals are confidence sequences. Columns: measure, kind, says, texts. Only the first annotation of a text
    counts, so that its value does not change with later annotations. `strata` are the strata from which texts were
    drawn with unequal probabilities; each counts with its share of all texts.
    """
    # Texts in order of first submission, and the number of marks of that first annotation
    counts = view.study.marks.group_by("annotation").len()
    rows = view.study.annotations.sort("submitted", "id", nulls_last=True)
    first = rows.unique("document", keep="first", maintain_order=True).select("document", annotation="id")
    joined = first.join(counts, on="annotation", how="left", maintain_order="left")
    documents, marks = joined["document"].to_list(), joined["len"].fill_null(0).to_numpy().astype(np.float64)
    sides = {ERROR_SHARE: (marks > 0).astype(np.float64), MARKS_PER_TEXT: marks}
    findings = []
    for measure, values in sides.items():
        bounds = (0.0, 1.0) if measure == ERROR_SHARE else None
        mean = (
            monitored_mean(values, bounds) if strata is None else stratified_monitored_mean(documents, values, strata)
        )
        signature = Signature.from_fields(
            statistic="watched mean", measure=measure, kind=mean.kind, texts=mean.texts,
            strata=len(strata.names) if strata else None, **view.fields,
        )  # fmt: skip
        columns = {"measure": measure, "kind": mean.kind, "says": mean.description, "texts": mean.texts}
        undefined = math.isnan(mean.value)
        why = mean.why or ("no text has been submitted" if undefined else "")
        low, high = (math.nan, math.nan) if undefined else (mean.low, mean.high)
        findings.append(Finding(columns, Estimate(mean.value, low, high, signature, why)))
    return findings


def stratified_monitored_mean(documents: Sequence[str], values: Floats, strata: TextStrata) -> MonitoredMean:
    """Estimate the mean over all texts if texts were drawn by stratum; approximate, and requires at least 30 texts."""
    position_by_document = {document: place for place, document in enumerate(strata.documents)}
    inside = [index for index, document in enumerate(documents) if document in position_by_document]
    human, read = values[inside], np.array([position_by_document[documents[index]] for index in inside], dtype=np.int64)
    n = len(human)
    counts = np.bincount(strata.numbers[read], minlength=len(strata.names))
    shares = np.bincount(strata.numbers, minlength=len(strata.names)) / len(strata.numbers)
    if n < MIN_COUNT_TEXTS or counts.min() < 2:
        why = (
            f"an interval requires {MIN_COUNT_TEXTS} submitted texts with at least 2 per stratum; found {n}, "
            f"with {int(counts.min())} in the smallest stratum"
        )
        value = float(human.mean()) if n else math.nan
        if counts.min():
            value = float((np.bincount(strata.numbers[read], human, len(counts)) / counts) @ shares)
        return MonitoredMean("counts", n, value, math.nan, math.nan, why)
    mean = ppi_mean(TextValues(human, read, np.zeros((0, len(strata.documents))), strata.numbers))
    if not mean.spread.variance > 0:
        why = "values do not vary within any stratum, so there is no interval"
        return MonitoredMean("counts", n, mean.value, math.nan, math.nan, why)
    low, high = hall_interval(mean.value, mean.spread, quantile=confidence_sequence_boundary(n))
    return MonitoredMean("counts", n, mean.value, max(low, 0.0), high)
