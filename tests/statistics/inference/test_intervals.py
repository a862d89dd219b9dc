from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import ParameterError
from finecomb.core.results import Signature
from finecomb.statistics.inference.clusters import Clusters, find_clusters, text_clusters
from finecomb.statistics.inference.intervals import (
    Floats,
    IntervalSettings,
    bootstrap_t_quantiles,
    estimate_from_interval,
    exact_interval,
    ratio_intervals,
    two_way_ratio_intervals,
    weighted_intervals,
)
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments
from finecomb.statistics.inference.resampling import seeded_document_weights

PERCENTILE = IntervalSettings("percentile", draws=200)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def ratio_of(top: Floats, bottom: Floats):  # type: ignore[no-untyped-def]
    return lambda weights: np.stack([(weights @ top) / (weights @ bottom)], axis=1)


def slow_jackknife(top: Floats, bottom: Floats) -> Floats:
    """Return the ratio without each cluster in turn."""
    return np.array([np.delete(top, i).sum() / np.delete(bottom, i).sum() for i in range(len(top))], dtype=np.float64)


def test_a_mean_has_halls_interval() -> None:
    values = rng().gamma(0.7, 2, 20)
    found = ratio_intervals(values[:, None], np.ones((20, 1)))[0]
    assert (found.low, found.high) == pytest.approx(hall_interval(values.mean(), mean_error_moments(values)))
    assert found.method == "hall"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=5, max_size=12))
def test_the_influence_on_a_ratio_is_that_of_the_jackknife(cells: list[tuple[int, int]]) -> None:
    top, bottom = np.array(cells, dtype=np.float64).T
    value, left_out = top.sum() / bottom.sum(), slow_jackknife(top, bottom)
    found = ratio_intervals(top[:, None], bottom[:, None])[0]
    if np.ptp(top / bottom) == 0:
        assert math.isnan(found.low)
        assert found.why
        return
    pseudo = (len(top) - 1) * (value - left_out)
    assert (found.low, found.high) == pytest.approx(hall_interval(value, mean_error_moments(pseudo)), rel=1e-6)


@pytest.mark.parametrize(("ones", "texts"), [(0, 10), (3, 10), (10, 10), (1, 25)])
def test_zeros_and_ones_have_an_exact_interval(ones: int, texts: int) -> None:
    values = (np.arange(texts) < ones).astype(np.float64)[:, None]
    found = ratio_intervals(values, np.ones_like(values), bounds=(0, 1))[0]
    oracle = scipy.stats.binomtest(ones, texts).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high))
    assert found.method == "exact"


def test_counts_that_are_all_zero_have_a_reason_and_no_interval() -> None:
    found = ratio_intervals(np.zeros((10, 1)), np.ones((10, 1)), noun="text")[0]
    assert math.isnan(found.low)
    assert found.why == "0 in all 10 texts, so there is no interval; at most 31% of texts differ from 0 (exact, 95%)"


@pytest.mark.parametrize(("clusters", "why"), [(3, "requires at least 4"), (5, "few clusters (5)"), (8, "")])
def test_few_clusters_are_reported(clusters: int, why: str) -> None:
    values = rng().normal(0, 1, (clusters, 1))
    for found in (
        ratio_intervals(values, np.ones_like(values))[0],
        weighted_intervals(ratio_of(values[:, 0], np.ones(clusters)), text_clusters(clusters), "number")[0],
        weighted_intervals(
            ratio_of(values[:, 0], np.ones(clusters)), text_clusters(clusters), "number", settings=PERCENTILE
        )[0],
    ):
        assert why in found.why
        assert math.isnan(found.low) == (clusters < 4)


def test_a_proportion_has_a_jackknife_interval_on_the_logit() -> None:
    bottom = rng().integers(1, 9, 15).astype(np.float64)
    top = rng(1).binomial(bottom.astype(int), 0.4).astype(np.float64)
    found = weighted_intervals(ratio_of(top, bottom), text_clusters(15), "proportion")[0]
    logits = scipy.special.logit(slow_jackknife(top, bottom))
    error = math.sqrt(14 / 15 * ((logits - logits.mean()) ** 2).sum())
    reach = scipy.stats.t.ppf(0.975, 14) * error
    expected = scipy.special.expit(scipy.special.logit(top.sum() / bottom.sum()) + np.array([-reach, reach]))
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert found.method == "jackknife-t-logit"


def test_texts_without_marks_do_not_count_for_a_proportion() -> None:
    bottom, top = np.array([4.0, 5, 3, 6, 4]), np.array([1.0, 4, 2, 3, 2])
    padded = [np.concatenate([values, np.zeros(50)]) for values in (top, bottom)]
    with np.errstate(invalid="ignore"):
        few = weighted_intervals(ratio_of(top, bottom), text_clusters(5), "proportion")[0]
        many = weighted_intervals(ratio_of(*padded), text_clusters(55), "proportion")[0]
    assert many[:2] == pytest.approx(few[:2])
    assert many.why == few.why == "few clusters (5)"


def test_a_perfect_proportion_has_an_exact_interval() -> None:
    found = weighted_intervals(ratio_of(np.ones(10), np.ones(10)), text_clusters(10), "proportion")[0]
    assert (found.low, found.high) == pytest.approx(exact_interval(10, 10))
    assert found.method == "exact"


def test_a_proportion_that_one_cluster_keeps_from_1_has_an_interval() -> None:
    top, bottom = np.array([2.0, 2, 2, 2, 0, 2, 2, 2]), np.full(8, 2.0)
    found = weighted_intervals(ratio_of(top, bottom), text_clusters(8), "proportion")[0]
    assert 0 < found.low < 14 / 16 < found.high < 1


def slow_bootstrap_t(values: Floats, draws: int, seed: int) -> tuple[float, float]:
    """Return the quantiles of t over resamples, each with the jackknife error of its own values (of a squared mean)."""
    ratios = []
    for weights in seeded_document_weights(len(values), draws, seed):
        sample = np.repeat(values, weights.astype(int))
        left_out = np.array([np.delete(sample, i).mean() ** 2 for i in range(len(sample))])
        error = math.sqrt((len(sample) - 1) / len(sample) * ((left_out - left_out.mean()) ** 2).sum())
        ratios.append((sample.mean() ** 2 - values.mean() ** 2) / error)
    low, high = np.quantile(ratios, [0.025, 0.975], method="inverted_cdf")
    return float(low), float(high)


def test_bootstrap_t_is_its_definition() -> None:
    values = rng().normal(2, 1, 10)

    def evaluate(weights: Floats) -> Floats:
        squares: Floats = (((weights @ values) / weights.sum(axis=1)) ** 2)[:, None]
        return squares

    quantiles = bootstrap_t_quantiles(
        evaluate, text_clusters(10), np.array([values.mean() ** 2]), IntervalSettings(draws=60)
    )
    assert quantiles[:, 0] == pytest.approx(slow_bootstrap_t(values, 60, 0))
    found = weighted_intervals(evaluate, text_clusters(10), "coefficient", bounds=(-9, 99))[0]
    assert found.method == "bootstrap-t"


def test_clusters_are_left_out_as_a_whole() -> None:
    clusters = Clusters("prompt", np.repeat(np.arange(9), 3))
    values = np.repeat(rng().normal(0, 1, 9), 3)  # three equal texts per prompt say no more than one
    found = weighted_intervals(ratio_of(values, np.ones(27)), clusters, "number")[0]
    single = weighted_intervals(ratio_of(values[::3], np.ones(9)), text_clusters(9), "number")[0]
    assert found[:2] == pytest.approx(single[:2])
    assert clusters.describe() == "27 texts from 9 prompts"


def test_two_way_intervals_are_those_of_one_way_if_annotators_do_not_differ() -> None:
    texts, people = np.repeat(np.arange(30), 5), np.tile(np.arange(5), 30)
    effects = rng().normal(0, 1, 30)
    top = (effects[texts] + rng(1).normal(0, 0.01, 150))[:, None]
    found = two_way_ratio_intervals(top, np.ones_like(top), texts, people)[0]
    error = effects.std(ddof=1) / math.sqrt(30)
    assert found.high - found.low == pytest.approx(2 * scipy.stats.t.ppf(0.975, 4) * error, rel=0.02)
    assert found.why == "few clusters (5)"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=0, max_size=14),
    st.sampled_from(["mean", "proportion", "coefficient", "correlation", "number"]),
    st.sampled_from(["auto", "percentile"]),
)
def test_no_interval_has_width_zero_and_each_missing_one_has_a_reason(
    cells: list[tuple[int, int]], kind: str, method: str
) -> None:
    bottom = np.array([b + t for t, b in cells], dtype=np.float64)
    top = np.array([t for t, _ in cells], dtype=np.float64)

    def evaluate(weights: Floats) -> Floats:
        tops, bottoms = weights @ top, weights @ bottom
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(bottoms > 0, tops / bottoms, np.nan)[:, None]

    settings_ = IntervalSettings(method, draws=50)  # type: ignore[arg-type]
    found = [weighted_intervals(evaluate, text_clusters(len(cells)), kind, settings=settings_)[0]]  # type: ignore[arg-type]
    found += ratio_intervals(top[:, None], bottom[:, None], bounds=(0, 1), settings=settings_)
    for interval in found:
        if math.isnan(interval.low):
            assert math.isnan(interval.high)
            assert interval.why or bottom.sum() == 0
        else:
            assert interval.low < interval.high


def test_the_method_is_in_the_signature() -> None:
    values = rng().normal(0, 1, (10, 1))
    signature = Signature.from_fields(statistic="count", documents=10)
    estimate = estimate_from_interval(0.5, ratio_intervals(values, np.ones_like(values))[0], signature)
    assert "|interval:hall|version:" in str(estimate.signature)


def _documents(*rows: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame([(str(at), *row) for at, row in enumerate(rows)], ["id", "context", "meta"], orient="row")


def test_clusters_are_found_in_context_and_meta() -> None:
    prompts = _documents(*[(f'{{"prompt":"p{at % 3}"}}', "{}") for at in range(6)])
    assert find_clusters(prompts).positions.tolist() == [0, 1, 2, 0, 1, 2]
    assert find_clusters(prompts).describe() == "6 texts from 3 prompts"
    ids = _documents(*[('{"prompt":"same"}', f'{{"prompt_id":{at // 2}}}') for at in range(4)])
    assert find_clusters(ids).positions.tolist() == [0, 0, 1, 1]
    sources = _documents(*[("{}", f'{{"source":"{at // 2}"}}') for at in range(5)])
    assert find_clusters(sources).name == "source"
    assert find_clusters(sources).count == 3


def test_texts_are_clusters_without_a_shared_input_or_with_one_for_all() -> None:
    for rows in ([("{}", "{}")] * 3, [('{"prompt":"Write a story."}', "{}")] * 3,
                 [(f'{{"prompt":"{at}"}}', "{}") for at in range(3)]):  # fmt: skip
        assert find_clusters(_documents(*rows)).name == "text"


def test_declared_clusters_replace_the_default() -> None:
    documents = _documents(*[(f'{{"prompt":"p{at % 3}"}}', f'{{"topic":"{at % 2}"}}') for at in range(6)])
    assert find_clusters(documents, "topic").count == 2
    assert find_clusters(documents, "text").count == 6
    assert find_clusters(documents, "prompt").count == 3
    with pytest.raises(ParameterError, match="no document has the field 'topik'; did you mean 'topic'"):
        find_clusters(documents, "topik")


def test_a_document_without_the_key_is_its_own_cluster() -> None:
    documents = _documents(("{}", '{"topic":"a"}'), ("{}", "{}"), ("{}", '{"topic":"a"}'), ("{}", "{}"))
    assert find_clusters(documents, "topic").positions.tolist() == [0, 1, 0, 2]
