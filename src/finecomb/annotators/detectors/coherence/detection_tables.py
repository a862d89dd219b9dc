"""Evaluation of sentence and span detection in the layout of the paper's Tables 10 and 11."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR_LABEL, MarkedSpan, Narrative
from finecomb.annotators.detectors.coherence.sentence_detector import find_error_spans
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, TextScores
from finecomb.statistics.gold.unit_scores import threshold_at_precision

REFERENCE_PRECISION = 0.7
"""Precision at which the paper compares recalls (appendix C.3)."""


def label_recalls_at_precision(
    texts: Sequence[Narrative], chances: Sequence[Floats], labels: Sequence[str], precision: float = REFERENCE_PRECISION
) -> dict[str, float]:
    """Return the recall of each label at the threshold where marking any error has this precision (Table 10)."""
    truth = np.concatenate([text.target_matrix(labels) for text in texts])
    every = np.concatenate(chances)
    marked = every >= threshold_at_precision(every, truth[:, -1], precision)
    totals = truth.sum(axis=0)
    return {
        label: float(truth[marked, index].sum() / totals[index]) if totals[index] else math.nan
        for index, label in enumerate([*labels, ANY_ERROR_LABEL])
    }


def label_score_rows(
    texts: Sequence[Narrative], scores: Sequence[TextScores], labels: Sequence[str], thresholds: Mapping[str, float]
) -> list[dict[str, object]]:
    """Return precision, recall and F1 over sentences for each label, with overlap and IoU of its spans (Table 11).

    Overlap is the share of correctly labelled sentences in which a predicted span overlaps a gold span. IoU is the
    mean over the same sentences of shared characters divided by all covered characters. Unlike overlap, it does not
    rise when whole sentences are marked.
    """
    rows: list[dict[str, object]] = []
    for column, label in enumerate(labels):
        gold = predicted = 0
        ratios: list[float] = []
        for text, text_scores in zip(texts, scores, strict=True):
            for sentence, row in zip(text.sentences, text_scores.sentences, strict=True):
                is_gold, is_marked = label in sentence.labels, bool(row[column] >= thresholds[label])
                gold, predicted = gold + is_gold, predicted + is_marked
                if is_gold and is_marked:
                    spans = find_error_spans(text, sentence, text_scores, label, column)
                    ratios.append(span_iou(spans, sentence.spans, label))
        right = len(ratios)
        rows.append({
            "label": label,
            "sentences": gold,
            "precision": _ratio_or_nan(right, predicted),
            "recall": _ratio_or_nan(right, gold),
            "f1": _ratio_or_nan(2 * right, gold + predicted),
            "overlap": _ratio_or_nan(sum(ratio > 0 for ratio in ratios), right),
            "iou": float(np.mean(ratios)) if ratios else math.nan,
        })  # fmt: skip
    return rows


def span_iou(spans: Sequence[tuple[int, int]], gold: Sequence[MarkedSpan], label: str) -> float:
    """Return the intersection over union of predicted and gold spans of a label, in characters."""
    ours = {offset for start, end in spans for offset in range(start, end)}
    theirs = {offset for span in gold if span.label == label for offset in range(span.start, span.end)}
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else math.nan


def _ratio_or_nan(part: int, total: int) -> float:
    return part / total if total else math.nan
