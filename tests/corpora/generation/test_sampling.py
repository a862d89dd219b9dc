from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from finecomb.corpora.generation.decoding import Decoding
from finecomb.corpora.generation.sampling import (
    Floats,
    TokenSampler,
    apply_frequency_penalty,
    draw_next_token,
    nucleus_tokens,
    softmax_probabilities,
)

LOGITS = arrays(np.float64, st.integers(2, 40), elements=st.floats(-12, 12))


def test_the_penalty_is_equation_1_on_logits() -> None:
    logits = np.array([2.0, 0.5, -1.0, 3.0])
    assert apply_frequency_penalty(logits, {0: 3, 3: 1}, 0.5).tolist() == [2.0 - 3 * 0.5, 0.5, -1.0, 3.0 - 0.5]
    assert logits.tolist() == [2.0, 0.5, -1.0, 3.0]  # the model's own output is left alone
    assert apply_frequency_penalty(logits, {0: 3}, 0.0) is logits


def test_the_penalty_comes_before_the_temperature() -> None:
    lowered = softmax_probabilities(apply_frequency_penalty(np.array([1.0, 1.0]), {0: 1}, 1.0), 0.5)
    assert lowered[1] / lowered[0] == pytest.approx(np.exp(1 / 0.5))


def test_only_sampled_tokens_count_and_each_time() -> None:
    # token 0 leads by 2.5: with a penalty of 1 it is taken three times, then 1 leads, then they take turns
    sampler = TokenSampler(Decoding(temperature=0, frequency_penalty=1), np.random.default_rng(0))
    drawn = [sampler.draw(np.array([2.5, 0.0, -9.0])) for _ in range(7)]
    assert drawn == [0, 0, 0, 1, 0, 1, 0]
    assert sampler.counts == Counter(drawn)
    fresh = TokenSampler(Decoding(temperature=0, frequency_penalty=1), np.random.default_rng(0))
    assert fresh.draw(np.array([2.5, 0.0, -9.0])) == 0  # whatever a prompt holds, a new text begins with no counts


def slow_nucleus(probability: Floats, top_p: float) -> list[int]:
    order = sorted(range(len(probability)), key=lambda token: (-probability[token], token))
    tokens, mass = [], 0.0
    for token in order:
        tokens.append(token)
        mass += float(probability[token])
        if mass >= top_p - 1e-12:
            break
    return sorted(tokens)


@given(LOGITS, st.sampled_from([0.1, 0.4, 0.7, 0.9, 0.96, 0.999]))
def test_the_nucleus_is_the_fewest_likeliest_tokens(logits: Floats, top_p: float) -> None:
    probability = softmax_probabilities(logits, 1.0)
    assert nucleus_tokens(probability, top_p).tolist() == slow_nucleus(probability, top_p)


@given(LOGITS)
def test_a_nucleus_of_1_has_every_token_and_a_tiny_one_has_one(logits: Floats) -> None:
    probability = softmax_probabilities(logits, 1.0)
    assert sorted(nucleus_tokens(probability, 1.0)) == list(range(len(logits)))
    assert len(nucleus_tokens(probability, 1e-9)) == 1


def test_draws_come_as_often_as_the_nucleus_says() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    random = np.random.default_rng(1)
    counts = Counter(draw_next_token(logits, {}, Decoding(top_p=0.9), random) for _ in range(20_000))
    expected = np.array([0.5, 0.3, 0.15]) / 0.95
    assert set(counts) == {0, 1, 2}
    assert [counts[token] / 20_000 for token in range(3)] == pytest.approx(expected, abs=0.012)


def test_temperature_sharpens() -> None:
    logits = np.array([1.0, 0.0])
    assert softmax_probabilities(logits, 0.4)[0] == pytest.approx(1 / (1 + np.exp(-1 / 0.4)))


def test_argmax_draws_no_random_number_and_the_same_seed_gives_the_same() -> None:
    random = np.random.default_rng(3)
    assert draw_next_token(np.array([0.0, 2.0, 1.0]), {}, Decoding(temperature=0), random) == 1
    assert random.random() == np.random.default_rng(3).random()
    texts = [
        [draw_next_token(np.zeros(50), {}, Decoding(), generator) for _ in range(20)]
        for generator in (np.random.default_rng(7), np.random.default_rng(7))
    ]
    assert texts[0] == texts[1]
