"""Where generated documents come from the same process as real ones, 5% of tests reject: fitting included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from finecomb.core.records import Document
from finecomb.corpora.critics import compare, score_documents
from finecomb.corpora.critics.criticism import criticize, split_for_fitting
from tests.corpora.critics.example_documents import make_sectioned_document

STATES = "abcdefgh"
WORDS = {state: [f"{state}{number}" for number in range(30)] for state in STATES}
DRAWS = 199


def corpus(rng: np.random.Generator, table: np.ndarray, count: int, name: str) -> list[Document]:
    """Documents whose section types follow a chain and whose words tell types apart, mostly."""
    documents = []
    for number in range(count):
        at, sections = 0, []
        while True:
            step = int(rng.choice(len(STATES) + 1, p=table[at]))
            if step == len(STATES):
                break
            usual, other = WORDS[STATES[step]], WORDS[STATES[int(rng.integers(len(STATES)))]]
            sections.append((STATES[step], " ".join([*rng.choice(usual, 6), *rng.choice(other, 3)])))
            at = step + 1
        documents.append(make_sectioned_document(f"{name}-{number}", sections))
    return documents


def process(rng: np.random.Generator) -> np.ndarray:
    """A chain over eight states from a begin state into an end; it cannot end at once."""
    table = rng.dirichlet(np.full(len(STATES) + 1, 0.5), len(STATES) + 1)
    table[0, -1], table[1:, -1] = 0, 0.25
    table[0] /= table[0].sum()
    table[1:, :-1] *= 0.75 / table[1:, :-1].sum(axis=1, keepdims=True)
    return table


def p_values(seed: int) -> tuple[float, float]:
    """The command's p on held-out documents, and what it would be if fitting documents were scored."""
    rng = np.random.default_rng(seed)
    table = process(rng)
    real, generated = (corpus(rng, table, count, name) for count, name in ((80, "real"), (40, "generated")))
    honest = criticize("sections", real, {"s": generated}, seed=seed, min_count=2, smoothing="add:0.01")
    fitted_on = score_documents(honest.critic, split_for_fitting(real, seed=seed)[0])
    sides = honest.real, fitted_on
    first, second = (compare(side, honest.systems, draws=DRAWS, seed=seed)[0].p for side in sides)
    return first, second


def rejections(runs: int) -> tuple[int, int]:
    pvalues = np.array([p_values(seed) for seed in range(runs)])
    return int((pvalues[:, 0] <= 0.05).sum()), int((pvalues[:, 1] <= 0.05).sum())


def check(runs: int) -> None:
    honest, cheating = rejections(runs)
    low, high = stats.binom.interval(0.99, runs, 0.05)
    assert low <= honest <= high, f"{honest} of {runs} rejections at 5%; expected {low:.0f} to {high:.0f}"
    assert cheating > high, "scoring the fitting documents should have been found out"


@pytest.mark.long
def test_rejections_at_5_per_cent_lie_in_the_binomial_interval_and_scoring_fitting_documents_would_fail() -> None:
    check(30)


@pytest.mark.long
def test_rejections_of_200_runs() -> None:
    check(200)
