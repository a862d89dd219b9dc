"""Systems against held-out real documents: difference, interval, permutation p, matched lengths, what was dropped."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.critics.base import CriticScores, Dropped, latent_ppl
from finecomb.critics.comparison import Comparison, compare, corrected, dropped_words
from finecomb.measure.permutation import unpaired


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
        dropped=tuple(Dropped(f"x{at}", "is empty") for at in range(dropped)),
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
    assert latent_ppl(real).why == "Latent PPL is exp of a mean log-likelihood, and kl is a divergence"


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.lists(st.integers(0, 9), min_size=2, max_size=6))
def test_p_of_the_mean_is_near_the_exact_permutation_test(real: list[int], generated: list[int]) -> None:
    draws = 500
    comparison = row(
        compare(scored(list(map(float, real))), {"a": scored(list(map(float, generated)))}, draws=draws), "nll"
    )
    exact = unpaired(np.array(generated, float), np.array(real, float), draws, np.random.default_rng(0))
    assert exact.exact
    assert comparison.p == pytest.approx(exact.p, abs=5 * math.sqrt(0.25 / draws))
    assert comparison.difference.value == pytest.approx(exact.difference)


def test_equal_corpora_have_no_difference_and_p_one() -> None:
    comparisons = compare(scored([0.1 + 0.2] * 8), {"a": scored([0.1 + 0.2] * 5)})
    assert all(comparison.difference.value == 0 and comparison.p == 1 for comparison in comparisons)
    assert all(comparison.matched == 0 for comparison in comparisons)
    reasons = {comparison.difference.why for comparison in comparisons}
    assert reasons == {"all resamples give the same value, so no interval"}
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
    assert comparison.difference.why == "1 generated documents have a score, and a comparison needs two; 'x0': is empty"
    assert comparison.dropped == (0, 3)


def test_lengths_alone_make_no_matched_difference() -> None:
    """One nat a step on both sides, but generated documents are longer."""
    real = scored([2.0] * 40 + [8.0] * 10, [2] * 40 + [8] * 10)
    generated = scored([2.0] * 5 + [8.0] * 45, [2] * 5 + [8] * 45)
    comparison = row(compare(real, {"a": generated}), "nll")
    assert comparison.difference.value > 3
    assert comparison.p < 0.01
    assert comparison.matched == pytest.approx(0, abs=1e-9)
    assert comparison.unmatched == 0


def test_documents_of_a_length_that_no_real_one_has_are_counted() -> None:
    comparison = row(
        compare(scored([2.0] * 30, [2] * 30), {"a": scored([2.0] * 15 + [9.0] * 15, [2] * 15 + [9] * 15)}), "nll"
    )
    assert comparison.unmatched == comparison.row()["unmatched"] == 15
    assert comparison.matched == pytest.approx(0)


def test_holm_goes_across_systems_and_critics_within_a_statistic() -> None:
    rng = np.random.default_rng(1)
    real = scored(rng.normal(size=60).tolist())
    systems = {name: scored(rng.normal(shift, 1, 60).tolist()) for name, shift in (("a", 0.4), ("b", 0.1))}
    rows = compare(real, systems)
    nll = sorted(
        (comparison for comparison in rows if comparison.statistic == "nll"), key=lambda comparison: comparison.p
    )
    assert nll[0].p_adjusted == pytest.approx(min(1, 2 * nll[0].p))
    both = corrected([*rows, *rows])
    assert min(comparison.p_adjusted for comparison in both) == pytest.approx(
        min(1, 4 * min(comparison.p for comparison in rows))
    )


def test_the_seed_decides_and_the_order_of_systems_does_not() -> None:
    rng = np.random.default_rng(2)
    real, a, b = (scored(rng.normal(size=30).tolist()) for _ in range(3))
    first, second = compare(real, {"a": a, "b": b}), compare(real, {"b": b, "a": a})
    assert {str(comparison.row()) for comparison in first} == {str(comparison.row()) for comparison in second}
    assert compare(real, {"a": a}, seed=1)[0].p != compare(real, {"a": a}, seed=2)[0].p


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for run in range(100):
        real, generated = scored(rng.normal(5, 2, 60).tolist()), scored(rng.normal(6, 2, 60).tolist())
        interval = row(compare(real, {"a": generated}, draws=300, seed=run), "nll").difference
        hits += interval.low <= 1 <= interval.high
    assert hits >= 86


def test_what_was_lost_is_told_in_one_line() -> None:
    assert dropped_words("real", scored([1])) == ""
    assert dropped_words("real", scored([1], dropped=4)) == (
        "real: 4 of 5 documents could not be judged by the letters critic: 4 x is empty (x0, x1, x2, ...)"
    )
    unseen = tuple(Dropped(f"y{at}", f"state '{at}' was never seen") for at in range(2))
    assert dropped_words("real", replace(scored([1], dropped=1), dropped=(Dropped("x", "is empty"), *unseen))) == (
        "real: 3 of 4 documents could not be judged by the letters critic: 2 x like state '0' was never seen (y0, y1); "
        "1 x is empty (x)"
    )
