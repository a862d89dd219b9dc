from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax

from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.topics_em import (
    TOPIC_SMOOTHING,
    CorrelatedTopics,
    VariationalPosteriors,
    em_steps,
    infer_posteriors,
    word_log_likelihood,
)

Floats = NDArray[np.float64]


def slow_bound(counts: Floats, mean: Floats, variance: Floats, model: CorrelatedTopics) -> float:
    """The bound of one document term by term, with phi and zeta at their best (Blei and Lafferty 2007, section 3)."""
    precision = np.linalg.inv(model.covariance)
    k, apart = len(mean), mean - model.mean
    log_prior = -0.5 * (k * np.log(2 * np.pi) + np.log(np.linalg.det(model.covariance)))
    log_prior -= 0.5 * (apart @ precision @ apart + np.trace(np.diag(variance) @ precision))
    entropy = 0.5 * np.log(2 * np.pi * np.e * variance).sum()
    zeta = np.exp(mean + variance / 2).sum()
    normaliser = np.exp(mean + variance / 2).sum() / zeta - 1 + np.log(zeta)
    words = 0.0
    for word, count in enumerate(counts):
        phi = softmax(mean + np.log(model.topics[:, word]))
        words += count * (phi @ (mean + np.log(model.topics[:, word]) - np.log(phi)) - normaliser)
    return float(log_prior + entropy + words)


def planted(rng: np.random.Generator, documents: int = 400, length: int = 80) -> tuple[csr_array, Floats]:
    """Documents of four topics of ten words each; the first two go together, and so do the last two."""
    topics = np.kron(np.eye(4), np.full(10, 0.1))
    covariance = 2 * np.kron(np.array([[1, -0.9], [-0.9, 1]]), np.ones((2, 2))) + 3 * np.eye(4)
    shares = softmax(rng.multivariate_normal(np.zeros(4), covariance, documents), axis=1)
    return csr_array(np.array([rng.multinomial(length, share @ topics) for share in shares], float)), topics


bags = st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=2, max_size=6).filter(
    lambda rows: all(any(column) for column in zip(*rows, strict=True))
)


@settings(max_examples=30, deadline=None)
@given(bags, st.integers(2, 4), st.integers(0, 5))
def test_the_bound_equals_its_definition_and_never_falls(rows: list[list[int]], topics: int, seed: int) -> None:
    counts = np.array(rows, float)
    before = -np.inf
    for step in itertools.islice(em_steps(csr_array(counts), topics, np.random.default_rng(seed)), 6):
        beliefs = zip(counts, step.beliefs.mean, step.beliefs.variance, strict=True)
        slow = sum(slow_bound(row, mean, variance, step.model) for row, mean, variance in beliefs)
        assert step.bound == pytest.approx(slow)
        goal = step.bound + TOPIC_SMOOTHING * np.log(step.model.topics).sum()
        assert goal >= before - 1e-8 * abs(before)
        before = goal


def test_inference_finds_the_best_bound() -> None:
    rng = np.random.default_rng(0)
    model = CorrelatedTopics(rng.dirichlet(np.ones(8), 3), np.zeros(3), np.eye(3) + 0.5)
    counts = rng.multinomial(30, np.full(8, 1 / 8), 5).astype(float)
    beliefs = infer_posteriors(model, csr_array(counts))
    for row, mean, variance in zip(counts, *beliefs, strict=True):

        def loss(x: Floats, row: Floats = row) -> float:
            return -slow_bound(row, x[:3], np.exp(x[3:]), model)

        best = optimize.minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
        assert slow_bound(row, mean, variance, model) == pytest.approx(-best.fun, abs=0.02)


def hard_problem(words: int, length: int, seed: int) -> tuple[CorrelatedTopics, Floats]:
    """Thirty topics that share their words: coordinate ascent stops up to two nats below the summit here."""
    rng = np.random.default_rng(seed)
    topics, root = rng.dirichlet(np.ones(words), 30), rng.normal(size=(30, 30))
    model = CorrelatedTopics(topics, rng.normal(size=30), 8 * (root @ root.T / 30 + 0.1 * np.eye(30)))
    shares = np.exp(rng.multivariate_normal(model.mean, model.covariance, 12))
    chances = shares / shares.sum(axis=1, keepdims=True) @ topics
    return model, np.stack([rng.multinomial(length, row / row.sum()) for row in chances]).astype(float)


def loss_and_slope(x: Floats, row: Floats, model: CorrelatedTopics) -> tuple[float, Floats]:
    """Minus the bound at lambda and log nu^2, and its gradient, for SciPy."""
    mean, log_variance = np.split(x, 2)
    precision, variance = np.linalg.inv(model.covariance), np.exp(log_variance)
    shares, wide = softmax(mean), row.sum() * softmax(mean + variance / 2)
    slope = shares * (model.topics @ (row / (shares @ model.topics))) - wide - precision @ (mean - model.mean)
    flat = 0.5 - 0.5 * variance * (np.diag(precision) + wide)
    silent = slow_bound(np.zeros(1), mean, variance, model)  # prior and entropy alone
    spread = logsumexp(mean + variance / 2) - logsumexp(mean)
    return -silent - row @ np.log(shares @ model.topics) + row.sum() * spread, -np.concatenate([slope, flat])


@pytest.mark.parametrize(("words", "length", "seed"), [(400, 200, 2), (200, 300, 3)])
def test_inference_reaches_the_optimum_of_its_bound_as_l_bfgs_does(words: int, length: int, seed: int) -> None:
    model, counts = hard_problem(words, length, seed)
    beliefs = infer_posteriors(model, csr_array(counts))
    for row, mean, variance in zip(counts[:6], *beliefs, strict=False):
        start = np.concatenate([mean, np.log(variance)])
        value = slow_bound(row, mean, variance, model)
        assert -loss_and_slope(start, row, model)[0] == pytest.approx(value)
        best = optimize.fmin_l_bfgs_b(loss_and_slope, start, args=(row, model), factr=1e3, maxiter=200)
        assert -best[1] - value < 0.01


def test_a_document_is_inferred_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(1)
    data, topics = planted(rng, 20)
    model = CorrelatedTopics(topics + 0.01, np.zeros(4), np.eye(4))
    together, alone = infer_posteriors(model, data), infer_posteriors(model, csr_array(data[[3]]))
    assert together.mean[3] == pytest.approx(alone.mean[0])
    assert together.variance[3] == pytest.approx(alone.variance[0])


def test_an_empty_document_keeps_the_prior_mean() -> None:
    model = CorrelatedTopics(np.full((2, 3), 1 / 3), np.array([1.0, -1.0]), np.diag([2.0, 3.0]))
    beliefs = infer_posteriors(model, csr_array(np.zeros((1, 3))))
    assert beliefs.mean[0] == pytest.approx(model.mean)
    assert beliefs.variance[0] == pytest.approx([2, 3], rel=1e-3)


def test_planted_topics_and_their_correlations_are_found() -> None:
    rng = np.random.default_rng(2)
    data, topics = planted(rng)
    step = next(itertools.islice(em_steps(data, 4, rng), 60, None))
    likeness = step.model.topics @ topics.T * 10  # the share of each found topic within each planted one
    match = likeness.argmax(axis=0)
    assert sorted(match) == [0, 1, 2, 3]
    assert likeness[match, range(4)].min() > 0.9
    scale = np.sqrt(np.diag(step.model.covariance))
    correlation = (step.model.covariance / np.outer(scale, scale))[np.ix_(match, match)]
    assert correlation[0, 1] > 0 > correlation[0, 2]
    assert correlation[2, 3] > 0 > correlation[1, 3]


def test_held_out_words_are_told_better_by_a_better_model() -> None:
    rng = np.random.default_rng(3)
    data, topics = planted(rng, 50)
    good = CorrelatedTopics(topics * 0.99 + 0.01 / 40, np.zeros(4), 4 * np.eye(4))
    flat = CorrelatedTopics(np.full((4, 40), 1 / 40), np.zeros(4), np.eye(4))
    scores = [word_log_likelihood(model, data, infer_posteriors(model, data)) for model in (good, flat)]
    assert scores[0] > scores[1]
    assert scores[1] == pytest.approx(data.sum() * np.log(1 / 40))


def test_the_likelihood_of_words_is_that_of_the_mixture() -> None:
    model = CorrelatedTopics(np.array([[0.9, 0.1], [0.2, 0.8]]), np.zeros(2), np.eye(2))
    mean = np.array([[0.3, -0.2]])
    expected = logsumexp(mean[0] - logsumexp(mean[0]) + np.log(model.topics[:, 1]))
    log_likelihood = word_log_likelihood(
        model, csr_array(np.array([[0.0, 2.0]])), VariationalPosteriors(mean, np.ones((1, 2)))
    )
    assert log_likelihood == pytest.approx(2 * expected)


def test_one_topic_is_refused() -> None:
    with pytest.raises(FinecombError, match="topics must be at least 2, found 1"):
        next(em_steps(csr_array(np.ones((2, 2))), 1, np.random.default_rng(0)))
