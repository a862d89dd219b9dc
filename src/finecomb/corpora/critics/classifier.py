"""What kind of text is this? Features of a text, and multinomial logistic regression on them.

Small enough to be ours: the default install needs no learning library, and a fitted classifier is a few arrays, so that
it is stored without pickle.
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

from finecomb.corpora.critics.classifier_models import Encoder, Transformer
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.priors import SavedState
from finecomb.corpora.critics.vocabulary import is_unspaced, unspaced_words

_TOKEN_PATTERN = re.compile(r"\w+|[^\w\s]")
Matrix = Any
"""(texts, features): a SciPy sparse or a dense array."""


class FeatureExtractor(typing.Protocol):
    """From texts to numbers."""

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """(texts, features)."""
        ...

    def state(self) -> SavedState:
        """For storage."""
        ...


@dataclass(frozen=True)
class TfIdf:
    """(1 + log tf) idf of words, signs and pairs of neighbours; a text has length 1, and only its beginning is read."""

    words: tuple[str, ...]
    idf: Floats

    @classmethod
    def fit(cls, texts: Sequence[str], max_features: int = 5_000, min_df: int = 2) -> TfIdf:
        """The `most` common of those that are in at least `least` texts."""
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
        return {word: at for at, word in enumerate(self.words)}

    def known_term_share(self, text: str) -> float:
        """The share of the words, signs and pairs of a text that are known."""
        words = _words_and_bigrams(text)
        return float(np.mean([word in self._index_by_word for word in words])) if words else float("nan")

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """(texts, words), sparse."""
        columns: list[int] = []
        values: list[int] = []
        ends = [0]
        for text in texts:
            counts = Counter(map(self._index_by_word.get, _words_and_bigrams(text)))
            counts.pop(None, None)
            columns += counts  # type: ignore[arg-type]
            values += counts.values()
            ends.append(len(columns))
        at = np.array(columns, np.int64)
        weights = (1 + np.log(np.array(values, float))) * self.idf[at]
        table = sparse.csr_array((weights, at, ends), shape=(len(texts), len(self.words)))
        lengths = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)))
        return sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ table

    def state(self) -> SavedState:
        """For storage."""
        return {"features": "tfidf", "words": list(self.words), "idf": self.idf}


_MAX_CHARACTERS = 4_000  # characters of a text that are read, some 600 words; the authors' classifier reads 512 tokens


def _words_and_bigrams(text: str) -> list[str]:
    """Words and signs, and pairs of neighbours.

    >>> _words_and_bigrams("Ann: see!")
    ['ann', ':', 'see', '!', 'ann :', ': see', 'see !']
    """
    text = text[:_MAX_CHARACTERS]
    tokens = unspaced_words(text) if is_unspaced(text) else _TOKEN_PATTERN.findall(text.lower())
    return tokens + [f"{first} {second}" for first, second in itertools.pairwise(tokens)]


def features_from_state(state: SavedState) -> FeatureExtractor:
    """Features from storage."""
    if state["features"] == "tfidf":
        return TfIdf(tuple(state["words"]), state["idf"])
    return Encoder(state["name"])


class Classifier(typing.Protocol):
    """P(class | text)."""

    @property
    def classes(self) -> tuple[str, ...]:
        """What a text can be."""
        ...

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(texts, classes); rows sum to one."""
        ...

    def state(self) -> SavedState:
        """For storage."""
        ...


@dataclass(frozen=True)
class LogisticRegression:
    """Softmax of a linear function of features."""

    classes: tuple[str, ...]
    features: FeatureExtractor
    weights: Floats
    """(features + 1, classes); the last row is the bias."""

    @classmethod
    def fit(
        cls, table: Matrix, labels: Sequence[str], features: FeatureExtractor, cost: float = 10.0, iterations: int = 25
    ) -> LogisticRegression:
        """From features of texts, (texts, features), and the class of each.

        Minimises cost x the summed cross-entropy + half the squared weights, the bias being free, by L-BFGS.
        """
        classes = tuple(sorted(set(labels)))
        index = {name: at for at, name in enumerate(classes)}
        weights = _fit_weights(table, np.array([index[label] for label in labels]), cost, iterations)
        return cls(classes, features, weights)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(texts, classes)."""
        return self.probabilities_from_features(self.features(texts))

    def probabilities_from_features(self, table: Matrix) -> Floats:
        """(texts, classes) from (texts, features)."""
        result: Floats = special.softmax(table @ self.weights[:-1] + self.weights[-1], axis=1)
        return result

    def state(self) -> SavedState:
        """For storage."""
        return {"classes": list(self.classes), "features": self.features.state(), "weights": self.weights}

    @classmethod
    def from_state(cls, state: SavedState) -> LogisticRegression:
        """From storage."""
        return cls(tuple(state["classes"]), features_from_state(state["features"]), state["weights"])


def classifier_from_state(state: SavedState) -> Classifier:
    """A classifier from storage."""
    return Transformer.from_state(state) if "transformer" in state else LogisticRegression.from_state(state)


_CURVATURE = 0.01  # of the loss by feature, relative to its squared values; only the speed depends on it


def _fit_weights(table: Matrix, labels: NDArray[np.int64], cost: float, iterations: int) -> Floats:
    """(features + 1, classes): the weights of the least loss.

    Weights are searched in units of 1 / sqrt(curvature), so that rare and common words converge together.
    """
    texts, count = table.shape
    shape = count + 1, int(labels.max()) + 1
    across, rows = table.T, np.arange(texts)
    squares = np.append(np.asarray((table * table).sum(axis=0)), texts)
    unit = 1 / np.sqrt(1 + cost * _CURVATURE * squares)[:, None]

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
