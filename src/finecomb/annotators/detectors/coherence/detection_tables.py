"""How well sentences and spans are told: the layouts of the paper's Tables 10 and 11, and areas under curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR, MarkedSpan, Narrative
from finecomb.annotators.detectors.coherence.sentence_detector import error_spans
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, TextScores
from finecomb.statistics.gold.unit_scores import threshold_at_precision

REFERENCE_PRECISION = 0.7
"""Where the paper compares recalls (appendix C.3)."""


def recalls_at_precision(
    texts: Sequence[Narrative], chances: Sequence[Floats], labels: Sequence[str], precision: float = REFERENCE_PRECISION
) -> dict[str, float]:
    """Table 10: recall of each label where marking sentences for any error is so precise; `any` is for all."""
    truth = np.concatenate([text.targets(labels) for text in texts])
    every = np.concatenate(chances)
    marked = every >= threshold_at_precision(every, truth[:, -1], precision)
    totals = truth.sum(axis=0)
    return {
        label: float(truth[marked, at].sum() / totals[at]) if totals[at] else math.nan
        for at, label in enumerate([*labels, ANY_ERROR])
    }


def label_score_rows(
    texts: Sequence[Narrative], scores: Sequence[TextScores], labels: Sequence[str], thresholds: Mapping[str, float]
) -> list[dict[str, object]]:
    """Table 11: precision, recall and F1 of each label by sentence, with overlap and IoU of its spans.

    Overlap is the share of sentences with the right label in which a span meets one of gold; IoU is the mean there of
    characters in both over characters in either, which whole sentences cannot raise.
    """
    return [_label_row(texts, scores, label, at, thresholds[label]) for at, label in enumerate(labels)]


def _label_row(
    texts: Sequence[Narrative], scores: Sequence[TextScores], label: str, column: int, threshold: float
) -> dict[str, object]:
    gold = predicted = right = 0
    overlaps: list[bool] = []
    ratios: list[float] = []
    for text, text_scores in zip(texts, scores, strict=True):
        for sentence, row in zip(text.sentences, text_scores.sentences, strict=True):
            is_gold, is_marked = label in sentence.labels, bool(row[column] >= threshold)
            gold, predicted, right = gold + is_gold, predicted + is_marked, right + (is_gold and is_marked)
            if is_gold and is_marked:
                ratio = span_iou(error_spans(text, sentence, text_scores, label, column), sentence.spans, label)
                overlaps.append(ratio > 0)
                ratios.append(ratio)
    return {
        "label": label, "sentences": gold, "precision": _share(right, predicted), "recall": _share(right, gold),
        "f1": _share(2 * right, gold + predicted), "overlap": _mean(overlaps), "iou": _mean(ratios),
    }  # fmt: skip


def span_iou(spans: Sequence[tuple[int, int]], gold: Sequence[MarkedSpan], label: str) -> float:
    """Characters in both over characters in either."""
    ours = {at for start, end in spans for at in range(start, end)}
    theirs = {at for span in gold if span.label == label for at in range(span.start, span.end)}
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else math.nan


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
