"""Text classification: tf-idf features and multinomial logistic regression.

Implemented here because the default install includes no machine learning library. A fitted classifier consists of a few
arrays, so it is saved without pickle.
"""

from __future__ import annotations

import functools
import itertools
import re
import typing
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from finecomb.corpora.critics.classifier_models import SentenceEncoder, TransformerClassifier
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.priors import SavedState
from finecomb.corpora.critics.vocabulary import has_unspaced_script, split_unspaced_text

_TOKEN_PATTERN = re.compile(r"\w+|[^\w\s]")
Matrix = Any
"""Sparse (SciPy) or dense array of shape (texts, features)."""


class FeatureExtractor(typing.Protocol):
    """Function from texts to feature vectors."""

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return features of shape (texts, features)."""
        ...

    def state(self) -> SavedState:
        """Return the state for saving."""
        ...


@dataclass(frozen=True)
class TfIdf:
    """Tf-idf features, (1 + log tf) idf, of words, punctuation and bigrams at the start of a text, with unit length."""

    words: tuple[str, ...]
    idf: Floats

    @classmethod
    def fit(cls, texts: Sequence[str], max_features: int = 5_000, min_df: int = 2) -> TfIdf:
        """Fit to the `max_features` most common terms that occur in at least `min_df` texts."""
        frequencies: Counter[str] = Counter()
        for text in texts:
            frequencies.update(set(_words_and_bigrams(text)))
        chosen = sorted(
            word for word, count in frequencies.most_common(max_features) if count >= min(min_df, len(texts))
        )
        counts = np.array([frequencies[word] for word in chosen])
        return cls(tuple(chosen), np.log((1 + len(texts)) / (1 + counts)) + 1)

    @functools.cached_property
    def _index_by_word(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def known_term_share(self, text: str) -> float:
        """Return the share of a text's words, punctuation marks and bigrams that are known; NaN if it has none."""
        words = _words_and_bigrams(text)
        return float(np.mean([word in self._index_by_word for word in words])) if words else float("nan")

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return sparse features of shape (texts, words)."""
        columns: list[int] = []
        values: list[int] = []
        ends = [0]
        for text in texts:
            counts = Counter(map(self._index_by_word.get, _words_and_bigrams(text)))
            counts.pop(None, None)
            columns += counts  # type: ignore[arg-type]
            values += counts.values()
            ends.append(len(columns))
        word_indices = np.array(columns, np.int64)
        weights = (1 + np.log(np.array(values, float))) * self.idf[word_indices]
        table = sparse.csr_array((weights, word_indices, ends), shape=(len(texts), len(self.words)))
        lengths = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)))
        return sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ table

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"features": "tfidf", "words": list(self.words), "idf": self.idf}


_MAX_CHARACTERS_PER_TEXT = 4_000  # some 600 words; the authors' classifier reads 512 tokens


def _words_and_bigrams(text: str) -> list[str]:
    """Return words and punctuation marks, followed by their bigrams.

    >>> _words_and_bigrams("Ann: see!")
    ['ann', ':', 'see', '!', 'ann :', ': see', 'see !']
    """
    text = text[:_MAX_CHARACTERS_PER_TEXT]
    tokens = split_unspaced_text(text) if has_unspaced_script(text) else _TOKEN_PATTERN.findall(text.lower())
    return tokens + [f"{first} {second}" for first, second in itertools.pairwise(tokens)]


def feature_extractor_from_state(state: SavedState) -> FeatureExtractor:
    """Rebuild a feature extractor from its saved state."""
    if state["features"] == "tfidf":
        return TfIdf(tuple(state["words"]), state["idf"])
    return SentenceEncoder(state["name"])


class Classifier(typing.Protocol):
    """Classifier that returns P(class | text)."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes that a text can have."""
        ...

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return probabilities of shape (texts, classes); rows sum to one."""
        ...

    def state(self) -> SavedState:
        """Return the state for saving."""
        ...


@dataclass(frozen=True)
class LogisticRegression:
    """Multinomial logistic regression on features."""

    classes: tuple[str, ...]
    features: FeatureExtractor
    weights: Floats
    """Weights of shape (features + 1, classes); the last row is the bias."""

    @classmethod
    def fit(
        cls, table: Matrix, labels: Sequence[str], features: FeatureExtractor, cost: float = 10.0, iterations: int = 25
    ) -> LogisticRegression:
        """Fit to features of shape (texts, features) and the class of each text.

        Minimises cost times the summed cross-entropy plus half the squared weights, without the bias, by L-BFGS.
        """
        classes = tuple(sorted(set(labels)))
        index = {name: at for at, name in enumerate(classes)}
        weights = _fit_weights(table, np.array([index[label] for label in labels]), cost, iterations)
        return cls(classes, features, weights)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return probabilities of shape (texts, classes)."""
        return self.probabilities_from_features(self.features(texts))

    def probabilities_from_features(self, table: Matrix) -> Floats:
        """Return probabilities of shape (texts, classes) from features of shape (texts, features)."""
        result: Floats = special.softmax(table @ self.weights[:-1] + self.weights[-1], axis=1)
        return result

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"classes": list(self.classes), "features": self.features.state(), "weights": self.weights}

    @classmethod
    def from_state(cls, state: SavedState) -> LogisticRegression:
        """Rebuild the classifier from its saved state."""
        return cls(tuple(state["classes"]), feature_extractor_from_state(state["features"]), state["weights"])


def classifier_from_state(state: SavedState) -> Classifier:
    """Rebuild a classifier from its saved state."""
    return TransformerClassifier.from_state(state) if "transformer" in state else LogisticRegression.from_state(state)


_ASSUMED_CURVATURE = 0.01  # rough curvature of the loss relative to the squared features; affects only speed


def _fit_weights(table: Matrix, labels: NDArray[np.int64], cost: float, iterations: int) -> Floats:
    """Return the weights with the lowest loss, shape (features + 1, classes).

    The search uses units of 1 / sqrt(curvature), so that rare and common words converge at the same rate.
    """
    texts, count = table.shape
    shape = count + 1, int(labels.max()) + 1
    across, rows = table.T, np.arange(texts)
    squares = np.append(np.asarray((table * table).sum(axis=0)), texts)
    unit = 1 / np.sqrt(1 + cost * _ASSUMED_CURVATURE * squares)[:, None]

    def loss_and_gradient(flat: Floats) -> tuple[float, Floats]:
        weights = unit * flat.reshape(shape)
        log_p = special.log_softmax(table @ weights[:-1] + weights[-1], axis=1)
        slope = np.exp(log_p)
        slope[rows, labels] -= 1
        slope *= cost
        gradient = np.empty(shape)
        gradient[:-1] = across @ slope + weights[:-1]
        gradient[-1] = slope.sum(axis=0)
        value = -cost * float(log_p[rows, labels].sum()) + 0.5 * float((weights[:-1] ** 2).sum())
        return value, (unit * gradient).ravel()

    start = np.zeros(shape[0] * shape[1])
    optimum = optimize.minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    result: Floats = unit * optimum.x.reshape(shape)
    return result
