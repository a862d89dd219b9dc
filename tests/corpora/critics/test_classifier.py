from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from finecomb.corpora.critics.classifier import LogisticRegression, TfIdf, classifier_from_state

TEXTS = ["wool and wool", "wool and comb", "sea and salt", "salt of the sea", "comb the wool", "sea"]
LABELS = ["cloth", "cloth", "coast", "coast", "cloth", "coast"]


def test_tf_idf_is_its_definition() -> None:
    features = TfIdf.fit(TEXTS)
    table = features(["wool wool and", "nothing known"]).toarray()
    of = {word: at for at, word in enumerate(features.words)}
    assert "of" not in of  # in one text only
    counts = {"wool": 3, "and": 3, "wool and": 2}
    idf = {word: math.log((1 + 6) / (1 + count)) + 1 for word, count in counts.items()}
    raw = idf | {"wool": (1 + math.log(2)) * idf["wool"]}
    length = math.hypot(*raw.values())
    assert {word: table[0, of[word]] for word in raw} == pytest.approx({word: raw[word] / length for word in raw})
    assert np.count_nonzero(table[0]) == len(raw)
    assert table[1].tolist() == [0] * len(of)


def test_only_the_commonest_words_are_kept() -> None:
    assert set(TfIdf.fit(TEXTS, max_features=2).words) <= {"wool", "and", "sea"}


def test_the_weights_are_those_of_the_least_loss() -> None:
    """Against a plain optimisation of the loss as it is written, without a gradient."""
    features = TfIdf.fit(TEXTS)
    table = features(TEXTS)
    fitted = LogisticRegression.fit(table, LABELS, features, cost=2.0, iterations=500)
    dense, truth = table.toarray(), np.array([fitted.classes.index(label) for label in LABELS])

    def loss(flat: np.ndarray) -> float:
        weights = flat.reshape(fitted.weights.shape)
        scores = dense @ weights[:-1] + weights[-1]
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return float(-2.0 * log_p[np.arange(6), truth].sum() + 0.5 * (weights[:-1] ** 2).sum())

    slow = optimize.minimize(loss, np.zeros(fitted.weights.size), method="BFGS", options={"gtol": 1e-4})
    assert loss(fitted.weights.ravel()) == pytest.approx(slow.fun, abs=1e-5)


def test_probabilities_sum_to_one_and_know_the_classes_apart() -> None:
    features = TfIdf.fit(TEXTS)
    classifier = LogisticRegression.fit(features(TEXTS), LABELS, features)
    table = classifier(["a comb for wool", "the salt sea", "unheard of"])
    assert table.sum(axis=1) == pytest.approx(np.ones(3))
    assert [classifier.classes[at] for at in table[:2].argmax(axis=1)] == ["cloth", "coast"]


def test_a_stored_classifier_says_the_same() -> None:
    features = TfIdf.fit(TEXTS)
    classifier = LogisticRegression.fit(features(TEXTS), LABELS, features)
    assert classifier_from_state(classifier.state())(TEXTS).tolist() == classifier(TEXTS).tolist()
