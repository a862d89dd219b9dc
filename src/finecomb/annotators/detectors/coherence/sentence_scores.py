"""Sentence and token scores, calibrated mixtures of models, and decision thresholds."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.narrative import Narrative

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TextScores:
    """The scores of one text."""

    sentences: Floats
    """Probability of each label, and of any error in the last column, (sentences, labels + 1)."""
    tokens: Floats
    """Probability that a token is part of an error, (tokens, labels). Models that predict no spans have no rows."""
    offsets: Ints
    """Start and end of each token, (tokens, 2)."""


class SentenceScorer(typing.Protocol):
    """A model that assigns error probabilities to sentences."""

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        ...


def build_sentence_only_scores(chances: Floats) -> TextScores:
    """Build the scores of a model without spans from its probabilities, (sentences,) or (sentences, labels + 1)."""
    rows = chances[:, None] if chances.ndim == 1 else chances
    return TextScores(rows, np.zeros((0, rows.shape[1] - 1)), np.zeros((0, 2), dtype=np.int64))


def logit(chances: Floats) -> Floats:
    """Convert probabilities, clipped to [1e-6, 1 - 1e-6], to log odds."""
    safe = np.clip(chances, 1e-6, 1 - 1e-6)
    odds: Floats = np.log(safe / (1 - safe))
    return odds


def sigmoid(odds: Floats) -> Floats:
    """Convert log odds to probabilities."""
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return chances


def fit_mixture(odds: Floats, truth: Bools, ridge: float = 3.0) -> Floats:
    """Fit weights (models + 1,) that combine the models' log odds (examples, models) into calibrated log odds.

    The last weight is the constant. The fit is a logistic regression with a ridge penalty towards the mean of the
    models, which dominates with few examples.
    """
    prior = np.array([*[1 / odds.shape[1]] * odds.shape[1], 0.0])
    rows = np.concatenate([odds, np.ones((len(odds), 1))], axis=1)
    strength = np.diag([ridge] * odds.shape[1] + [1e-2])
    weights = prior.copy()
    for _ in range(50):
        chances = sigmoid(rows @ weights)
        gradient = rows.T @ (truth - chances) - strength @ (weights - prior)
        curvature = (rows * (chances * (1 - chances))[:, None]).T @ rows + strength
        step = np.linalg.solve(curvature, gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def mixture_probabilities(odds: Floats, weights: Floats) -> Floats:
    """Return the probabilities of a mixture from log odds (examples, models) and weights."""
    return sigmoid(odds @ weights[:-1] + weights[-1])


def best_f1_threshold(chances: Floats, truth: Bools) -> float:
    """Return the threshold with the highest F1, or 1 if no example is positive."""
    if not truth.any():
        return 1.0
    order = np.argsort(-chances, kind="stable")
    right = np.cumsum(truth[order])
    # Examples with equal probability are marked together.
    last = np.append(chances[order][1:] < chances[order][:-1], True)
    f1 = np.where(last, 2 * right / (np.arange(1, len(order) + 1) + truth.sum()), -1.0)
    return float(chances[order][int(f1.argmax())])
