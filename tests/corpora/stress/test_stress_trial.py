from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.stress import Candidate, Metric, corrupt_documents, metric_by_name, run_stress_trial
from finecomb.corpora.stress.stress_trial import CORPUS_METRIC_REASON, HUMAN_CORRUPTION, NO_PAIRS_REASON, spearman

TEXTS = [
    f"In {1990 + number} Ann met Bob in town. They had {number + 2} plans. She was glad. It was not late."
    for number in range(12)
]
DOCUMENTS = [
    Document(id=f"{number}", text=text, references=(text, text.replace("glad", "happy")))
    for number, text in enumerate(TEXTS)
]
KINDS = ["shuffled", "numbers", "dropped-sentence"]


def test_a_text_is_damaged_the_same_way_whatever_stands_beside_it() -> None:
    some = corrupt_documents(DOCUMENTS[:3], ["numbers"], seed=1)
    more = corrupt_documents(DOCUMENTS, ["shuffled", "numbers"], seed=1)
    assert some == [pair for pair in more if pair.corruption == "numbers"][:3]
    assert some != corrupt_documents(DOCUMENTS[:3], ["numbers"], seed=2)


def test_a_metric_that_cannot_see_order_does_not_fall_when_sentences_are_shuffled() -> None:
    table = run_stress_trial(
        corrupt_documents(DOCUMENTS, KINDS, 0), [metric_by_name("rouge1"), metric_by_name("rougeL")], 200
    )
    falls = {(row.columns["metric"], row.columns["corruption"]): row for row in table.falls}
    blind, seeing = falls["rouge1", "shuffled"], falls["rougeL", "shuffled"]
    assert blind.estimate.value == 0
    assert blind.columns["tied"] == 1
    assert math.isnan(blind.estimate.low)
    assert seeing.estimate.low > 0.1
    assert seeing.columns["fooled"] == 0


def test_falls_equal_their_definition() -> None:
    pairs = corrupt_documents(DOCUMENTS, ["dropped-sentence"], 0)
    (row,) = run_stress_trial(pairs, [metric_by_name("rouge1")], 100).falls
    rouge = metric_by_name("rouge1").score
    differences = [rouge([pair.whole])[0] - rouge([pair.damaged])[0] for pair in pairs]
    assert row.estimate.value == pytest.approx(np.mean(differences))
    assert row.estimate.low <= row.estimate.value <= row.estimate.high
    assert row.columns["damage"] == pytest.approx(np.mean([pair.damage for pair in pairs]))


def length(candidates: list[Candidate]) -> list[float]:
    return [float(len(candidate.text)) for candidate in candidates]


def test_lower_may_be_better() -> None:
    pairs = corrupt_documents(DOCUMENTS, ["repeated"], 0)
    short = Metric("short", length, higher_is_better=False)  # type: ignore[arg-type]
    (row,) = run_stress_trial(pairs, [short], 100).falls
    assert row.estimate.value > 0  # a repeated text is longer, so this metric noticed
    assert float(str(row.columns["after"])) > float(str(row.columns["before"])) > 0


def test_a_human_text_is_scored_against_the_other_references() -> None:
    documents = [Document(id="1", text="something else", references=("one two", "one two three"))]
    (pair,) = corrupt_documents(documents, [HUMAN_CORRUPTION], 0)
    assert (pair.damaged.text, pair.damaged.references) == ("one two", ("one two three",))
    (row,) = run_stress_trial([pair], [metric_by_name("rouge1")]).falls
    assert row.columns["after"] == pytest.approx(0.8)
    assert row.estimate.why == "fewer than two documents, so there is no interval"
    assert corrupt_documents([documents[0].model_copy(update={"references": ("one",)})], [HUMAN_CORRUPTION], 0) == []


def test_damage_done_and_seen_are_ranked() -> None:
    pairs = corrupt_documents(DOCUMENTS, KINDS, 0)
    (row,) = run_stress_trial(pairs, [metric_by_name("rougeL")], 100).ranks
    rouge = metric_by_name("rougeL").score
    falls = [rouge([pair.whole])[0] - rouge([pair.damaged])[0] for pair in pairs]
    assert row.estimate.value == pytest.approx(stats.spearmanr([pair.damage for pair in pairs], falls).statistic)
    assert row.estimate.low < row.estimate.value < row.estimate.high


def test_what_does_not_vary_has_no_rank() -> None:
    assert math.isnan(spearman(np.ones(5), np.arange(5.0)))


def test_a_metric_without_numbers_says_why() -> None:
    silent = Metric("silent", lambda candidates: [math.nan] * len(candidates))
    table = run_stress_trial(corrupt_documents(DOCUMENTS, KINDS, 0), [silent])
    assert {row.estimate.why for row in table.falls} == {NO_PAIRS_REASON}
    assert math.isnan(table.ranks[0].estimate.value)


def test_ranks_without_a_correlation_say_why() -> None:
    constant = Metric("constant", lambda candidates: [1.0] * len(candidates))
    (row,) = run_stress_trial(corrupt_documents(DOCUMENTS, KINDS, 0), [constant], 50).ranks
    assert (
        row.estimate.why == "the amount of corruption or the fall is the same for all texts, so they cannot be ranked"
    )
    (row,) = run_stress_trial(corrupt_documents(DOCUMENTS[:1], ["numbers"], 0), [constant], 50).ranks
    assert row.estimate.why == "a rank correlation requires at least two corrupted texts with scores, found 1"


def test_texts_without_references_are_not_scored_by_metrics_that_need_them() -> None:
    bare = [document.model_copy(update={"references": ()}) for document in DOCUMENTS]
    table = run_stress_trial(corrupt_documents(bare, KINDS, 0), [metric_by_name("rouge1")])
    assert {row.columns["texts"] for row in table.falls} == {0}


def test_a_metric_that_fails_or_is_silent_is_one_line_and_the_others_are_kept() -> None:
    def broken(candidates: Sequence[Candidate]) -> list[float]:
        raise ZeroDivisionError("no words")

    half = Metric("half", lambda rows: [math.nan if row.document.id == "0" else 1.0 for row in rows])
    pairs = corrupt_documents(DOCUMENTS, KINDS, 0)
    table = run_stress_trial(pairs, [Metric("broken", broken), half, metric_by_name("rouge1")], 50)
    assert {row.columns["metric"] for row in table.falls} == {"half", "rouge1"}
    assert table.failed == 1
    assert table.notes == (
        "metric broken failed: ZeroDivisionError: no words; the metric has no rows",
        "half: no score for 3 of 36 text pairs (e.g. 0, shuffled); they are excluded",
    )
    with pytest.raises(FinecombError, match="metric broken failed: ZeroDivisionError: no words"):
        run_stress_trial(pairs, [Metric("broken", broken)])
    with pytest.raises(FinecombError, match="metric short: expected 12 numbers for 12 texts, found 1"):
        run_stress_trial(pairs, [Metric("short", lambda rows: [1.0])])
    with pytest.raises(
        FinecombError, match=r"metric wide: expected 12 numbers for 12 texts, found an array of shape \(12, 1\)"
    ):
        run_stress_trial(pairs, [Metric("wide", lambda rows: [[1.0]] * len(rows))])  # type: ignore[list-item]
    with pytest.raises(FinecombError, match="metric two: expected 1 numbers for 12 texts, found 2"):
        run_stress_trial(pairs, [Metric("two", lambda rows: [1.0, 2.0], of_corpus=True)])


def test_a_metric_of_a_whole_corpus_has_one_fall_a_corruption() -> None:
    mean_length = Metric("mean", lambda rows: [float(np.mean([len(row.text) for row in rows]))], of_corpus=True)
    pairs = corrupt_documents(DOCUMENTS, ["dropped-sentence"], 0)
    table = run_stress_trial(pairs, [mean_length], 30)
    (row,) = table.falls
    assert row.estimate.value == pytest.approx(np.mean([len(p.whole.text) - len(p.damaged.text) for p in pairs]))
    assert row.estimate.low < row.estimate.value < row.estimate.high
    assert math.isnan(float(str(row.columns["fooled"])))
    assert table.ranks[0].estimate.why == CORPUS_METRIC_REASON
