"""The means of a study that may be watched while people work: marks per text, and texts with an error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.statistics.inference.confidence_sequence import (
    MIN_COUNT_TEXTS,
    MonitoredMean,
    monitored_mean,
    sequence_boundary,
)
from finecomb.statistics.inference.mean_interval import hall_interval
from finecomb.statistics.judges.ppi import TextValues, ppi_mean
from finecomb.statistics.judges.text_allocation import TextStrata
from finecomb.statistics.selection.view import View

Floats = NDArray[np.float64]
ERROR_SHARE, MARKS_PER_TEXT = "texts with an error", "marks per text"


def monitored_means(view: View, strata: TextStrata | None = None) -> list[Finding]:
    """Both means with intervals that hold at every moment at once; columns: measure, kind, says, texts.

    A text counts with its first reading, so that its value does not change when others read it too. With `strata`,
    from which texts were drawn with unequal chances, strata are held in their shares.
    """
    documents, marks = _first_reading_mark_counts(view)
    sides = {ERROR_SHARE: (marks > 0).astype(np.float64), MARKS_PER_TEXT: marks}
    findings = []
    for measure, values in sides.items():
        bounds = (0.0, 1.0) if measure == ERROR_SHARE else None
        mean = (
            monitored_mean(values, bounds) if strata is None else stratified_monitored_mean(documents, values, strata)
        )
        findings.append(_monitored_mean_finding(measure, mean, view, strata))
    return findings


def _monitored_mean_finding(measure: str, mean: MonitoredMean, view: View, strata: TextStrata | None) -> Finding:
    signature = Signature.from_fields(
        statistic="watched mean", measure=measure, kind=mean.kind, texts=mean.texts,
        strata=len(strata.names) if strata else None, **view.fields,
    )  # fmt: skip
    columns = {"measure": measure, "kind": mean.kind, "says": mean.description, "texts": mean.texts}
    undefined = math.isnan(mean.value)
    why = mean.why or ("no text has been handed in" if undefined else "")
    low, high = (math.nan, math.nan) if undefined else (mean.low, mean.high)
    return Finding(columns, Estimate(mean.value, low, high, signature, why))


def _first_reading_mark_counts(view: View) -> tuple[list[str], Floats]:
    """Texts in the order in which they were first handed in, and the marks of that first reading."""
    counts = view.study.marks.group_by("annotation").len()
    rows = view.study.annotations.sort("submitted", "id", nulls_last=True)
    first = rows.unique("document", keep="first", maintain_order=True).select("document", annotation="id")
    joined = first.join(counts, on="annotation", how="left", maintain_order="left")
    return joined["document"].to_list(), joined["len"].fill_null(0).to_numpy().astype(np.float64)


def stratified_monitored_mean(documents: Sequence[str], values: Floats, strata: TextStrata) -> MonitoredMean:
    """The mean over all texts where some were drawn stratum by stratum; approximate, from 30 texts on."""
    places = {document: place for place, document in enumerate(strata.documents)}
    inside = [at for at, document in enumerate(documents) if document in places]
    human, read = values[inside], np.array([places[documents[at]] for at in inside], dtype=np.int64)
    n = len(human)
    counts = np.bincount(strata.numbers[read], minlength=len(strata.names))
    shares = np.bincount(strata.numbers, minlength=len(strata.names)) / len(strata.numbers)
    if n < MIN_COUNT_TEXTS or counts.min() < 2:
        why = f"starts when {MIN_COUNT_TEXTS} texts were handed in, two or more of every stratum; there are {n}"
        plain = float(human.mean()) if n else math.nan
        value = float(_stratum_means(human, strata.numbers[read], counts) @ shares) if counts.min() else plain
        return MonitoredMean("counts", n, value, math.nan, math.nan, why)
    mean = ppi_mean(TextValues(human, read, np.zeros((0, len(strata.documents))), strata.numbers))
    if not mean.spread.variance > 0:
        why = "all texts of a stratum have the same value, so no interval"
        return MonitoredMean("counts", n, mean.value, math.nan, math.nan, why)
    low, high = hall_interval(mean.value, mean.spread, quantile=sequence_boundary(n))
    return MonitoredMean("counts", n, mean.value, max(low, 0.0), high)


def _stratum_means(values: Floats, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> Floats:
    return np.asarray(np.bincount(numbers, values, len(counts)) / np.maximum(counts, 1), dtype=np.float64)
