"""Collapse, copying and shortness told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from finecomb.corpora.critics.base import CriticScores
from finecomb.corpora.critics.criticism import Criticism
from finecomb.corpora.critics.diversity import aggregate_entropy, coverage_of_real, diversity_rows, unused_state_rows
from finecomb.corpora.critics.sections import Sections
from tests.corpora.critics.example_documents import make_titled_document


def scored(points: list[object], discrete: bool = True) -> CriticScores:
    count = len(points)
    return CriticScores(
        critic="c", statistic="nll", discrete=discrete, ids=tuple(map(str, range(count))), values=np.ones(count),
        steps=np.ones(count, np.int64), lengths=np.ones(count, np.int64), points=tuple(points),
    )  # fmt: skip


def criticism(real: list[object], discrete: bool = True, **systems: list[object]) -> Criticism:
    critic = Sections.fit(
        [make_titled_document("1", "ab"), make_titled_document("2", "ba")], np.random.default_rng(0), labels="title"
    )
    return Criticism(
        critic, scored(real, discrete), {name: scored(points, discrete) for name, points in systems.items()}
    )


def test_a_system_that_repeats_itself_has_little_entropy_and_recall() -> None:
    rng = np.random.default_rng(0)
    orders = [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"), ("a", "c", "b")]
    real = [orders[at] for at in rng.integers(4, size=120)]
    alike = [orders[at] for at in rng.integers(4, size=60)]
    result = criticism(real, alike=alike, stuck=[("a", "a", "b")] * 60)
    rows = {row["system"]: row for row in diversity_rows(result, 100, 0)}
    assert rows["stuck"]["high"] < -0.2  # type: ignore[operator]
    assert rows["alike"]["high"] == pytest.approx(0)
    assert rows["stuck"]["recall"] == 0 == rows["stuck"]["precision"]
    assert rows["real"]["precision"] == rows["alike"]["precision"] == rows["alike"]["recall"] == 1
    assert rows["stuck"]["coverage"] == pytest.approx(2 / 3, abs=0.05)


def test_vectors_that_collapse_keep_precision_and_lose_recall() -> None:
    rng = np.random.default_rng(1)
    real, alike = list(rng.normal(size=(200, 3))), list(rng.normal(size=(100, 3)))
    stuck = list(0.1 * rng.normal(size=(100, 3)))
    rows = {row["system"]: row for row in diversity_rows(criticism(real, False, alike=alike, stuck=stuck), 50, 0)}
    assert rows["stuck"]["precision"] > 0.95  # type: ignore[operator]
    assert rows["stuck"]["recall"] < 0.2 < 0.7 < rows["alike"]["recall"]  # type: ignore[operator]
    assert rows["stuck"]["entropy - real"] == pytest.approx(3 * math.log(0.1), abs=0.6)


def test_entropy_and_coverage_are_worked_by_hand() -> None:
    assert aggregate_entropy([("a", "b"), ("a", "a")], discrete=True) == pytest.approx(
        -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    )
    assert coverage_of_real([("a",)], [("a", "b"), ("a", "c")], discrete=True) == pytest.approx(0.5)
    vectors = [np.array([0.0, 0.0]), np.array([2.0, 0.0]), np.array([0.0, 2.0]), np.array([2.0, 2.0])]
    expected = math.log(2 * math.pi * math.e) + math.log(4 / 3)
    assert aggregate_entropy(vectors, discrete=False) == pytest.approx(expected, abs=1e-4)


def test_what_a_system_never_uses_is_listed() -> None:
    real = [("intro", "method")] * 50 + [("intro", "result")] * 50
    result = criticism(real, ours=[("intro", "method")] * 30)  # type: ignore[arg-type]
    rows = list(unused_state_rows(result))
    assert [(row["kind"], row["never used"]) for row in rows] == [
        ("state", "result"),
        ("organisation", "intro > result"),
    ]
    assert rows[0]["p"] == pytest.approx(0.5**30)
    assert list(unused_state_rows(criticism(real, ours=[("intro", "method")] * 3))) == []  # type: ignore[arg-type]


def test_few_documents_are_said() -> None:
    rows = list(diversity_rows(criticism([("a",)] * 6, ours=[("a",)]), 10, 0))
    assert rows[1]["why"] == "diversity needs at least 4 documents per side, found 1"
