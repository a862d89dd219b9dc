"""Scores of sentences and tokens, how two models' scores become one chance, and where a sentence counts as wrong."""

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
    """What a model says about one text."""

    sentences: Floats
    """(sentences, labels + 1): chances of each label, and of any in the last column."""
    tokens: Floats
    """(tokens, labels): chances that a token belongs to an error; no tokens where the model gives no spans."""
    offsets: Ints
    """(tokens, 2)."""


class SentenceScorer(typing.Protocol):
    """Gives every sentence of some texts its chances."""

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text."""
        ...


def sentence_only_scores(chances: Floats) -> TextScores:
    """Scores of a model that gives no spans: chances (sentences,) or (sentences, labels + 1)."""
    rows = chances[:, None] if chances.ndim == 1 else chances
    return TextScores(rows, np.zeros((0, rows.shape[1] - 1)), np.zeros((0, 2), dtype=np.int64))


def logit(chances: Floats) -> Floats:
    """Log odds, cut at one in a million."""
    safe = np.clip(chances, 1e-6, 1 - 1e-6)
    odds: Floats = np.log(safe / (1 - safe))
    return odds


def sigmoid(odds: Floats) -> Floats:
    """Chances of log odds."""
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return chances


def fit_mixture(odds: Floats, truth: Bools, ridge: float = 3.0) -> Floats:
    """Weights (models + 1,) by which log odds (examples, models) become calibrated ones, the constant last.

    Logistic regression with a ridge towards the plain mean: with few examples the models simply share.
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


def mix_log_odds(odds: Floats, weights: Floats) -> Floats:
    """Chances from log odds (examples, models) and a mixture's weights."""
    return sigmoid(odds @ weights[:-1] + weights[-1])


def best_threshold(chances: Floats, truth: Bools) -> float:
    """The chance from which marking gives the highest F1; 1 where nothing is true."""
    if not truth.any():
        return 1.0
    order = np.argsort(-chances, kind="stable")
    right = np.cumsum(truth[order])
    last = np.append(chances[order][1:] < chances[order][:-1], True)  # equal chances are marked together
    f1 = np.where(last, 2 * right / (np.arange(1, len(order) + 1) + truth.sum()), -1.0)
    return float(chances[order][int(f1.argmax())])
