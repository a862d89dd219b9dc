"""Documents that are unlikely for their length, and how surely."""

from __future__ import annotations

import numpy as np
import pytest

from finecomb.corpora.critics.base import CriticScores
from finecomb.corpora.critics.outliers import outliers


def scored(values: list[float] | np.ndarray, lengths: list[int] | np.ndarray, name: str = "d") -> CriticScores:
    """Scores of a critic whose z is a vector, so that a document is one step."""
    count = len(values)
    return CriticScores(
        critic="c", statistic="kl", discrete=False, ids=tuple(f"{name}{at}" for at in range(count)),
        values=np.array(values, float), steps=np.ones(count, np.int64), lengths=np.array(lengths, np.int64),
        points=(0,) * count,
    )  # fmt: skip


def slow_p(real: CriticScores, length: int, value: float) -> float:
    """The definition for few real documents: all are neighbours, and the line is that of the pooled ones."""
    x, y = np.append(real.lengths, length), np.append(real.values, value)
    apart = y - np.polynomial.Polynomial.fit(x, y, 1)(x)
    return float(np.mean(apart >= apart[-1] - 1e-9))


def test_the_longest_documents_are_not_the_outliers() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(100, 1000, 200)
    real = scored(0.1 * lengths + rng.normal(size=200), lengths)
    other = scored([0.1 * 990 + 0.1, 0.1 * 150 + 6], [990, 150], "m")  # an ordinary long one, an odd short one
    ranked = outliers(real, other)
    assert [outlier.id for outlier in ranked] == ["m1", "m0"]
    assert ranked[0].p == pytest.approx(1 / 51)
    assert ranked[1].p > 0.2
    assert ranked[0].usual == pytest.approx(15, abs=1)


def test_p_equals_its_definition() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(10, 90, 30)
    real = scored(rng.normal(size=30) + 0.05 * lengths, lengths)
    other = scored(rng.normal(size=8) + 3, rng.integers(10, 90, 8))
    by_id = {outlier.id: outlier.p for outlier in outliers(real, other)}
    for id, length, value in zip(other.ids, other.lengths, other.values, strict=True):
        assert by_id[id] == pytest.approx(slow_p(real, int(length), float(value)))


def test_few_documents_are_compared_as_they_are() -> None:
    real, other = scored([1.0, 2.0, 3.0], [5, 50, 500]), scored([9.0, 2.0], [5, 5], "m")
    assert [(outlier.id, outlier.p) for outlier in outliers(real, other)] == [("m0", 1 / 4), ("m1", 3 / 4)]
    assert outliers(scored([], []), other) == []


@pytest.mark.parametrize("trend", [0.0, 0.3])
def test_p_is_uniform_when_documents_are_exchangeable(trend: float) -> None:
    rng = np.random.default_rng(5)
    pvalues = []
    for _ in range(400):
        lengths = rng.integers(10, 200, 61)
        values = trend * lengths + rng.normal(size=61) * (1 + lengths / 100)
        real, one = scored(values[1:], lengths[1:]), scored(values[:1], lengths[:1])
        pvalues.append(outliers(real, one)[0].p)
    assert np.mean(np.array(pvalues) <= 0.1) == pytest.approx(0.1, abs=0.04)
