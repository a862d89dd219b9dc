from __future__ import annotations

import math

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.stress.metrics import METRICS, Candidate, matched_f1, metric_named, rouge_l, rouge_n

DOCUMENT = Document(id="1", text="x")


def score(metric: str, text: str, *references: str) -> float:
    return metric_named(metric).score([Candidate(text, references, DOCUMENT)])[0]


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
    assert matched_f1(first, second) == pytest.approx(0.5)
    assert math.isnan(matched_f1(first, np.zeros((0, 3))))


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(FinecombError, match="did you mean 'rouge2'"):
        metric_named("rouge22")
    with pytest.raises(FinecombError, match="needs a model"):
        metric_named("bertscore")


def test_metrics_say_what_they_need() -> None:
    assert all(metric.needs_references for metric in METRICS.values())
    assert not metric_named("perplexity:any").higher_is_better
