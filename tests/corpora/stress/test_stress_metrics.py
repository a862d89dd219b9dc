from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.stress import stress_metrics
from finecomb.corpora.stress.stress_metrics import METRICS, Candidate, greedy_match_f1, metric_by_name, rouge_l, rouge_n
from tests.annotators.detectors import tiny_models

DOCUMENT = Document(id="1", text="x")


def score(metric: str, text: str, *references: str) -> float:
    return metric_by_name(metric).score([Candidate(text, references, DOCUMENT)])[0]


def test_rouge_equals_its_definition_by_hand() -> None:
    candidate, reference = "The cat sat on the mat.", "The cat lay on a mat"
    # words: the cat sat on the mat / the cat lay on a mat; common: the cat on mat = 4 of 6 and 6
    assert rouge_n(candidate, reference, 1) == pytest.approx(2 * 4 / 12)
    # pairs: common (the, cat) = 1 of 5 and 5
    assert rouge_n(candidate, reference, 2) == pytest.approx(2 * 1 / 10)
    # longest common subsequence: the cat on mat
    assert rouge_l(candidate, reference) == pytest.approx(2 * 4 / 12)


def test_a_word_that_is_repeated_counts_as_often_as_the_reference_has_it() -> None:
    assert rouge_n("the the the", "the cat", 1) == pytest.approx(2 * 1 / 5)


def test_the_best_reference_counts() -> None:
    assert score("rouge1", "a b", "c d", "a b") == 1.0
    assert math.isnan(score("rouge1", "a b"))


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_sacrebleu_is_asked(metric: str) -> None:
    pytest.importorskip("sacrebleu")
    text = "The quick brown fox jumps over the lazy dog."
    assert score(metric, text, text) == pytest.approx(1)
    assert score(metric, "Nothing of the kind is here.", text) < 0.3


def test_token_states_are_matched_greedily() -> None:
    first, second = np.eye(3)[:2], np.eye(3)[[1, 2]]
    # precision: token 0 finds nothing (0), token 1 finds itself (1); recall likewise
    assert greedy_match_f1(first, second) == pytest.approx(0.5)
    assert math.isnan(greedy_match_f1(first, np.zeros((0, 3))))


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(FinecombError, match="did you mean 'rouge2'"):
        metric_by_name("rouge22")
    with pytest.raises(FinecombError, match="requires a model"):
        metric_by_name("bertscore")


def test_metrics_say_what_they_need() -> None:
    assert all(metric.needs_references for metric in METRICS.values())
    assert not metric_by_name("perplexity:any").higher_is_better


def test_mauve_is_asked_for_corpora_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def compute_mauve(p_features: Any, q_features: Any, verbose: bool) -> SimpleNamespace:
        calls.append((p_features.shape, q_features.shape))
        return SimpleNamespace(mauve=0.75)

    monkeypatch.setitem(sys.modules, "mauve", SimpleNamespace(compute_mauve=compute_mauve))
    monkeypatch.setattr(stress_metrics, "_load_encoder", lambda model: lambda text: np.ones((len(text.split()), 4)))
    metric = metric_by_name("mauve:any")
    rows = [Candidate("a b", ("c d e",), DOCUMENT), Candidate("f", ("g",), DOCUMENT)]
    assert list(metric.score(rows)) == [0.75]
    assert calls == [((2, 4), (2, 4))]


def test_mauve_that_is_not_installed_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mauve", None)
    with pytest.raises(FinecombError, match="requires the package mauve-text; run `pip install mauve-text`"):
        metric_by_name("mauve:any").score([Candidate("a", ("b",), DOCUMENT)])


def test_the_perplexity_of_a_corpus_is_by_words_or_by_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        stress_metrics, "_load_surprisal_model", lambda model: lambda text: (6.0, 3, 2) if text else (0.0, 0, 0)
    )
    assert stress_metrics.corpus_perplexity("any", ["a b", "c d"]) == pytest.approx(math.exp(3))
    assert stress_metrics.corpus_perplexity("any", ["a b", ""], words=False) == pytest.approx(math.exp(2))
    assert math.isnan(stress_metrics.corpus_perplexity("any", [""]))


@pytest.mark.long
def test_models_that_transformers_loads_give_perplexity_and_bertscore(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    text, other = "one two three four five", "one two"
    model = tiny_models.save_causal_model(tmp_path / "causal")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logs = transformers.AutoModelForCausalLM.from_pretrained(model).eval()(ids).logits.log_softmax(-1)[0, :-1]
    nats = -sum(float(row[token]) for row, token in zip(logs, ids[0, 1:], strict=True))
    by_hand = math.exp(nats / (ids.shape[1] - 1))
    assert score(f"perplexity:{model}", text) == pytest.approx(by_hand, rel=1e-4)
    encoder = tiny_models.save_encoder(tmp_path / "encoder")
    assert score(f"bertscore:{encoder}", text, text) == pytest.approx(1, abs=1e-4)
    assert score(f"bertscore:{encoder}", text, other) < 1
