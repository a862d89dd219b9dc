from __future__ import annotations

import math

import numpy as np
import pytest

from finecomb.statistics.judges.monitored_means import monitored_means, stratified_monitored_mean
from finecomb.statistics.judges.text_allocation import TextStrata, shrunk_stratum_deviations, stratum_probabilities
from finecomb.statistics.selection.view import view
from tests.statistics.judges.judge_studies import make_judge_study, simulate_annotator


def test_both_means_say_which_kind_they_are() -> None:
    seen = view(make_judge_study({"p0": simulate_annotator(40, 0), "p1": simulate_annotator(40, 1)}))
    share, marks = monitored_means(seen)
    assert (share.columns["kind"], marks.columns["kind"]) == ("bounded", "counts")
    assert "at most 5%" in str(share.columns["says"])
    assert "from 30 texts on" in str(marks.columns["says"])
    assert 0 <= share.estimate.low < share.estimate.value < share.estimate.high <= 1


def test_nothing_handed_in_has_no_mean_but_a_reason() -> None:
    share, marks = monitored_means(view(make_judge_study({"p0": {}, "p1": simulate_annotator(1, 0)})))
    assert marks.estimate.why.startswith("at least 30 texts are needed")
    assert math.isnan(marks.estimate.low)
    assert share.estimate.high == 1


def test_drawn_texts_start_with_two_of_every_stratum() -> None:
    strata = TextStrata(tuple(f"d{n}" for n in range(80)), ("a", "b"), np.arange(80) % 2)
    documents = [f"d{2 * n}" for n in range(40)]
    assert (
        "at least 2 per stratum; found 40, with 0 in the smallest stratum"
        in stratified_monitored_mean(documents, np.ones(40), strata).why
    )
    both = [f"d{n}" for n in range(40)]
    mean = stratified_monitored_mean(both, np.arange(40.0) % 3, strata)
    assert mean.low < 1 < mean.high


@pytest.mark.long
def test_watching_drawn_counts_is_wrong_in_at_most_7_of_100_studies() -> None:
    """Negative binomial counts in two strata, monitored after each text from 30 to 120, drawn as the server does."""
    numbers, wrong, studies = np.repeat(np.arange(2), 300), 0, 200
    strata = TextStrata(tuple(f"d{n}" for n in range(600)), ("a", "b"), numbers)
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        values = np.concatenate([rng.negative_binomial(1, 1 / 2, 300), rng.negative_binomial(0.5, 0.5 / 4.5, 300)])
        orders, counts = [rng.permutation(300), 300 + rng.permutation(300)], np.zeros(2, dtype=np.int64)
        read: list[int] = []
        is_wrong = False
        while len(read) < 120 and not is_wrong:
            parts = [values[order[:count]].astype(float) for order, count in zip(orders, counts, strict=True)]
            chances = stratum_probabilities(np.full(2, 300), counts, shrunk_stratum_deviations(parts), 300 - counts)
            stratum = int(rng.choice(2, p=chances))
            read.append(int(orders[stratum][counts[stratum]]))
            counts[stratum] += 1
            mean = stratified_monitored_mean([f"d{n}" for n in read], values[read].astype(float), strata)
            is_wrong = math.isfinite(mean.low) and not mean.low <= 2.5 <= mean.high
        wrong += is_wrong
    assert wrong <= 0.07 * studies
