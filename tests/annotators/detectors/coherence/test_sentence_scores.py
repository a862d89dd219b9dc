"""Tests of thresholds, mixtures and scores against slow definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.detection_tables import label_recalls_at_precision, span_iou
from finecomb.annotators.detectors.coherence.narrative import MarkedSpan, Narrative, NarrativeSentence
from finecomb.annotators.detectors.coherence.sentence_scores import (
    best_f1_threshold,
    fit_mixture,
    mixture_probabilities,
)
from finecomb.statistics.gold.unit_scores import area_under_roc_curve, threshold_at_precision

RANKED = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=12)


def arrays(pairs: list[tuple[int, bool]]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.array([chance / 5 for chance, _ in pairs]), np.array([truth for _, truth in pairs])


def f1(chances: NDArray[Any], truth: NDArray[Any], threshold: float) -> float:
    marked = chances >= threshold
    return float(2 * (marked & truth).sum() / max(marked.sum() + truth.sum(), 1))


@given(RANKED)
def test_no_threshold_beats_the_best(pairs: list[tuple[int, bool]]) -> None:
    chances, truth = arrays(pairs)
    best = best_f1_threshold(chances, truth)
    if truth.any():
        assert f1(chances, truth, best) == pytest.approx(max(f1(chances, truth, value) for value in chances))
    else:
        assert best == 1


@given(RANKED)
def test_the_area_is_the_share_of_pairs_in_order(pairs: list[tuple[int, bool]]) -> None:
    chances, truth = arrays(pairs)
    slow = [1.0 if one > other else 0.5 if one == other else 0.0 for one in chances[truth] for other in chances[~truth]]
    assert area_under_roc_curve(chances, truth) == pytest.approx(np.mean(slow) if slow else np.nan, nan_ok=True)


@given(RANKED)
def test_the_threshold_at_a_precision_marks_most(pairs: list[tuple[int, bool]]) -> None:
    chances, truth = arrays(pairs)
    precise = [value for value in set(chances) if truth[chances >= value].mean() >= 0.7]
    assert threshold_at_precision(chances, truth, 0.7) == (min(precise) if precise else np.inf)


def test_recalls_are_those_of_the_marked_sentences() -> None:
    spans = [("char",), (), ("ref", "char"), ("ref",)]
    sentences = tuple(
        NarrativeSentence(at, at + 1, 0, at == 0, tuple(MarkedSpan(at, at + 1, label) for label in labels))
        for at, labels in enumerate(spans)
    )
    text = Narrative("t", "abcd", sentences)
    recalls = label_recalls_at_precision([text], [np.array([0.9, 0.1, 0.8, 0.05])], ("char", "ref"), 0.9)
    assert recalls == {"char": 1.0, "ref": 0.5, "any": pytest.approx(2 / 3)}


def test_a_mixture_calibrates_and_trusts_the_model_that_knows() -> None:
    rng = np.random.default_rng(0)
    knows, noise = rng.normal(size=2000), rng.normal(size=2000)
    truth = rng.random(2000) < 1 / (1 + np.exp(-(2 * knows - 1)))
    odds = np.stack([knows, noise], axis=1)
    weights = fit_mixture(odds, truth)
    assert weights == pytest.approx([2, 0, -1], abs=0.25)
    assert mixture_probabilities(odds, weights).mean() == pytest.approx(truth.mean(), abs=0.01)


def test_spans_share_characters() -> None:
    gold = (MarkedSpan(0, 10, "ref"), MarkedSpan(30, 40, "char"))
    assert span_iou([(5, 15)], gold, "ref") == pytest.approx(5 / 15)
    assert span_iou([(0, 40)], gold, "ref") == 0.25  # a whole sentence always overlaps but has a low IoU
