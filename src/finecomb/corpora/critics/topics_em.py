r"""Correlated topic model by variational EM, vectorised over documents.

Blei and Lafferty (2007), "A Correlated Topic Model of Science". A document has $\eta \sim N(\mu, \Sigma)$. Each of its
words has a topic drawn from softmax($\eta$) and is drawn from that topic. The posterior of $\eta$ is approximated by a
normal with mean $\lambda$ and diagonal variance $\nu^2$, and $E \log \sum_k e^{\eta_k}$ is bounded by
$\log \sum_k e^{\lambda_k + \nu_k^2 / 2}$, which is their bound at the optimal $\zeta$. With the optimal $\phi$, a
document of n words, $c_w$ of which are w, has the bound

$$E \log p(\eta) + H(q) + \sum_w c_w \log \sum_k e^{\lambda_k} \beta_{kw} - n \log \sum_k e^{\lambda_k + \nu_k^2 / 2}.$$

One EM step passes over the words once (expected topic counts), takes one Newton step in each $\lambda$, solved by
conjugate gradients, and a few in each $\log \nu^2$, and then updates topics, mean and covariance. This partial E-step
starts where the last one ended, so the bound never falls and no document waits for the slowest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import csr_array

from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.batched_lbfgs import minimise_rows

Floats = NDArray[np.float64]
Bags = csr_array  # word counts of shape (documents, vocabulary)

TOPIC_SMOOTHING = 1e-3  # added to the expected count of each word in each topic
_CONJUGATE_STEPS, _VARIANCE_STEPS, _MAX_HALVINGS = 4, 3, 8
_INFERENCE_STEPS, _INFERENCE_TOLERANCE, _MAX_STEP_SIZE = 300, 1e-6, 5.0


@dataclass(frozen=True, slots=True)
class CorrelatedTopics:
    """Fitted model: K topics over V words, and a normal prior over their strengths."""

    topics: Floats
    """P(word | topic), shape (K, V); rows sum to one."""
    mean: Floats
    """Prior mean of shape (K,)."""
    covariance: Floats
    """Prior covariance of shape (K, K)."""


class VariationalPosteriors(NamedTuple):
    """Normal posteriors with independent coordinates, one per document."""

    mean: Floats
    """lambda, shape (documents, K)."""
    variance: Floats
    """nu squared, shape (documents, K)."""


class EmStep(NamedTuple):
    """One EM step: the model before the step, its variational posteriors, and their bound."""

    model: CorrelatedTopics
    beliefs: VariationalPosteriors
    bound: float
    """Lower bound on log P(words), summed over documents, in nats."""


def em_steps(bags: Bags, topics: int, rng: np.random.Generator) -> Iterator[EmStep]:
    """Yield EM steps indefinitely. Each topic starts from the words of a few documents, relative to all documents."""
    if topics < 2:
        raise FinecombError(f"topics must be at least 2, found {topics}")
    documents, size = bags.shape
    total = np.asarray(bags.sum(axis=0)).ravel() + 1.0
    few = min(documents, 10)
    seeds = [np.asarray(bags[np.sort(rng.choice(documents, few, replace=False))].sum(axis=0)) for _ in range(topics)]
    words = np.array(seeds, float).reshape(topics, size) + 1e-9
    mixed = 0.5 * words / words.sum(axis=1, keepdims=True) + 0.5 * total / total.sum()
    model = CorrelatedTopics(mixed, np.zeros(topics), np.eye(topics))
    beliefs = VariationalPosteriors(np.zeros((documents, topics)), np.ones((documents, topics)))
    while True:
        precision = _inverse(model.covariance)
        shares = _softmax(beliefs.mean)
        evidence = _word_evidence(bags, shares, model.topics)
        yield EmStep(
            model, beliefs, float(_lower_bounds(bags, beliefs, model, precision, evidence.log_likelihood).sum())
        )
        lengths = _document_lengths(bags)
        new_means = _newton_means(beliefs, evidence.counts, lengths, model.mean, precision)
        beliefs = VariationalPosteriors(
            new_means, _newton_variances(VariationalPosteriors(new_means, beliefs.variance), lengths, precision)
        )
        weighted = csr_array((evidence.rates, bags.indices, bags.indptr), shape=bags.shape)
        smoothed = (model.topics * np.asarray(csr_array(weighted.T) @ shares).T) + TOPIC_SMOOTHING
        mean = beliefs.mean.mean(axis=0)
        deviations = beliefs.mean - mean
        covariance = deviations.T @ deviations / len(deviations) + np.diag(beliefs.variance.mean(axis=0))
        model = CorrelatedTopics(smoothed / smoothed.sum(axis=1, keepdims=True), mean, covariance)


def infer_posteriors(model: CorrelatedTopics, bags: Bags) -> VariationalPosteriors:
    """Return the posterior of each document under a fitted model, independent of the other documents.

    L-BFGS maximises the bound in lambda and log nu^2 jointly, to within about 1e-6 nats of a maximum. The bound has
    several maxima; the search starts at the strengths suggested by the document's words under equally likely topics.
    """
    mean, precision = model.mean, _inverse(model.covariance)
    lengths, diagonal, topics = _document_lengths(bags), np.diag(precision), len(model.mean)
    read = np.flatnonzero(lengths)
    beliefs = VariationalPosteriors(np.tile(mean, (bags.shape[0], 1)), np.tile(1 / diagonal, (bags.shape[0], 1)))
    words = csr_array(bags[read])

    def objective(rows: NDArray[np.int64], points: Floats) -> tuple[Floats, Floats]:
        row_bags, point = csr_array(words[rows]), VariationalPosteriors(points[:, :topics], np.exp(points[:, topics:]))
        evidence = _word_evidence(row_bags, _softmax(point.mean), model.topics)
        value = _lower_bounds(row_bags, point, model, precision, evidence.log_likelihood)
        expected = lengths[read[rows], None] * _softmax(point.mean + point.variance / 2)
        slope = evidence.counts - expected - (point.mean - mean) @ precision
        return -value, -np.concatenate([slope, 0.5 - 0.5 * point.variance * (diagonal + expected)], axis=1)

    # Topic strengths suggested by a document's words under equally likely topics, shape (documents, K)
    logs = np.log(_word_evidence(words, np.full((len(read), topics), 1 / topics), model.topics).counts + 1.0)
    start = logs - logs.mean(axis=1, keepdims=True) + mean.mean()
    shares = lengths[read, None] * _softmax(start)
    scale = np.concatenate([1 / (diagonal + shares), np.full(shares.shape, 2.0)], axis=1)
    first = np.concatenate([start, np.log(1 / (diagonal + shares))], axis=1)
    points = minimise_rows(objective, first, scale, _INFERENCE_TOLERANCE, _INFERENCE_STEPS, _MAX_STEP_SIZE)
    beliefs.mean[read], beliefs.variance[read] = points[:, :topics], np.exp(points[:, topics:])
    return beliefs


def word_log_likelihood(model: CorrelatedTopics, bags: Bags, beliefs: VariationalPosteriors) -> float:
    """Return the sum over words of log P(word | softmax of the posterior mean), the likelihood of held-out words."""
    return float(_word_evidence(bags, _softmax(beliefs.mean), model.topics).log_likelihood.sum())


def _document_lengths(bags: Bags) -> Floats:
    return np.asarray(bags.sum(axis=1), float).ravel()


def _inverse(covariance: Floats) -> Floats:
    factor = linalg.cho_factor(covariance, lower=True)
    inverse: Floats = linalg.cho_solve(factor, np.eye(len(covariance)))
    return inverse


def _softmax(strengths: Floats) -> Floats:
    raised: Floats = np.exp(strengths - strengths.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def _log_sum_exp(strengths: Floats) -> Floats:
    """Return the log-sum-exp of each row, faster than SciPy's function."""
    top = strengths.max(axis=1)
    total: Floats = top + np.log(np.exp(strengths - top[:, None]).sum(axis=1))
    return total


class _WordEvidence(NamedTuple):
    counts: Floats  # expected words per topic, shape (documents, K)
    rates: Floats  # count / P(word | document), for the topic counts, shape (entries,)
    log_likelihood: Floats  # sum of c log P(word | document), shape (documents,)


def _word_evidence(bags: Bags, shares: Floats, topics: Floats) -> _WordEvidence:
    """Compute expected topic counts document by document, so that the topics of one document stay in the CPU cache."""
    by_word = np.ascontiguousarray(topics.T)
    counts, rates, likelihood = np.zeros_like(shares), np.empty(bags.nnz), np.zeros(len(shares))
    room = np.empty((int(np.diff(bags.indptr).max(initial=0)), len(topics)))
    for document, (start, end) in enumerate(zip(bags.indptr[:-1], bags.indptr[1:], strict=True)):
        entries = slice(start, end)
        rows = by_word.take(bags.indices[entries], axis=0, out=room[: end - start], mode="clip")
        chance = rows @ shares[document]
        rates[entries] = bags.data[entries] / chance
        counts[document] = rates[entries] @ rows
        likelihood[document] = bags.data[entries] @ np.log(chance)
    counts *= shares
    return _WordEvidence(counts, rates, likelihood)


def _lower_bounds(
    bags: Bags, beliefs: VariationalPosteriors, model: CorrelatedTopics, precision: Floats, likelihood: Floats
) -> Floats:
    """Return the bound in the module docstring, shape (documents,); `likelihood` is computed under softmax(lambda)."""
    deviations = beliefs.mean - model.mean
    log_determinant = np.linalg.slogdet(precision)[1]
    spread = beliefs.variance @ np.diag(precision) - np.log(beliefs.variance).sum(axis=1) - len(model.mean)
    prior = 0.5 * (log_determinant - ((deviations @ precision) * deviations).sum(axis=1) - spread)
    slack = _log_sum_exp(beliefs.mean + beliefs.variance / 2) - _log_sum_exp(beliefs.mean)
    bounds: Floats = prior + likelihood - _document_lengths(bags) * slack
    return bounds


def _newton_means(
    beliefs: VariationalPosteriors, counts: Floats, lengths: Floats, mean: Floats, precision: Floats
) -> Floats:
    """Take one safeguarded Newton step in lambda for fixed expected counts, where the bound is concave."""
    start, half = beliefs.mean, beliefs.variance / 2

    def partial_bound(means: Floats) -> Floats:
        deviations = means - mean
        inner: Floats = (counts * means).sum(axis=1) - 0.5 * ((deviations @ precision) * deviations).sum(axis=1)
        return inner - lengths * _log_sum_exp(means + half)

    shares = _softmax(start + half)
    gradient = counts - (start - mean) @ precision - lengths[:, None] * shares
    # Approximate (precision + n (diag(p) - p p'))^-1 gradient per document by preconditioned conjugate gradients
    scale = 1 / (np.diag(precision) + lengths[:, None] * shares)
    direction, residual = np.zeros_like(gradient), gradient.copy()
    search = scale * residual
    size = (residual * search).sum(axis=1)
    for _ in range(_CONJUGATE_STEPS):
        weighted = shares * search
        image = search @ precision + lengths[:, None] * (weighted - shares * weighted.sum(axis=1, keepdims=True))
        curvature = (search * image).sum(axis=1)
        step = (size / np.where(curvature > 0, curvature, np.inf))[:, None]
        direction += step * search
        residual -= step * image
        scaled = scale * residual
        new = (residual * scaled).sum(axis=1)
        search = scaled + (new / np.where(size > 0, size, np.inf))[:, None] * search
        size = new
    before, size = partial_bound(start), np.ones(len(start))
    for _ in range(_MAX_HALVINGS):
        new_means = start + size[:, None] * direction
        worse = partial_bound(new_means) < before
        if not worse.any():
            return new_means
        size[worse] /= 2
    return np.where(worse[:, None], start, new_means)


def _newton_variances(beliefs: VariationalPosteriors, lengths: Floats, precision: Floats) -> Floats:
    """Take a few Newton steps in t = log nu^2, each at most 1, with fixed zeta, where the bound is concave."""
    log_sum = _log_sum_exp(beliefs.mean + beliefs.variance / 2)
    expected, diagonal = lengths[:, None] * np.exp(beliefs.mean - log_sum[:, None]), np.diag(precision)
    logs = np.log(beliefs.variance)
    for _ in range(_VARIANCE_STEPS):
        variance = np.exp(logs)
        raised = expected * np.exp(variance / 2)
        slope = 1 - variance * (diagonal + raised)
        logs += np.clip(slope / (variance * (diagonal + raised * (1 + variance / 2))), -1, 1)
    new: Floats = np.exp(logs)
    return new
