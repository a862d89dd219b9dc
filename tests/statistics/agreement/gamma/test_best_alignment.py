from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.statistics.agreement.gamma.best_alignment import best_alignment, pairwise_lower_bound
from finecomb.statistics.agreement.gamma.chance_samplers import CHANCE_SAMPLERS
from finecomb.statistics.agreement.gamma.cluster_search import ClusterSearch
from finecomb.statistics.agreement.gamma.continuum import Continuum
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.set_partitioning import build_alignment_problem
from finecomb.statistics.agreement.gamma.work_budget import BudgetExceededError, WorkBudget
from tests.statistics.agreement.gamma_continua import (
    make_continuum,
    random_continuum,
    slow_disorder,
    slow_unitary_disorder,
    small_continua,
    unitary_alignments,
)


@given(small_continua())
def test_the_best_alignment_equals_brute_force(marks: Continuum) -> None:
    best = best_alignment(marks)
    assert best.upper == pytest.approx(slow_disorder(marks), abs=1e-7)
    assert best.status == "proven"
    assert best.lower == best.upper


@given(small_continua())
def test_soft_alignment_equals_brute_force_and_is_never_worse(marks: Continuum) -> None:
    best = best_alignment(marks, soft=True)
    assert best.upper == pytest.approx(slow_disorder(marks, soft=True), abs=1e-7)
    assert best.status == "proven"
    assert best.upper <= best_alignment(marks).upper + 1e-9
    assert best.clusters.any(axis=0).all()


@given(small_continua(), st.sampled_from([(1.0, 0.0), (0.0, 1.0), (3.0, 1.0), (1.0, 2.5)]))
def test_weights_of_place_and_category_are_heeded(marks: Continuum, weights: tuple[float, float]) -> None:
    alpha, beta = weights
    best = best_alignment(marks, Dissimilarity(alpha=alpha, beta=beta))
    assert best.upper == pytest.approx(slow_disorder(marks, alpha=alpha, beta=beta), abs=1e-7)


@given(small_continua(annotators=5, marks=14))
def test_an_alignment_has_each_mark_once_and_each_annotator_once_a_cluster(marks: Continuum) -> None:
    best = best_alignment(marks)
    assert (best.clusters.sum(axis=0) == 1).all()
    for cluster in best.clusters:
        assert len(set(marks.owner[cluster])) == cluster.sum() > 0
    slow = sum(slow_unitary_disorder(marks, np.flatnonzero(cluster).tolist()) for cluster in best.clusters)
    assert best.upper == pytest.approx(slow / marks.marks_per_annotator)
    assert (best.clusters[best.clusters.argmax(axis=0), np.arange(len(marks))]).all()
    assert set(best.cluster_first_marks) == {int(cluster.argmax()) for cluster in best.clusters}


@given(small_continua(annotators=5, marks=12), st.randoms(use_true_random=False))
def test_the_order_of_annotators_and_marks_does_not_matter(marks: Continuum, random: object) -> None:
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    people, order = rng.permutation(marks.annotators), rng.permutation(len(marks))
    turned = Continuum.from_arrays(
        marks.annotators,
        marks.length,
        people[marks.owner][order],
        marks.start[order],
        marks.end[order],
        marks.category[order],
    )
    assert best_alignment(turned).upper == pytest.approx(best_alignment(marks).upper, abs=1e-7)


@given(small_continua(annotators=4, marks=10))
def test_delta_only_scales_the_disorder(marks: Continuum) -> None:
    assert best_alignment(marks, Dissimilarity(delta=2.5)).upper == pytest.approx(2.5 * best_alignment(marks).upper)


@given(small_continua(annotators=4, marks=8), st.floats(0, 3), st.floats(0, 3))
def test_dearer_dissimilarities_never_give_less_disorder(marks: Continuum, alpha: float, beta: float) -> None:
    cheap = best_alignment(marks, Dissimilarity(alpha=alpha + 0.1, beta=beta))
    dear = best_alignment(marks, Dissimilarity(alpha=alpha + 0.6, beta=beta + 0.5))
    assert dear.upper >= cheap.upper - 1e-7


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(2, 6),
)
def test_identical_annotators_have_no_disorder(spans: list[tuple[int, int, int]], n: int) -> None:
    marks = make_continuum(n, [(who, start, start + long, label) for who in range(n) for start, long, label in spans])
    assert best_alignment(marks).upper == pytest.approx(0, abs=1e-9)


def test_a_third_mark_near_both_pays_for_a_bad_pair() -> None:
    # Two marks far more dissimilar than Delta share a cluster because ten others connect them.
    marks = make_continuum(12, [(0, 0, 4, 0), (1, 16, 20, 0), *((who, 0, 20, 0) for who in range(2, 12))])
    best = best_alignment(marks)
    assert len(best.clusters) == 1
    assert Dissimilarity().combined_dissimilarity(marks)[0, 1] > 10


def test_annotators_without_marks_count() -> None:
    marks = make_continuum(2, [(0, 0, 5, 0), (1, 0, 5, 0)])
    assert best_alignment(marks).upper == 0
    assert best_alignment(replace(marks, annotators=3)).upper == pytest.approx((2 / 3) / (2 / 3))


def test_only_one_annotator_marked_anything() -> None:
    best = best_alignment(make_continuum(4, [(2, 0, 5, 0), (2, 7, 9, 1)]))
    assert best.status == "proven"
    assert best.upper == pytest.approx(2 / (2 / 4))


def test_omissions_at_one_place_are_alike() -> None:
    assert best_alignment(make_continuum(2, [(0, 7, 7, 0), (1, 7, 7, 0)])).upper == 0


@pytest.mark.parametrize("marks", [make_continuum(1, [(0, 0, 5, 0)]), make_continuum(3, [])])
def test_an_alignment_needs_two_annotators_and_a_mark(marks: Continuum) -> None:
    with pytest.raises(FinecombError, match="at least two annotators and one mark"):
        best_alignment(marks)


# --- certificates ------------------------------------------------------------------------------------------------


@given(small_continua(annotators=4, marks=9), st.integers(0, 2**32 - 1), st.floats(-0.3, 0.6))
def test_the_search_finds_all_clusters_below_a_threshold(marks: Continuum, seed: int, threshold: float) -> None:
    problem = build_alignment_problem(marks, Dissimilarity())
    prices = np.random.default_rng(seed).uniform(-0.2, 1.0, len(marks))
    clusters = ClusterSearch.from_problem(problem).find_all_below(prices, threshold, WorkBudget.from_units(60))
    listed = {frozenset(np.flatnonzero(row).tolist()) for row in clusters}
    for cluster in unitary_alignments(marks):
        members = np.isin(np.arange(len(marks)), cluster)
        reduced = float(problem.cluster_costs(members[None])[0] - prices[members].sum())
        # not equal, since large distances are capped
        assert reduced <= slow_unitary_disorder(marks, cluster) - prices[members].sum() + 1e-9
        if abs(reduced - threshold) > 1e-9:
            assert (frozenset(cluster) in listed) == (reduced < threshold)


def test_larger_searches_equal_enumeration() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        marks = random_continuum(rng, 7, 3)
        problem = build_alignment_problem(marks, Dissimilarity())
        prices = rng.uniform(0, 0.6, len(marks))
        clusters = ClusterSearch.from_problem(problem).find_all_below(prices, 0.0, WorkBudget.from_units(60))
        every = list(unitary_alignments(marks))
        sets = np.zeros((len(every), len(marks)), dtype=bool)
        for row, cluster in zip(sets, every, strict=True):
            row[list(cluster)] = True
        below = sets[problem.cluster_costs(sets) - sets @ prices < 0]
        assert {row.tobytes() for row in below} == {row.tobytes() for row in clusters}


@given(small_continua())
def test_the_bound_that_needs_no_search_holds(marks: Continuum) -> None:
    assert (
        pairwise_lower_bound(build_alignment_problem(marks, Dissimilarity())) / marks.marks_per_annotator
        <= slow_disorder(marks) + 1e-9
    )


def test_a_search_stops_when_the_work_allowed_is_done() -> None:
    marks = random_continuum(np.random.default_rng(0), 10, 4)
    problem = build_alignment_problem(marks, Dissimilarity())
    with pytest.raises(BudgetExceededError):
        ClusterSearch.from_problem(problem).find_all_below(np.full(len(marks), 0.5), 0.0, WorkBudget.from_units(0))


@settings(max_examples=10)
@given(st.integers(0, 100), st.sampled_from([1e-9, 0.01, 0.05]))
def test_a_stopped_alignment_has_a_gap_around_the_best(seed: int, work: float) -> None:
    marks = random_continuum(np.random.default_rng(seed), 8, 4)
    stopped, best = best_alignment(marks, work=work), best_alignment(marks)
    assert best.status == "proven"
    assert stopped.lower <= best.upper + 1e-7 <= stopped.upper + 2e-7
    assert (stopped.clusters.sum(axis=0) == 1).all()


def test_a_stopped_alignment_is_the_same_however_slow_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    # With a time limit, the result depended on the speed of the machine.
    marks, kept = random_continuum(np.random.default_rng(3), 9, 4), ClusterSearch._prune_clusters
    quick = best_alignment(marks, work=0.02)
    calls: list[float] = []

    def slow(*arguments: Any) -> Any:
        calls.append(time.monotonic())
        time.sleep(0.005)
        return kept(*arguments)

    monkeypatch.setattr(ClusterSearch, "_prune_clusters", slow)
    again = best_alignment(marks, work=0.02)
    assert calls
    assert quick.status == "stopped"
    assert (again.lower, again.upper, again.clusters.tolist()) == (quick.lower, quick.upper, quick.clusters.tolist())


@given(small_continua(annotators=5, marks=14), st.integers(0, 2**32 - 1))
def test_costs_are_exact_so_that_no_order_of_adding_up_changes_them(marks: Continuum, seed: int) -> None:
    # The order of summation depends on the number of threads, and the last digits differed.
    alignment_problem, rng = build_alignment_problem(marks, Dissimilarity()), np.random.default_rng(seed)
    clusters = np.array([[rng.random() < 0.5 for _ in marks.owner] for _ in range(5)])
    for cluster, cost in zip(clusters, alignment_problem.cluster_costs(clusters), strict=True):
        rows = np.flatnonzero(cluster)
        terms = [
            Fraction(float(alignment_problem.joint_costs[one, other])) for one in rows for other in rows if other < one
        ]
        assert Fraction(float(cost)) == 1 + sum(terms)


def test_where_clusters_cannot_be_listed_the_gap_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    drawn = [CHANCE_SAMPLERS["shuffle"](random_continuum(rng, 6, 4), rng) for _ in range(60)]
    best = [best_alignment(marks) for marks in drawn]

    def give_up(*_: object) -> None:
        raise BudgetExceededError

    monkeypatch.setattr(ClusterSearch, "find_all_below", give_up)
    found = [best_alignment(marks) for marks in drawn]
    assert {each.status for each in best} == {"proven"}
    assert {each.status for each in found} == {"proven", "stopped"}
    for one, other in zip(found, best, strict=True):
        assert one.lower <= other.upper + 1e-7 <= one.upper + 2e-7


@pytest.mark.long
def test_thousands_of_marks_do_not_hang() -> None:
    marks = random_continuum(np.random.default_rng(0), 5, 600, length=8000)
    assert len(marks) > 1000
    began = time.monotonic()
    best = best_alignment(marks, work=3)
    assert time.monotonic() - began < 120  # a guard against a hang, not a timing test
    assert 0 <= best.lower <= best.upper
