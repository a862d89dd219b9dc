from __future__ import annotations

import math

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.confidence_sequence import (
    betting_interval,
    confidence_sequence_boundary,
    monitored_mean,
)


def slow_betting(values: list[float], mean: float) -> float:
    """Compute the higher wealth of the two bettors against one mean, by definition."""
    up = down = best = 1.0
    total, squares = 0.0, 0.25
    for time, value in enumerate(values, 1):
        wager = math.sqrt(2 * math.log(2 / 0.05) / (squares / time * time * math.log(1 + time)))
        up *= 1 + min(wager, 0.5 / mean if mean else math.inf) * (value - mean)
        down *= 1 - min(wager, 0.5 / (1 - mean) if mean < 1 else math.inf) * (value - mean)
        best = max(best, up, down)
        total += value
        squares += (value - (0.5 + total) / (time + 1)) ** 2
    return best


def test_betting_equals_its_definition() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(60)
    low, high = betting_interval(values)
    for mean in np.linspace(0.01, 0.99, 99):
        rich = slow_betting(values.tolist(), float(mean)) >= 2 / 0.05
        assert rich == (not low + 0.001 <= mean <= high - 0.001) or min(abs(mean - low), abs(mean - high)) < 0.003


def test_bounded_values_are_scaled_to_their_bounds() -> None:
    ratings = np.random.default_rng(1).integers(1, 6, 80).astype(float)
    watched = monitored_mean(ratings, (1, 5))
    low, high = betting_interval((ratings - 1) / 4)
    assert (watched.low, watched.high) == pytest.approx((1 + 4 * low, 1 + 4 * high))
    assert watched.kind == "bounded"
    assert "at most 5%" in watched.description
    assert "at most 10%" in monitored_mean(ratings, (1, 5), 0.9).description
    with pytest.raises(FinecombError, match="outside"):
        monitored_mean(ratings, (1, 4))


def test_counts_start_at_thirty_texts_and_say_so() -> None:
    counts = np.random.default_rng(2).poisson(2, 40).astype(float)
    assert monitored_mean(counts[:29]).why == "at least 30 texts are needed, found 29"
    watched = monitored_mean(counts)
    assert watched.low < counts.mean() < watched.high
    assert "approximately" in watched.description
    assert monitored_mean(np.zeros(40)).why


def test_watching_costs_width() -> None:
    assert confidence_sequence_boundary(100) > 2.5
    assert confidence_sequence_boundary(100) == min(
        confidence_sequence_boundary(100, tightest=each) for each in (20, 50, 100, 200, 500)
    )


def test_the_error_of_watching_is_small() -> None:
    """A small version of the table in the docs: shares checked after every text."""
    rng = np.random.default_rng(3)
    errors = 0
    for _ in range(60):
        low, high = betting_interval((rng.random(150) < 0.2).astype(float))
        errors += not low <= 0.2 <= high
    assert errors <= 6
