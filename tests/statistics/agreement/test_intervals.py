"""Intervals of agreement cover the true value at their nominal rate."""

from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.results import Signature
from finecomb.statistics.agreement.alpha import pooled_alpha, tally_binary_votes
from finecomb.statistics.agreement.pairwise import MarkDepths, annotator_pair_overlaps, micro_f1
from finecomb.statistics.inference.resampling import Floats, Weights, estimate_with_interval, study_and_resample_weights

READERS, UNITS = 4, 30


def world(documents: int, rng: np.random.Generator) -> MarkDepths:
    """Simulate texts with different error rates; errors are marked with probability 0.6, other words with 0.05."""
    share = rng.beta(2, 8, size=documents)
    wrong = rng.random((documents, UNITS)) < share[:, None]
    seen = rng.random((documents, READERS, UNITS)) < np.where(wrong, 0.6, 0.05)[:, None]
    return MarkDepths(
        seen.reshape(1, -1).astype(np.int16),
        np.arange(documents * READERS + 1) * UNITS,
        np.repeat(np.arange(documents), READERS),
        np.tile(np.arange(READERS), documents),
        tuple("pqrs"),
    )


def both(own: MarkDepths, weights: Weights) -> dict[str, Floats]:
    documents = weights.shape[1]
    k = own.depth.reshape(documents, READERS, UNITS).sum(axis=1).reshape(1, -1).astype(np.int64)
    m = np.full(documents * UNITS, READERS)
    tally = tally_binary_votes(("any",), k, m, np.arange(documents + 1) * UNITS)
    return {"alpha": pooled_alpha(tally, weights)[:, 0], "f1": micro_f1(annotator_pair_overlaps(own), weights)[:, 0]}


def covered(runs: int, everywhere: int, documents: int = 100) -> dict[str, float]:
    """Return the share of runs whose interval covers the value of a study with very many documents."""
    everything = both(world(everywhere, np.random.default_rng(0)), np.ones((1, everywhere)))
    truth = {name: value[0] for name, value in everything.items()}
    hits = dict.fromkeys(truth, 0)
    for run in range(1, runs + 1):
        drawn = both(world(documents, np.random.default_rng(run)), study_and_resample_weights(documents, 400, run))
        for name, each in drawn.items():
            estimate = estimate_with_interval(float(each[0]), each[1:], Signature.from_fields(statistic=name))
            hits[name] += estimate.low <= truth[name] <= estimate.high
    return {name: count / runs for name, count in hits.items()}


@pytest.mark.long
def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    assert all(0.88 <= share <= 0.99 for share in covered(120, 4_000).values())


@pytest.mark.long
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    assert all(0.93 <= share <= 0.97 for share in covered(1000, 40_000).values())
