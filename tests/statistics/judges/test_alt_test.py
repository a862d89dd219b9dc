from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.statistics.judges.alt_test import (
    EQUAL_NOT_BETTER_REASON,
    alt_test,
    benjamini_yekutieli,
    cluster_t_test_p_values,
)

MODELS = ("gemini_flash", "gemini_pro", "gpt-4o", "llama-31", "gpt-4o-mini", "mistral-v03")
PRINTED = {  # by set: score, epsilon, winning rate and advantage of each model, as printed by the authors' notebook
    "wax": ("accuracy", 0.1, "0.38/0.69 0.50/0.74 0.50/0.73 0.00/0.57 0.00/0.59 0.00/0.50"),
    "lgbteen": ("accuracy", 0.2, "0.25/0.71 0.00/0.67 0.75/0.77 0.00/0.72 0.75/0.76 0.25/0.75"),
    "mtbench": ("accuracy", 0.2, "0.00/0.72 0.00/0.76 0.00/0.77 0.00/0.69 0.00/0.74 0.00/0.68"),
    "10k_prompts": ("rmse", 0.15, "0.31/0.67 0.08/0.63 0.69/0.76 0.15/0.67 0.92/0.80 0.15/0.67"),
    "cebab_stars": ("rmse", 0.1, "0.60/0.82 0.80/0.87 0.90/0.90 0.60/0.85 0.90/0.89 0.50/0.83"),
}


def released(data: Path, name: str) -> tuple[dict[str, dict[str, object]], dict[str, dict[str, object]]]:
    folder = data / "no_licence_stated" / "alt_test" / name
    people, models = (json.loads((folder / f"{who}_annotations.json").read_text()) for who in ("human", "llm"))
    return people, models


@pytest.mark.parametrize("name", PRINTED)
def test_the_authors_rows_come_out(data: Path, name: str) -> None:
    score, epsilon, printed = PRINTED[name]
    people, models = released(data, name)
    results = [alt_test(people, models[model], score, epsilon, authors=True) for model in MODELS]
    assert " ".join(f"{each.winning_rate:.2f}/{each.advantage:.2f}" for each in results) == printed


def test_clusters_change_a_verdict(data: Path) -> None:
    people, models = released(data, "lgbteen")
    judge = models["gpt-4o-mini"]
    items = alt_test(people, judge, "accuracy", 0.2)
    texts = alt_test(people, judge, "accuracy", 0.2, clusters=lambda item: str(item).split("__")[0])
    assert items.passes
    assert not texts.passes
    assert texts.people[0].texts < texts.people[0].items


def crowd(people: int = 4, items: int = 60, seed: int = 0) -> dict[str, dict[int, int]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=items)
    return {
        f"p{person}": dict(enumerate(np.where(rng.random(items) < 0.7, truth, rng.integers(3, size=items)).tolist()))
        for person in range(people)
    }


def test_a_judge_equal_to_everybody_passes_at_every_epsilon_above_0() -> None:
    answers = {item: item % 3 for item in range(40)}
    people = dict.fromkeys("abc", answers)
    for epsilon in (1e-9, 0.1, 0.5):
        result = alt_test(people, answers, epsilon=epsilon)
        assert (result.winning_rate, result.advantage) == (1, 1)
        assert all(person.p == 0 for person in result.people)
    at_zero = alt_test(people, answers, epsilon=0)
    assert at_zero.winning_rate == 0
    assert {person.why for person in at_zero.people} == {EQUAL_NOT_BETTER_REASON}
    authors = alt_test(people, answers, epsilon=0.1, authors=True)
    assert authors.winning_rate == 0
    assert math.isnan(authors.people[0].p)


def test_without_clusters_ours_is_the_authors() -> None:
    people = crowd()
    judge = crowd(1, seed=0)["p0"] | {0: 2, 5: 1}
    ours, theirs = alt_test(people, judge, epsilon=0.2), alt_test(people, judge, epsilon=0.2, authors=True)
    assert [each.p for each in ours.people] == pytest.approx([each.p for each in theirs.people])
    assert (ours.winning_rate, ours.advantage) == pytest.approx((theirs.winning_rate, theirs.advantage))
    assert ours.chance.low < ours.advantage < ours.chance.high


@given(st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=4), min_size=3, max_size=8))
def test_p_of_clusters_equals_its_definition(clusters: list[list[float]]) -> None:
    sums, sizes = np.array([sum(each) for each in clusters]), np.array([float(len(each)) for each in clusters])
    mean = sums.sum() / sizes.sum()
    residuals = [sum(value - mean for value in each) for each in clusters]
    groups = len(clusters)
    error = math.sqrt(groups / (groups - 1) * sum(each**2 for each in residuals)) / sizes.sum()
    slow = (1.0 if mean >= 0.1 else 0.0) if error < 1e-9 else scipy.stats.t.cdf((mean - 0.1) / error, groups - 1)
    weights = np.ones((1, groups))
    assert cluster_t_test_p_values(sums, sizes, 0.1, weights)[0] == pytest.approx(slow, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_rejections_equal_benjamini_and_yekutieli(p: list[float]) -> None:
    ranked, tests = sorted(p), len(p)
    harmonic = sum(1 / rank for rank in range(1, tests + 1))
    below = [rank for rank, value in enumerate(ranked, 1) if value <= 0.05 * rank / (tests * harmonic)]
    assert benjamini_yekutieli(np.array(p)).sum() == max(below, default=0)


def test_spans_are_tested_with_their_own_score() -> None:
    rng = np.random.default_rng(1)

    def marks() -> dict[int, list[tuple[int, int, str]]]:
        return {text: [(10 + int(rng.integers(3)), 20, "name")] if text % 2 else [] for text in range(40)}

    people = {name: marks() for name in "abcd"}
    result = alt_test(people, marks(), "char-f1", epsilon=0.2)
    assert result.passes
    silent = alt_test(people, {text: [] for text in range(40)}, "typed-f1", epsilon=0.2)
    assert not silent.passes
    assert "the judge gives the same answer to every item" in silent.notes


@pytest.mark.parametrize(
    ("people", "judge", "message"),
    [
        ({"a": {1: 1}}, {1: 1}, "requires at least two people, found 1"),
        ({"a": {1: 1}, "b": {1: 1}}, {2: 1}, "no item was answered by the judge and at least two people"),
        (
            {"a": dict.fromkeys(range(7), 1), "b": dict.fromkeys(range(7), 1)},
            dict.fromkeys(range(7), 1),
            "for a, at least 8 texts shared with the judge and another person are needed, found 7",
        ),
    ],
)
def test_what_cannot_be_tested_is_refused(
    people: dict[str, dict[int, int]], judge: dict[int, int], message: str
) -> None:
    with pytest.raises(FinecombError, match=message):
        alt_test(people, judge)


def test_the_authors_test_knows_no_clusters() -> None:
    with pytest.raises(FinecombError, match="clusters"):
        alt_test(crowd(), crowd(1)["p0"], authors=True, clusters=lambda item: item)
