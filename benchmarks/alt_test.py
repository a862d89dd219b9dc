"""Error rates of the alternative annotator test in 1,000 simulated studies per cell; writes a table in the docs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks._docs import markdown_table, write_table
from benchmarks._timing import best_seconds
from finecomb.statistics.judges.alt_test import alt_test

Ints = NDArray[np.int64]
PAGE = "judges/alternative-test.md"
STUDY_COUNT = 1000
PERSON_COUNT = 10
LABEL_COUNT = 4
HUMAN_SKILL = 0.75


def draw_answers(truth: Ints, skill: float, rng: np.random.Generator) -> Ints:
    """Draw answers that are true with probability `skill`, otherwise uniform over labels."""
    right = rng.random(len(truth)) < skill
    return np.where(right, truth, rng.integers(LABEL_COUNT, size=len(truth)))


def draw_clustered_answers(truth: Ints, skill: float, rng: np.random.Generator, size: int) -> Ints:
    """Draw answers that are right or wrong for all items of a text together."""
    right = np.repeat(rng.random(len(truth) // size) < skill, size)
    return np.where(right, truth, rng.integers(LABEL_COUNT, size=len(truth)))


def true_disadvantage(skill: float, draw: Callable[..., Ints], seed: int = 9, items: int = 400_000) -> float:
    """Return the disadvantage of a judge with this skill against one of ten people, from one very large study."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(LABEL_COUNT, size=items)
    people = np.stack([draw_answers(truth, HUMAN_SKILL, rng) for _ in range(PERSON_COUNT)])
    judge = draw(truth, skill, rng)
    mine, theirs = ((people[1:] == each).sum(axis=0) for each in (judge, people[0]))
    return float((theirs >= mine).mean() - (mine >= theirs).mean())


def skill_for_disadvantage(epsilon: float, draw: Callable[..., Ints]) -> float:
    """Return the skill at which a judge's disadvantage is epsilon, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if true_disadvantage(middle, draw) < epsilon else (middle, high)
    return (low + high) / 2


def pass_rate(skill: float, epsilon: float, items: int, size: int, seed: int, authors: bool, count: int) -> float:
    """Return the share of simulated studies in which the judge wins against at least half of the people."""
    passed = 0
    for study in range(count):
        rng = np.random.default_rng([seed, study])
        truth = rng.integers(LABEL_COUNT, size=items)
        people = {
            f"p{at}": dict(enumerate(draw_answers(truth, HUMAN_SKILL, rng).tolist())) for at in range(PERSON_COUNT)
        }
        judge = draw_clustered_answers(truth, skill, rng, size) if size > 1 else draw_answers(truth, skill, rng)
        clusters = None if authors or size == 1 else (lambda item: item // size)
        result = alt_test(people, dict(enumerate(judge.tolist())), "accuracy", epsilon, clusters, authors, draws=0)
        passed += result.passes
    return passed / count


def main(count: int = STUDY_COUNT) -> None:
    rows = []
    edge = skill_for_disadvantage(0.2, draw_answers)
    together = skill_for_disadvantage(0.2, lambda truth, skill, rng: draw_clustered_answers(truth, skill, rng, 5))
    for name, skill, size, items in (
        ("true disadvantage .2, items independent", edge, 1, 200),
        ("true disadvantage .2, 5 items a text", together, 5, 200),
        ("copy of a held-out person", HUMAN_SKILL, 1, 200),
    ):
        shares = [pass_rate(skill, 0.2, items, size, 4, authors, count) for authors in (False, True)]
        rows.append([name, items // size, items, *(f"{share:.3f}" for share in shares)])
    head = ["judge", "texts", "items", "passes, ours", "passes, the authors' program"]
    write_table(PAGE, "alternative test", markdown_table(head, rows))
    print(f"one study of 200 items, 10 people, 1,000 resamples: {best_seconds(_run_one_study):.2f} s")


def _run_one_study() -> object:
    rng = np.random.default_rng(0)
    truth = rng.integers(LABEL_COUNT, size=200)
    people = {f"p{at}": dict(enumerate(draw_answers(truth, HUMAN_SKILL, rng).tolist())) for at in range(PERSON_COUNT)}
    return alt_test(people, dict(enumerate(draw_answers(truth, HUMAN_SKILL, rng).tolist())), epsilon=0.2)
