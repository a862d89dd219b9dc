r"""The correlated topic model by variational EM, for all documents at once.

Blei and Lafferty (2007), "A Correlated Topic Model of Science". A document has $\eta \sim N(\mu, \Sigma)$, each of its
words a topic drawn from softmax($\eta$), and the word is drawn from that topic. The posterior of $\eta$ is taken to be
normal with mean $\lambda$ and a diagonal variance $\nu^2$, and $E \log \sum_k e^{\eta_k}$ is bounded by
$\log \sum_k e^{\lambda_k + \nu_k^2 / 2}$, which is their bound at its best $\zeta$. With the best $\phi$ put in, a
document of n words, of which $c_w$ are w, has the bound

$$E \log p(\eta) + H(q) + \sum_w c_w \log \sum_k e^{\lambda_k} \beta_{kw} - n \log \sum_k e^{\lambda_k + \nu_k^2 / 2}.$$

One step of EM goes over the words once (the expected counts of topics), takes one Newton step in every $\lambda$,
solved by conjugate gradients, and a few in every $\log \nu^2$, and then sets topics, mean and covariance: a partial
E-step that starts where the last one ended, so that the bound never falls and no document waits for the slowest.
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
Bags = csr_array  # (documents, vocabulary): how often each word occurs

SMOOTHING = 1e-3  # what every word of every topic is given beside its expected count
_CONJUGATE_STEPS, _VARIANCE_STEPS, _MAX_HALVINGS = 4, 3, 8
_INFERENCE_STEPS, _INFERENCE_TOLERANCE, _MAX_STEP_SIZE = 300, 1e-6, 5.0


@dataclass(frozen=True, slots=True)
class CorrelatedTopics:
    """A fitted model: K topics over V words, and a normal prior over their strengths."""

    topics: Floats
    """(K, V): P(word | topic); rows sum to one."""
    mean: Floats
    """(K,)."""
    covariance: Floats
    """(K, K)."""


class VariationalPosteriors(NamedTuple):
    """Normal posteriors of independent coordinates, one a document."""

    mean: Floats
    """(documents, K): lambda."""
    variance: Floats
    """(documents, K): nu squared."""


class EmStep(NamedTuple):
    """One step of EM: the model before it, the beliefs it was made from, and their bound."""

    model: CorrelatedTopics
    beliefs: VariationalPosteriors
    bound: float
    """The sum over documents of the lower bound on log P(words), in nats."""


def em_steps(bags: Bags, topics: int, rng: np.random.Generator) -> Iterator[EmStep]:
    """EM without end: the caller stops. Every topic starts as the words of a few documents over those of all."""
    if topics < 2:
        raise FinecombError(f"a topic model needs at least 2 topics, not {topics}")
    model, beliefs = _initialise_model(bags, topics, rng)
    while True:
        precision = _inverse(model.covariance)
        shares = _softmax(beliefs.mean)
        evidence = _word_evidence(bags, shares, model.topics)
        yield EmStep(
            model, beliefs, float(_lower_bounds(bags, beliefs, model, precision, evidence.log_likelihood).sum())
        )
        beliefs = _e_step(beliefs, evidence.counts, _lengths(bags), model.mean, precision)
        model = _m_step(model.topics * _topic_counts(bags, shares, evidence.rates), beliefs)


def infer_posteriors(model: CorrelatedTopics, bags: Bags) -> VariationalPosteriors:
    """The posterior of each document under a fitted model, whatever the other documents are.

    The bound is climbed by L-BFGS in lambda and log nu^2 together until about 1e-6 nats are left to be won. It has
    several summits; the climb starts where a document's words point if all topics were equally likely.
    """
    mean, precision = model.mean, _inverse(model.covariance)
    lengths, diagonal, topics = _lengths(bags), np.diag(precision), len(model.mean)
    read = np.flatnonzero(lengths)
    beliefs = VariationalPosteriors(np.tile(mean, (bags.shape[0], 1)), np.tile(1 / diagonal, (bags.shape[0], 1)))
    words = csr_array(bags[read])

    def objective(rows: NDArray[np.int64], points: Floats) -> tuple[Floats, Floats]:
        here, point = csr_array(words[rows]), VariationalPosteriors(points[:, :topics], np.exp(points[:, topics:]))
        evidence = _word_evidence(here, _softmax(point.mean), model.topics)
        value = _lower_bounds(here, point, model, precision, evidence.log_likelihood)
        expected = lengths[read[rows], None] * _softmax(point.mean + point.variance / 2)
        slope = evidence.counts - expected - (point.mean - mean) @ precision
        return -value, -np.concatenate([slope, 0.5 - 0.5 * point.variance * (diagonal + expected)], axis=1)

    start = _initial_strengths(words, model)
    shares = lengths[read, None] * _softmax(start)
    scale = np.concatenate([1 / (diagonal + shares), np.full(shares.shape, 2.0)], axis=1)
    first = np.concatenate([start, np.log(1 / (diagonal + shares))], axis=1)
    points = minimise_rows(objective, first, scale, _INFERENCE_TOLERANCE, _INFERENCE_STEPS, _MAX_STEP_SIZE)
    beliefs.mean[read], beliefs.variance[read] = points[:, :topics], np.exp(points[:, topics:])
    return beliefs


def _initial_strengths(bags: Bags, model: CorrelatedTopics) -> Floats:
    """(documents, K): strengths that a document's words point to when all topics are equally likely beforehand."""
    topics = len(model.mean)
    counts = _word_evidence(bags, np.full((bags.shape[0], topics), 1 / topics), model.topics).counts + 1.0
    logs: Floats = np.log(counts)
    start: Floats = logs - logs.mean(axis=1, keepdims=True) + model.mean.mean()
    return start


def word_log_likelihood(model: CorrelatedTopics, bags: Bags, beliefs: VariationalPosteriors) -> float:
    """Sum over words of log P(word | softmax of the believed mean): how well held-out words of documents are told."""
    return float(_word_evidence(bags, _softmax(beliefs.mean), model.topics).log_likelihood.sum())


def _initialise_model(
    bags: Bags, topics: int, rng: np.random.Generator
) -> tuple[CorrelatedTopics, VariationalPosteriors]:
    documents, size = bags.shape
    total = np.asarray(bags.sum(axis=0)).ravel() + 1.0
    few = min(documents, 10)
    seeds = [np.asarray(bags[np.sort(rng.choice(documents, few, replace=False))].sum(axis=0)) for _ in range(topics)]
    words = np.array(seeds, float).reshape(topics, size) + 1e-9
    mixed = 0.5 * words / words.sum(axis=1, keepdims=True) + 0.5 * total / total.sum()
    beliefs = VariationalPosteriors(np.zeros((documents, topics)), np.ones((documents, topics)))
    return CorrelatedTopics(mixed, np.zeros(topics), np.eye(topics)), beliefs


def _lengths(bags: Bags) -> Floats:
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
    """log sum exp of each row; quicker than SciPy's."""
    top = strengths.max(axis=1)
    total: Floats = top + np.log(np.exp(strengths - top[:, None]).sum(axis=1))
    return total


class _WordEvidence(NamedTuple):
    counts: Floats  # (documents, K): expected words of each topic
    rates: Floats  # (entries,): count / P(word | document), for the topics' own counts
    log_likelihood: Floats  # (documents,): sum of c log P(word | document)


def _word_evidence(bags: Bags, shares: Floats, topics: Floats) -> _WordEvidence:
    """One pass over the words: document by document, so that the topics of its words stay in the cache."""
    by_word = np.ascontiguousarray(topics.T)
    counts, rates, likelihood = np.zeros_like(shares), np.empty(bags.nnz), np.zeros(len(shares))
    room = np.empty((int(np.diff(bags.indptr).max(initial=0)), len(topics)))
    for at, (start, end) in enumerate(zip(bags.indptr[:-1], bags.indptr[1:], strict=True)):
        entries = slice(start, end)
        rows = by_word.take(bags.indices[entries], axis=0, out=room[: end - start], mode="clip")
        chance = rows @ shares[at]
        rates[entries] = bags.data[entries] / chance
        counts[at] = rates[entries] @ rows
        likelihood[at] = bags.data[entries] @ np.log(chance)
    counts *= shares
    return _WordEvidence(counts, rates, likelihood)


def _topic_counts(bags: Bags, shares: Floats, rates: Floats) -> Floats:
    """(K, V): the expected counts of words in topics, still to be multiplied by the topics."""
    weighted = csr_array((rates, bags.indices, bags.indptr), shape=bags.shape)
    return np.asarray(csr_array(weighted.T) @ shares).T


def _lower_bounds(
    bags: Bags, beliefs: VariationalPosteriors, model: CorrelatedTopics, precision: Floats, likelihood: Floats
) -> Floats:
    """(documents,): the lower bound at the top of this module; `likelihood` is that of words under softmax(lambda)."""
    apart = beliefs.mean - model.mean
    log_determinant = np.linalg.slogdet(precision)[1]
    spread = beliefs.variance @ np.diag(precision) - np.log(beliefs.variance).sum(axis=1) - len(model.mean)
    prior = 0.5 * (log_determinant - ((apart @ precision) * apart).sum(axis=1) - spread)
    slack = _log_sum_exp(beliefs.mean + beliefs.variance / 2) - _log_sum_exp(beliefs.mean)
    bounds: Floats = prior + likelihood - _lengths(bags) * slack
    return bounds


def _e_step(
    beliefs: VariationalPosteriors, counts: Floats, lengths: Floats, mean: Floats, precision: Floats
) -> VariationalPosteriors:
    moved = _newton_means(beliefs, counts, lengths, mean, precision)
    return VariationalPosteriors(
        moved, _newton_variances(VariationalPosteriors(moved, beliefs.variance), lengths, precision)
    )


def _newton_means(
    beliefs: VariationalPosteriors, counts: Floats, lengths: Floats, mean: Floats, precision: Floats
) -> Floats:
    """One safeguarded Newton step in lambda, for fixed expected counts, where the bound is concave."""
    start, half = beliefs.mean, beliefs.variance / 2

    def partial_bound(means: Floats) -> Floats:
        apart = means - mean
        inner: Floats = (counts * means).sum(axis=1) - 0.5 * ((apart @ precision) * apart).sum(axis=1)
        return inner - lengths * _log_sum_exp(means + half)

    shares = _softmax(start + half)
    gradient = counts - (start - mean) @ precision - lengths[:, None] * shares
    direction = _conjugate_gradients(gradient, shares, lengths, precision)
    before, size = partial_bound(start), np.ones(len(start))
    for _ in range(_MAX_HALVINGS):
        moved = start + size[:, None] * direction
        worse = partial_bound(moved) < before
        if not worse.any():
            return moved
        size[worse] /= 2
    return np.where(worse[:, None], start, moved)


def _conjugate_gradients(gradient: Floats, shares: Floats, lengths: Floats, precision: Floats) -> Floats:
    """About (precision + n (diag(p) - p p'))^-1 gradient for every document, by preconditioned conjugate gradients."""
    scale = 1 / (np.diag(precision) + lengths[:, None] * shares)
    solution, residual = np.zeros_like(gradient), gradient.copy()
    search = scale * residual
    size = (residual * search).sum(axis=1)
    for _ in range(_CONJUGATE_STEPS):
        weighted = shares * search
        image = search @ precision + lengths[:, None] * (weighted - shares * weighted.sum(axis=1, keepdims=True))
        curvature = (search * image).sum(axis=1)
        step = (size / np.where(curvature > 0, curvature, np.inf))[:, None]
        solution += step * search
        residual -= step * image
        scaled = scale * residual
        new = (residual * scaled).sum(axis=1)
        search = scaled + (new / np.where(size > 0, size, np.inf))[:, None] * search
        size = new
    return solution


def _newton_variances(beliefs: VariationalPosteriors, lengths: Floats, precision: Floats) -> Floats:
    """A few Newton steps in t = log nu^2 of each coordinate, with zeta held: concave in t, steps of at most one."""
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


def _m_step(word_counts: Floats, beliefs: VariationalPosteriors) -> CorrelatedTopics:
    smoothed = word_counts + SMOOTHING
    mean = beliefs.mean.mean(axis=0)
    apart = beliefs.mean - mean
    covariance = apart.T @ apart / len(apart) + np.diag(beliefs.variance.mean(axis=0))
    return CorrelatedTopics(smoothed / smoothed.sum(axis=1, keepdims=True), mean, covariance)
