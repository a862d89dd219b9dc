from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.ngrams import KneserNeyModel, _fast_argsort

Gram = tuple[int, ...]
SIZE = 4
BEGIN = -1

sequences = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=12), min_size=1, max_size=8).filter(any)


def arrays(lists: list[list[int]]) -> list[NDArray[np.int64]]:
    return [np.array(row, np.int64) for row in lists]


class SlowKneserNey:
    """Interpolated modified Kneser-Ney as defined, one n-gram at a time."""

    def __init__(self, lists: list[list[int]], order: int) -> None:
        self.order = order
        raw: Counter[Gram] = Counter()
        for row in lists:
            marked = (BEGIN, *row)
            for end in range(2, len(marked) + 1):
                for n in range(1, min(order, end) + 1):
                    raw[marked[end - n : end]] += 1
        self.counts = [Counter[Gram]() for _ in range(order + 1)]
        for gram, count in raw.items():
            top = len(gram) == order or gram[0] == BEGIN
            lefts = sum(1 for other in raw if len(other) == len(gram) + 1 and other[1:] == gram)
            self.counts[len(gram)][gram] = count if top else lefts
        self.discounts = [[0.0] * 4] + [discounts(list(table.values())) for table in self.counts[1:]]

    def probability(self, token: int, history: Gram) -> float:
        context = (BEGIN, *history)
        context = context[max(0, len(context) - self.order + 1) :] if self.order > 1 else ()
        return self._interpolated(token, context)

    def _interpolated(self, token: int, context: Gram) -> float:
        n = len(context) + 1
        lower = self._interpolated(token, context[1:]) if context else 1 / SIZE
        row = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == context}
        if not row:
            return lower
        total = sum(row.values())
        mass = max(row.get(token, 0) - self.discounts[n][min(row.get(token, 0), 3)], 0) / total
        return mass + lower * sum(self.discounts[n][min(count, 3)] for count in row.values()) / total


def discounts(counts: list[int]) -> list[float]:
    n = Counter(counts)
    if not (n[1] and n[2] and n[3]):
        return [0, 0.5, 1, 1.5]
    y = n[1] / (n[1] + 2 * n[2])
    estimates = [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
    return [0, *estimates] if min(estimates) > 0 else [0, 0.5, 1, 1.5]


@given(sequences, st.integers(1, 5), sequences)
def test_log_probs_equal_the_definition(fitted: list[list[int]], order: int, scored: list[list[int]]) -> None:
    model, slow = KneserNeyModel.fit(arrays(fitted), order, SIZE), SlowKneserNey(fitted, order)
    expected = [[math.log(slow.probability(t, tuple(s[:i]))) for i, t in enumerate(s)] for s in scored]
    for ours, theirs in zip(model.log_probs(arrays(scored)), expected, strict=True):
        assert ours == pytest.approx(theirs)


@given(sequences, st.integers(1, 5), st.lists(st.integers(0, SIZE - 1), max_size=6))
def test_next_probs_sum_to_one_and_equal_log_probs(fitted: list[list[int]], order: int, history: list[int]) -> None:
    model = KneserNeyModel.fit(arrays(fitted), order, SIZE)
    after = model.next_probs(np.array(history, np.int64))
    logs = [model.log_probs(arrays([[*history, token]]))[0][-1] for token in range(SIZE)]
    assert after.sum() == pytest.approx(1)
    assert np.log(after) == pytest.approx(np.array(logs))


@settings(max_examples=10)
@given(sequences, st.integers(1, 4))
def test_samples_have_the_frequencies_of_the_model(fitted: list[list[int]], order: int) -> None:
    model = KneserNeyModel.fit(arrays(fitted), order, SIZE)
    drawn = np.stack(model.sample_sequences(np.random.default_rng(0), 20_000, 2))
    first = model.next_probs(np.array([], np.int64))
    second = model.next_probs(np.array([drawn[0, 0]]))
    assert np.bincount(drawn[:, 0], minlength=SIZE) / len(drawn) == pytest.approx(first, abs=0.02)
    after = drawn[drawn[:, 0] == drawn[0, 0], 1]
    error = 5 * np.sqrt(second * (1 - second) / len(after))
    assert (np.abs(np.bincount(after, minlength=SIZE) / len(after) - second) <= error + 1e-9).all()


def test_samples_stop_after_the_end_token() -> None:
    model = KneserNeyModel.fit(arrays([[0, 1, 2, 3]] * 50), 3, SIZE)
    drawn = model.sample_sequences(np.random.default_rng(1), 200, 30, end=3)
    assert all((sequence[:-1] != 3).all() for sequence in drawn)
    assert sum(sequence[-1] == 3 for sequence in drawn) > 150


def test_a_model_is_made_again_from_its_arrays() -> None:
    model = KneserNeyModel.fit(arrays([[0, 1, 2, 1], [2, 2]]), 3, SIZE)
    again = KneserNeyModel.from_arrays(model.to_arrays())
    assert again.log_probs(arrays([[1, 2, 3]]))[0] == pytest.approx(model.log_probs(arrays([[1, 2, 3]]))[0])


@given(st.lists(st.integers(0, 2**60), max_size=40))
def test_packed_and_plain_sorting_agree(keys: list[int]) -> None:
    """Keys of up to 60 bits do not fit beside their places into one integer; small ones do."""
    for values in (np.array(keys, np.int64), np.array(keys, np.int64) % 7):
        assert (values[_fast_argsort(values)] == np.sort(values)).all()


@pytest.mark.parametrize(
    ("bad", "order", "message"),
    [
        ([[0, 4]], 2, "integers from 0 to 3, found 0 to 4"),
        ([[-1]], 2, "integers from 0 to 3, found -1 to -1"),
        ([[0]], 0, "order must be at least 1, found 0"),
        ([[]], 2, "at least one token"),
        ([], 2, "at least one token"),
    ],
)
def test_what_cannot_be_counted_is_refused(bad: list[list[int]], order: int, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        KneserNeyModel.fit(arrays(bad), order, SIZE)
