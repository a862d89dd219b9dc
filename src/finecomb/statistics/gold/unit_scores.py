"""Scores of a detector for sentences, compared with gold: recall at fixed precision, and calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.frames import parse_json_object
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_and_judges import JudgeMarks
from finecomb.statistics.gold.scores import Scores
from finecomb.statistics.selection.view import ANY_LABEL

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
PRECISION_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)
CALIBRATION_BIN_COUNT = 10


@dataclass(frozen=True, slots=True)
class ScoredUnits:
    """Scores of a judge for units of text and one label, with a mask of the units where gold has that label."""

    judge: str
    label: str
    scores: Floats
    truth: Bools


def recall_at_precision_table(scores: Scores, predicted: Study) -> list[dict[str, object]]:
    """Return the recall of each label at thresholds that reach a given precision, and the area under the ROC curve.

    There is one row for `any` and one for each label with its own scores. Recall is NaN if no threshold reaches the
    precision. `area` is the probability that a unit with an error scores higher than one without.
    """
    rows: list[dict[str, object]] = []
    for units in _all_scored_units(scores, predicted):
        columns: dict[str, object] = {"judge": units.judge, "label": units.label, "units": len(units.truth)}
        columns |= {"gold": int(units.truth.sum()), "area": area_under_roc_curve(units.scores, units.truth)}
        for precision in PRECISION_LEVELS:
            threshold = threshold_at_precision(units.scores, units.truth, precision)
            recall = float((units.scores[units.truth] >= threshold).mean()) if units.truth.any() else math.nan
            columns[f"recall at {precision:.1f}"] = recall if math.isfinite(threshold) else math.nan
        rows.append(columns)
    return rows


def calibration_table(scores: Scores, predicted: Study) -> list[dict[str, object]]:
    """Return the number of units, mean score and share of errors for each tenth of the scores from 0 to 1."""
    rows: list[dict[str, object]] = []
    for units in _all_scored_units(scores, predicted):
        place = np.minimum((units.scores * CALIBRATION_BIN_COUNT).astype(np.int64), CALIBRATION_BIN_COUNT - 1)
        for number in range(CALIBRATION_BIN_COUNT):
            inside = place == number
            if inside.any():
                tenth = f"{number / CALIBRATION_BIN_COUNT:.1f}-{(number + 1) / CALIBRATION_BIN_COUNT:.1f}"
                rows.append({
                    "judge": units.judge, "label": units.label, "score": tenth, "units": int(inside.sum()),
                    "mean score": float(units.scores[inside].mean()),
                    "errors": float(units.truth[inside].mean()),
                })  # fmt: skip
    return rows


def _all_scored_units(scores: Scores, predicted: Study) -> Iterator[ScoredUnits]:
    gold: dict[str, list[tuple[int, int, str]]] = {}
    for document, label, places in scores.pair.gold.select("document", "label", "spans").iter_rows():
        gold.setdefault(document, []).extend(
            (place["start"], place["end"], label) for place in places if place["part"] == TEXT_PART
        )
    units = [unit for judge in scores.pair.judges for unit in _scored_units_of_judge(judge, predicted, gold)]
    if not units:
        raise FinecombError("no judge has sentence scores; run `finecomb detect` with a trained detector")
    yield from units


def _scored_units_of_judge(
    judge: JudgeMarks, predicted: Study, gold: dict[str, list[tuple[int, int, str]]]
) -> Iterator[ScoredUnits]:
    chosen = (pl.col("annotator") == judge.name) & pl.col("document").is_in(list(judge.documents))
    rows = [
        (
            parse_json_object(cell),
            {label for first, last, label in gold.get(document, ()) if first < end and last > start},
        )
        for document, start, end, cell in predicted.units.filter(chosen)
        .select("document", "start", "end", "scores")
        .iter_rows()
        if parse_json_object(cell)
    ]
    labels = list(dict.fromkeys(name for values, _ in rows for name in values))
    if not rows:
        return
    typed = {label for label in labels if label != ANY_LABEL}
    for label in sorted(labels, key=lambda name: (name != ANY_LABEL, labels.index(name))):
        values = np.array([float(values.get(label, 0.0)) for values, _ in rows])
        truth = [
            bool(marked & typed if typed else marked) if label == ANY_LABEL else label in marked for _, marked in rows
        ]
        yield ScoredUnits(judge.name, label, values, np.array(truth, dtype=bool))


def area_under_roc_curve(scores: Floats, truth: Bools) -> float:
    """Return the probability that a positive ranks above a negative; ties count half, and a missing class gives NaN."""
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if not positives or not negatives:
        return math.nan
    values, places = np.unique(scores, return_inverse=True)
    of_true, of_false = (np.bincount(places[side], minlength=len(values)) for side in (truth, ~truth))
    below = np.cumsum(of_false) - of_false
    return float((of_true * (below + of_false / 2)).sum() / (positives * negatives))


def threshold_at_precision(scores: Floats, truth: Bools, precision: float) -> float:
    """Return the lowest threshold at which precision is at least the given value, or infinity if there is none."""
    order = np.argsort(-scores, kind="stable")
    shares = np.cumsum(truth[order]) / np.arange(1, len(order) + 1)
    # A threshold includes all units with an equal score.
    last = np.append(scores[order][1:] < scores[order][:-1], True) if len(order) else np.zeros(0, bool)
    enough = np.flatnonzero((shares >= precision) & last)
    return float(scores[order][enough[-1]]) if len(enough) else math.inf


def recall_at_false_positive_rates(scores: Floats, truth: Bools, points: Sequence[float]) -> list[float]:
    """Return the share of positives above the thresholds with the given false positive rates."""
    thresholds = [np.quantile(scores[~truth], 1 - point) if point else math.inf for point in points]
    return [float((scores[truth] >= threshold).mean()) for threshold in thresholds]
