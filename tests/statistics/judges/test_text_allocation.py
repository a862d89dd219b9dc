from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.judges.text_allocation import (
    MIN_TEXTS_PER_STRATUM,
    cut_by_quantile,
    draw_next_text,
    judge_disagreement_per_text,
    shrunk_stratum_deviations,
    stratum_probabilities,
)

SIZES = np.full(5, 100)
DEVIATIONS = np.array([1.0, 1.0, 1.0, 2.0, 5.0])


def test_one_text_at_a_time_arrives_at_neymans_shares() -> None:
    counts = np.zeros(5, dtype=np.int64)
    for _ in range(100):
        counts[np.argmax(stratum_probabilities(SIZES, counts, DEVIATIONS, SIZES - counts))] += 1
    assert counts == pytest.approx(100 * DEVIATIONS / 10, abs=1)


def test_no_text_has_probability_zero() -> None:
    counts = np.array([5, 5, 5, 10, 80])
    chances = stratum_probabilities(SIZES, counts, DEVIATIONS, SIZES - counts)
    assert (chances > 0).all()
    assert chances.sum() == pytest.approx(1)


def test_every_stratum_has_its_first_texts_before_any_has_more() -> None:
    rng, strata = np.random.default_rng(0), np.repeat(np.arange(5), 100)
    read = np.zeros(0, dtype=np.int64)
    for _ in range(5 * MIN_TEXTS_PER_STRATUM):
        read = np.append(read, draw_next_text(strata, read, DEVIATIONS, rng, exploration=0).text)
    assert np.bincount(strata[read]).tolist() == [MIN_TEXTS_PER_STRATUM] * 5
    assert len(np.unique(read)) == len(read)


def test_the_probability_is_that_of_the_text() -> None:
    rng, strata = np.random.default_rng(0), np.array([0, 0, 0, 1])
    offers = [draw_next_text(strata, np.array([0]), np.ones(2), rng) for _ in range(4000)]
    for text in (1, 2, 3):
        chance = {offer.probability for offer in offers if offer.text == text}
        assert len(chance) == 1
        assert np.mean([offer.text == text for offer in offers]) == pytest.approx(chance.pop(), abs=0.025)
    closed = draw_next_text(strata, np.array([0]), np.ones(2), rng, closed=np.array([3]))
    assert closed.stratum == 0
    with pytest.raises(FinecombError, match="no text is left"):
        draw_next_text(strata, np.arange(4), np.ones(2), rng)


def test_a_stratum_of_zeros_keeps_some_spread() -> None:
    deviations = shrunk_stratum_deviations([np.zeros(10), np.array([0.0, 4.0, 8.0])])
    assert 0 < deviations[0] < deviations[1]
    assert shrunk_stratum_deviations([np.zeros(0), np.zeros(0)], prior=np.array([1.0, 3.0])) == pytest.approx([1, 3])


def test_texts_are_cut_by_how_far_judges_disagree() -> None:
    judges = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    apart = judge_disagreement_per_text(judges)
    assert apart.tolist() == [0, 1, 1, 0]
    assert cut_by_quantile(apart, 2).tolist() == [0, 1, 1, 0]
    assert (judge_disagreement_per_text(judges[:1]) == 0).all()
