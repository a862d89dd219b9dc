"""Systems against held-out real documents: difference, interval, permutation p, matched lengths, what was dropped."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from finecomb.corpora.critics.base import CriticScores, DroppedDocument, latent_ppl
from finecomb.corpora.critics.comparison import (
    COPY_REASON,
    Comparison,
    combine_split_comparisons,
    compare,
    contrast_systems,
    correct_p_values,
    describe_dropped_documents,
)


def scored(
    values: list[float], steps: list[int] | None = None, dropped: int = 0, discrete: bool = True
) -> CriticScores:
    count = np.array(steps or [1] * len(values), np.int64)
    return CriticScores(
        critic="letters",
        statistic="nll",
        discrete=discrete,
        ids=tuple(f"d{at}" for at in range(len(values))),
        values=np.array(values, float),
        steps=count,
        lengths=count,
        points=((),) * len(values),
        dropped=tuple(DroppedDocument(f"x{at}", "is empty") for at in range(dropped)),
    )


def row(rows: list[Comparison], statistic: str) -> Comparison:
    (match,) = [comparison for comparison in rows if comparison.statistic == statistic]
    return match


def test_a_discrete_critic_is_compared_by_perplexity_and_by_mean() -> None:
    real, generated = scored([2, 4, 6], [2, 2, 4]), scored([6, 9], [2, 4])
    rows = compare(real, {"a": generated})
    ppl, nll = row(rows, "ppl"), row(rows, "nll")
    assert (ppl.real, ppl.generated) == pytest.approx((math.exp(12 / 8), math.exp(15 / 6)))
    assert (nll.real, nll.generated, nll.difference.value) == pytest.approx((4, 7.5, 3.5))


def test_a_critic_of_vectors_has_no_perplexity() -> None:
    rows = compare(scored([1, 2], discrete=False), {"a": scored([1, 3], discrete=False)})
    assert [comparison.statistic for comparison in rows] == ["nll"]


def test_a_divergence_has_no_perplexity() -> None:
    real, generated = (replace(scored(values), statistic="kl") for values in ([1.0, 2.0], [1.0, 3.0]))
    assert [comparison.statistic for comparison in compare(real, {"a": generated})] == ["kl"]
    assert latent_ppl(real).why == "Latent PPL is exp of a mean log-likelihood, but kl is a divergence"


def exact_mean_difference_test(first: list[int], second: list[int]) -> tuple[float, float]:
    """Return the difference of means, and the share of all regroupings that differ by at least as much."""
    both = np.array([*first, *second], float)
    groups = np.array([np.isin(range(len(both)), chosen) for chosen in combinations(range(len(both)), len(first))])
    differences = groups @ both / len(first) - ~groups @ both / len(second)  # the first regrouping is the observed one
    return differences[0], float(np.mean(np.abs(differences) >= abs(differences[0]) - 1e-9))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.lists(st.integers(0, 9), min_size=2, max_size=6))
def test_p_of_the_mean_is_near_the_exact_permutation_test(real: list[int], generated: list[int]) -> None:
    draws = 500
    comparison = row(
        compare(scored(list(map(float, real))), {"a": scored(list(map(float, generated)))}, draws=draws), "nll"
    )
    difference, p = exact_mean_difference_test(generated, real)
    assert comparison.p == pytest.approx(p, abs=5 * math.sqrt(0.25 / draws))
    assert comparison.difference.value == pytest.approx(difference)


def test_equal_corpora_have_no_difference_and_p_one() -> None:
    comparisons = compare(scored([0.1 + 0.2] * 8), {"a": scored([0.1 + 0.2] * 5)})
    assert all(comparison.difference.value == 0 and comparison.p == 1 for comparison in comparisons)
    assert all(comparison.matched.value == 0 for comparison in comparisons)
    reasons = {comparison.difference.why for comparison in comparisons}
    assert reasons == {"all resamples give the same value, so there is no interval"}
    assert {comparison.note for comparison in comparisons} == {""}


def test_a_value_below_the_real_one_is_flagged_and_not_praised() -> None:
    rng = np.random.default_rng(0)
    real = scored(rng.normal(10, 1, 200).tolist())
    far, near = scored(rng.normal(8, 1, 200).tolist()), scored((real.values[:50] - 0.01).tolist())
    rows = compare(real, {"far": far, "near": near, "above": scored(rng.normal(12, 1, 200).tolist())})
    notes = {comparison.system: comparison.note for comparison in rows if comparison.statistic == "nll"}
    assert notes["far"] == "mode-seeking"
    assert notes["above"] == ""


def test_fewer_than_two_documents_give_nan_with_a_reason_that_names_what_was_lost() -> None:
    comparison = compare(scored([1, 2]), {"a": scored([1], dropped=3)})[0]
    assert math.isnan(comparison.difference.value)
    assert math.isnan(comparison.p)
    assert (
        comparison.difference.why
        == "a comparison needs at least two generated documents with a score, found 1; 'x0': is empty"
    )
    assert comparison.dropped == (0, 3)


def test_lengths_alone_make_no_matched_difference() -> None:
    """One nat a step on both sides, but generated documents are longer."""
    real = scored([2.0] * 40 + [8.0] * 10, [2] * 40 + [8] * 10)
    generated = scored([2.0] * 5 + [8.0] * 45, [2] * 5 + [8] * 45)
    comparison = row(compare(real, {"a": generated}), "nll")
    assert comparison.difference.value > 3
    assert comparison.p < 0.01
    assert comparison.matched.value == pytest.approx(0, abs=1e-9)
    assert comparison.unmatched == 0


def test_documents_of_a_length_that_no_real_one_has_are_counted() -> None:
    comparison = row(
        compare(scored([2.0] * 30, [2] * 30), {"a": scored([2.0] * 15 + [9.0] * 15, [2] * 15 + [9] * 15)}), "nll"
    )
    assert comparison.unmatched == comparison.row()["unmatched"] == 15
    assert comparison.matched.value == pytest.approx(0)


def test_holm_goes_across_systems_and_critics_within_a_statistic() -> None:
    rng = np.random.default_rng(1)
    real = scored(rng.normal(size=60).tolist())
    systems = {name: scored(rng.normal(shift, 1, 60).tolist()) for name, shift in (("a", 0.4), ("b", 0.1))}
    rows = compare(real, systems)
    nll = sorted(
        (comparison for comparison in rows if comparison.statistic == "nll"), key=lambda comparison: comparison.p
    )
    assert nll[0].p_adjusted == pytest.approx(min(1, 2 * nll[0].p))
    both = correct_p_values([*rows, *rows])
    assert min(comparison.p_adjusted for comparison in both) == pytest.approx(
        min(1, 4 * min(comparison.p for comparison in rows))
    )


def test_the_seed_decides_and_the_order_of_systems_does_not() -> None:
    rng = np.random.default_rng(2)
    real, a, b = (scored(rng.normal(size=30).tolist()) for _ in range(3))
    first, second = compare(real, {"a": a, "b": b}), compare(real, {"b": b, "a": a})
    assert {str(comparison.row()) for comparison in first} == {str(comparison.row()) for comparison in second}
    assert compare(real, {"a": a}, seed=1)[0].p != compare(real, {"a": a}, seed=2)[0].p


@pytest.mark.long
def test_the_interval_covers_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for run in range(100):
        real, generated = scored(rng.normal(5, 2, 60).tolist()), scored(rng.normal(6, 2, 60).tolist())
        interval = row(compare(real, {"a": generated}, draws=300, seed=run), "nll").difference
        hits += interval.low <= 1 <= interval.high
    assert hits >= 86


def test_what_was_lost_is_told_in_one_line() -> None:
    assert describe_dropped_documents("real", scored([1])) == ""
    assert describe_dropped_documents("real", scored([1], dropped=4)) == (
        "real: 4 of 5 documents have no score from the letters critic: 4 x is empty (x0, x1, x2, ...)"
    )
    unseen = tuple(DroppedDocument(f"y{at}", f"state '{at}' was never seen") for at in range(2))
    assert describe_dropped_documents(
        "real", replace(scored([1], dropped=1), dropped=(DroppedDocument("x", "is empty"), *unseen))
    ) == (
        "real: 3 of 4 documents have no score from the letters critic: "
        "2 x state '0' was never seen or similar (y0, y1); "
        "1 x is empty (x)"
    )


# --- length, clusters, pairs, splits -----------------------------------------------------------------------------


def test_shortness_is_told_from_mode_seeking() -> None:
    """Shorter documents have a lower sum; at equal lengths nothing is left of it, and the note says so."""
    rng = np.random.default_rng(0)
    real_lengths, short = rng.integers(4, 21, 300), rng.integers(4, 9, 200)
    real = scored((real_lengths + rng.normal(size=300)).tolist(), real_lengths.tolist())
    shorter = scored((short + rng.normal(size=200)).tolist(), short.tolist())
    safer_lengths = rng.integers(4, 21, 200)
    safer = scored((0.7 * safer_lengths + rng.normal(size=200)).tolist(), safer_lengths.tolist())
    notes = {
        comparison.system: comparison
        for comparison in compare(real, {"shorter": shorter, "safer": safer}, draws=300)
        if comparison.statistic == "nll"
    }
    assert notes["shorter"].difference.high < 0
    assert notes["shorter"].note == "below real by length alone"
    assert notes["shorter"].matched.low < 0 < notes["shorter"].matched.high
    assert notes["shorter"].p_matched > 0.05
    assert notes["safer"].note == "mode-seeking"
    assert notes["safer"].p_matched < 0.01


def test_the_matched_test_rejects_as_often_as_it_says() -> None:
    """Generated documents are shorter, and at each length they are as real ones are."""
    runs, hits = 60, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        lengths, short = rng.integers(2, 12, 60), rng.integers(2, 8, 40)
        real = scored((lengths * rng.gamma(4, 0.25, 60)).tolist(), lengths.tolist())
        generated = scored((short * rng.gamma(4, 0.25, 40)).tolist(), short.tolist())
        hits += row(compare(real, {"a": generated}, draws=99, seed=seed), "nll").p_matched <= 0.05
    low, high = stats.binom.interval(0.99, runs, 0.05)
    assert low <= hits <= high


def prompted(rng: np.random.Generator, prompts: int, each_prompt: int, first: int = 0) -> CriticScores:
    """Documents whose values depend on their prompt more than on anything else."""
    effects = np.repeat(rng.normal(size=prompts), each_prompt)
    names = tuple(f"prompt {first + at // each_prompt}" for at in range(prompts * each_prompt))
    return replace(scored((10 + effects + 0.3 * rng.normal(size=len(effects))).tolist()), clusters=names)


def test_several_documents_of_a_prompt_are_no_more_than_one_prompt() -> None:
    """Without clusters far more than 5% of tests reject where nothing differs."""
    runs, hits, naive = 60, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        real, generated = prompted(rng, 30, 1), prompted(rng, 10, 6, first=100)
        hits += row(compare(real, {"a": generated}, draws=99, seed=seed), "nll").p <= 0.05
        alone = [replace(side, clusters=()) for side in (real, generated)]
        naive += row(compare(alone[0], {"a": alone[1]}, draws=99, seed=seed), "nll").p <= 0.05
    low, high = stats.binom.interval(0.99, runs, 0.05)
    assert low <= hits <= high
    assert naive > high


def test_pairs_see_what_the_spread_of_prompts_hides() -> None:
    rng = np.random.default_rng(3)
    effects = rng.normal(size=40) * 5
    names = tuple(f"p{at}" for at in range(40))
    real = replace(scored((50 + effects + 0.2 * rng.normal(size=40)).tolist()), clusters=names)
    twice = np.repeat(effects, 2)
    values = 50.3 + twice + 0.2 * rng.normal(size=80)
    generated = replace(scored(values.tolist()), clusters=tuple(np.repeat(names, 2)))
    together = row(compare(real, {"a": generated}, paired=True, draws=300), "nll")
    apart = row(compare(real, {"a": generated}, draws=300), "nll")
    assert together.p < 0.01 < apart.p
    assert together.difference.value == pytest.approx(values.mean() - real.values.mean())
    assert together.difference.high - together.difference.low < 0.3
    assert "units:paired" in str(together.difference.signature)


def test_the_paired_p_is_near_the_exact_one() -> None:
    """Three prompts with a real and a generated document each: eight ways to change sides."""
    real = replace(scored([1.0, 2.0, 3.0]), clusters=("a", "b", "c"))
    generated = replace(scored([2.0, 3.5, 3.2]), clusters=("a", "b", "c"))
    comparison = row(compare(real, {"s": generated}, paired=True, draws=2000), "nll")
    assert comparison.p == pytest.approx(2 / 8, abs=0.04)
    alone = row(compare(real, {"s": replace(generated, clusters=("x", "y", "z"))}, paired=True), "nll")
    assert (
        alone.difference.why
        == "a paired comparison needs at least two clusters or IDs with documents of both sides, found 0"
    )


def test_without_clusters_pairs_go_by_id() -> None:
    real, generated = scored([1.0, 5.0, 9.0]), scored([1.5, 5.5, 9.5])
    comparison = row(compare(real, {"s": generated}, paired=True, draws=500), "nll")
    assert comparison.difference.value == pytest.approx(0.5)


def test_systems_are_contrasted_with_each_other() -> None:
    rng = np.random.default_rng(1)
    systems = {name: scored(rng.normal(mean, 1, 80).tolist()) for name, mean in (("a", 10), ("b", 10), ("c", 12))}
    rows = [contrast for contrast in contrast_systems(systems, draws=300) if contrast.statistic == "nll"]
    assert [(contrast.system, contrast.against) for contrast in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert rows[0].difference.low < 0 < rows[0].difference.high
    assert rows[1].difference.value == pytest.approx(systems["a"].values.mean() - systems["c"].values.mean())
    assert rows[1].p_adjusted < 0.02 < rows[0].p
    shared = {name: replace(scores, clusters=scores.ids) for name, scores in systems.items()}
    assert "units:paired" in str(contrast_systems(shared, draws=20)[0].difference.signature)


def test_splits_are_combined_by_medians() -> None:
    rng = np.random.default_rng(2)
    splits = [
        compare(scored(rng.normal(10, 1, 40).tolist()), {"a": scored(rng.normal(10, 1, 40).tolist())}, draws=99)
        for _ in range(5)
    ]
    result = combine_split_comparisons(splits, "none")
    assert [comparison.statistic for comparison in result] == [comparison.statistic for comparison in splits[0]]
    for place, comparison in enumerate(result):
        pvalues = [rows[place].p for rows in splits]
        assert comparison.p == pytest.approx(min(1, 2 * float(np.median(pvalues))))
        assert comparison.difference.value == pytest.approx(
            np.median([rows[place].difference.value for rows in splits])
        )
    assert combine_split_comparisons(splits[:1], "none") == splits[0][:0] + correct_p_values(splits[0], "none")


def test_copies_of_fitted_texts_are_reported_as_copies() -> None:
    losses = (DroppedDocument("x", COPY_REASON), DroppedDocument("y", "is empty"))
    comparison = compare(scored([1, 2, 3]), {"a": replace(scored([1, 2, 3]), dropped=losses)}, draws=20)[0]
    assert comparison.copies == comparison.row()["copies"] == 1
    assert "1 copies" in comparison.note
