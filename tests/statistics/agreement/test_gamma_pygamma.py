"""Comparison with pygamma-agreement, an independent implementation: alignments, chance samples and definitions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from finecomb.statistics.agreement.gamma.best_alignment import best_alignment
from finecomb.statistics.agreement.gamma.chance_samplers import CHANCE_SAMPLERS
from finecomb.statistics.agreement.gamma.continuum import Continuum, Floats
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.gamma_cat import category_disagreement_sums
from tests.statistics.agreement.gamma_continua import random_continuum

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pygamma_agreement as peer
    from pyannote.core import Segment

# pygamma-agreement and its dependencies give many warnings
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

CATEGORIES = "abc"


def theirs(marks: Continuum) -> Any:
    """Convert a continuum to one of pygamma-agreement, including annotators without marks."""
    copy = peer.Continuum()
    for annotator in range(marks.annotators):
        copy.add_annotator(f"{annotator:02}")
    for at in range(len(marks)):
        segment = Segment(marks.start[at], marks.end[at])
        copy.add(f"{marks.owner[at]:02}", segment, CATEGORIES[marks.category[at]])
    copy.bound_sup = marks.length
    return copy


def their_dissimilarity(alpha: float = 1.0, beta: float = 1.0) -> Any:
    return peer.CombinedCategoricalDissimilarity(alpha=alpha, beta=beta, delta_empty=1.0)


@pytest.mark.parametrize(
    ("annotators", "most", "instances"), [(3, 5, 80), (4, 4, 60), (5, 3, 50), (6, 3, 30), (8, 2, 6)]
)
def test_best_alignments_have_the_same_disorder(annotators: int, most: int, instances: int) -> None:
    distance = their_dissimilarity()
    for seed in range(instances):
        marks = random_continuum(np.random.default_rng([annotators, seed]), annotators, most)
        best = best_alignment(marks)
        assert best.status == "proven"
        assert best.upper == pytest.approx(theirs(marks).get_best_alignment(distance).disorder, rel=1e-5, abs=1e-6)


def test_soft_alignments_have_the_same_disorder() -> None:
    distance = their_dissimilarity(alpha=2.0, beta=0.5)
    ours = Dissimilarity(alpha=2.0, beta=0.5)
    for seed in range(40):
        marks = random_continuum(np.random.default_rng(seed), 3 + seed % 2, 4)
        best = best_alignment(marks, ours, soft=True)
        assert best.upper == pytest.approx(theirs(marks).get_best_soft_alignment(distance).disorder, rel=1e-5, abs=1e-6)


def test_disorders_of_categories_are_the_same() -> None:
    """The term of pygamma-agreement for marks without a partner, which is not in Mathet (2017), gets weight 0."""
    for seed in range(60):
        marks = random_continuum(np.random.default_rng(seed), 3 + seed % 3, 4)
        distance = their_dissimilarity()
        alignment = theirs(marks).get_best_alignment(distance)
        distance.delta_empty = 0.0
        sums = category_disagreement_sums(marks, _clusters(alignment, marks), Dissimilarity(), len(CATEGORIES))
        for at, category in enumerate([None, *CATEGORIES]):
            if sums[at, 1] > 0:
                expected = alignment.gamma_k_disorder(distance, category)
                assert sums[at, 0] / sums[at, 1] == pytest.approx(expected, abs=1e-6)


def _clusters(alignment: Any, marks: Continuum) -> np.ndarray[Any, Any]:
    """Convert an alignment of pygamma-agreement to clusters; both sort marks in the same way."""
    place = {
        (int(marks.owner[at]), marks.start[at], marks.end[at], CATEGORIES[marks.category[at]]): at
        for at in range(len(marks))
    }
    clusters = np.zeros((len(alignment.unitary_alignments), len(marks)), dtype=bool)
    for row, unitary in zip(clusters, alignment, strict=True):
        for annotator, unit in unitary.n_tuple:
            if unit is not None:
                row[place[int(annotator), unit.segment.start, unit.segment.end, unit.annotation]] = True
    return clusters


@pytest.mark.parametrize("sampler", ["shuffle", "statistical"])
def test_chance_gives_the_same_disorder_within_sampling_error(sampler: str) -> None:
    rng = np.random.default_rng(5)
    marks = random_continuum(rng, 3, 4, length=200)
    ours = [best_alignment(CHANCE_SAMPLERS[sampler](marks, rng)).upper for _ in range(300)]
    assert abs(_deviations(np.array(ours), _their_chance(marks, sampler, 300))) < 4


def _their_chance(marks: Continuum, sampler: str, count: int) -> Floats:
    np.random.seed(0)
    draw = {"shuffle": peer.ShuffleContinuumSampler, "statistical": peer.StatisticalContinuumSampler}[sampler]()
    draw.init_sampling(theirs(marks))
    distance = their_dissimilarity()
    return np.array([draw.sample_from_continuum.get_best_alignment(distance).disorder for _ in range(count)])


def _deviations(one: Floats, other: Floats) -> float:
    """Return the difference of two means in standard errors."""
    error = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return float((one.mean() - other.mean()) / error)
