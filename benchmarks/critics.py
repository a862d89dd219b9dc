"""Topic model compared with tomotopy's CTModel, and speed of n-gram models, in CPU seconds.

Both models see the same 5,000 documents, drawn from a correlated topic model with 60 topics. Both are evaluated on the
second half of each of 300 held-out documents, given the posterior that our inference finds for the first half under
their parameters. For tomotopy, its own inference is tried as well, and the better value counts.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tomotopy
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions, record_ratio
from finecomb.corpora.critics.ngrams import KneserNeyModel
from finecomb.corpora.critics.topics_em import (
    CorrelatedTopics,
    VariationalPosteriors,
    em_steps,
    infer_posteriors,
    word_log_likelihood,
)

Floats = NDArray[np.float64]
DOCUMENT_COUNT, HELD_OUT_COUNT, WORDS_PER_DOCUMENT, VOCABULARY_SIZE, TRUE_TOPIC_COUNT = 5000, 300, 240, 8000, 60
PEER_TIME_FACTOR = 3  # minimum multiple of our time that the peer gets
TOLERANCE = 2e-4


class Corpus(NamedTuple):
    fit: csr_array
    first: csr_array
    second: csr_array
    truth: CorrelatedTopics


class FitCheckpoint(NamedTuple):
    seconds: float
    iterations: int
    held_out: float
    """Held-out log-likelihood in nats per word of the second halves."""


def draw_corpus(seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(VOCABULARY_SIZE, 0.02), TRUE_TOPIC_COUNT) * 0.98 + 0.02 / VOCABULARY_SIZE
    loadings = rng.normal(size=(TRUE_TOPIC_COUNT, 8))
    covariance = loadings @ loadings.T / 4 + 2 * np.eye(TRUE_TOPIC_COUNT)
    shares = softmax(
        rng.multivariate_normal(np.zeros(TRUE_TOPIC_COUNT), covariance, DOCUMENT_COUNT + HELD_OUT_COUNT), axis=1
    )
    chances = shares @ topics
    lengths = rng.poisson(WORDS_PER_DOCUMENT, len(chances))
    bags = csr_array(np.array([rng.multinomial(n, chance) for n, chance in zip(lengths, chances, strict=True)], float))
    held = csr_array(bags[DOCUMENT_COUNT:])
    first = csr_array((rng.binomial(held.data.astype(int), 0.5).astype(float), held.indices, held.indptr), held.shape)
    second = csr_array(held - first)
    truth = CorrelatedTopics(topics, np.zeros(TRUE_TOPIC_COUNT), covariance)
    return Corpus(csr_array(bags[:DOCUMENT_COUNT]), first, second, truth)


def completion_likelihood(
    model: CorrelatedTopics, texts: Corpus, beliefs: VariationalPosteriors | None = None
) -> float:
    beliefs = beliefs or infer_posteriors(model, texts.first)
    return word_log_likelihood(model, texts.second, beliefs) / float(texts.second.sum())


def fit_ours(texts: Corpus, topics: int) -> list[FitCheckpoint]:
    """Return the held-out likelihood after every fourth step; evaluation is not timed."""
    marks: list[FitCheckpoint] = []
    steps, spent, last = em_steps(texts.fit, topics, np.random.default_rng(0)), 0.0, -np.inf
    enough = TOLERANCE * float(texts.fit.sum())
    for number in range(200):
        start = time.process_time()
        step = next(steps)
        spent += time.process_time() - start
        done = step.bound - last < enough
        last = step.bound
        if done or number % 4 == 0:
            marks.append(FitCheckpoint(spent, number + 1, completion_likelihood(step.model, texts)))
        if done:
            break
    return marks


def fit_tomotopy(texts: Corpus, topics: int, budget: float) -> FitCheckpoint:
    """Return the held-out likelihood of tomotopy with one worker and default settings after `budget` CPU seconds."""
    model = tomotopy.CTModel(k=topics, seed=0)
    for row in _word_lists(texts.fit):
        model.add_doc(row)
    start = time.process_time()
    done = 0
    while time.process_time() - start < budget:
        model.train(1, workers=1)
        done += 1
    return FitCheckpoint(time.process_time() - start, done, _tomotopy_held_out(model, texts, topics))


def _tomotopy_held_out(model: tomotopy.CTModel, texts: Corpus, topics: int) -> float:
    words = np.full((topics, VOCABULARY_SIZE), 1e-12)
    words[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(k) for k in range(topics)]
    words /= words.sum(axis=1, keepdims=True)
    covariance = np.array(model.prior_cov, float).reshape(topics, topics)
    parameters = CorrelatedTopics(words, np.array(model.prior_mean, float), covariance)
    rows = [model.make_doc(row) for row in _word_lists(texts.first)]
    shares = np.maximum(model.infer(rows, iterations=50, workers=1)[0], 1e-12)
    value = completion_likelihood(parameters, texts, VariationalPosteriors(np.log(shares), np.ones(shares.shape)))
    try:
        return max(value, completion_likelihood(parameters, texts))
    except np.linalg.LinAlgError:  # raised for a covariance that is not positive definite
        return value


def _word_lists(bags: csr_array) -> list[list[str]]:
    starts = zip(bags.indptr[:-1], bags.indptr[1:], strict=True)
    return [np.repeat(bags.indices[a:b], bags.data[a:b].astype(int)).astype(str).tolist() for a, b in starts]


@contextlib.contextmanager
def silence_stderr() -> Iterator[None]:
    """Suppress the output of the peer's C++ sampler."""
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    sys.stderr.flush()
    os.dup2(nowhere, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


TOPIC_HEADER = (
    "K",
    "ours, a step",
    "steps, seconds",
    "held out",
    "`CTModel`, an iteration",
    "iterations, seconds",
    "held out",
    "ours was there after",
)


def benchmark_topic_models() -> None:
    texts = draw_corpus()
    words = int(texts.fit.sum())
    ceiling = completion_likelihood(texts.truth, texts)
    print(f"{DOCUMENT_COUNT:,} documents, {words:,} words; true process: {ceiling:.3f} nats per held-out word")
    rows = []
    for topics in (20, 50, 100):
        mine = fit_ours(texts, topics)
        end = mine[-1]
        print(
            f"  K = {topics}: ours {end.seconds / end.iterations:.2f} s per step, {end.iterations} steps, "
            f"{end.seconds:.0f} s, held out {end.held_out:.3f};",
            flush=True,
        )
        with silence_stderr():
            theirs = fit_tomotopy(texts, topics, PEER_TIME_FACTOR * end.seconds)
        there = next((mark.seconds for mark in mine if mark.held_out >= theirs.held_out), None)
        beside = (
            f"ours reached this after {there:.1f} s, {theirs.seconds / there:.0f} times as fast"
            if there
            else "ours never reached this"
        )
        print(
            f"    tomotopy {theirs.seconds / theirs.iterations:.1f} s per iteration, {theirs.iterations} iterations, "
            f"{theirs.seconds:.0f} s, held out {theirs.held_out:.3f}; {beside}",
            flush=True,
        )
        if there:
            record_ratio(f"critics: to tomotopy's held-out likelihood, K = {topics}", there, theirs.seconds)
        rows.append(
            (
                topics,
                f"{end.seconds / end.iterations:.2f} s",
                f"{end.iterations}, {end.seconds:.0f} s",
                f"{end.held_out:.3f}",
                f"{theirs.seconds / theirs.iterations:.1f} s",
                f"{theirs.iterations}, {theirs.seconds:.0f} s",
                f"{theirs.held_out:.3f}",
                f"{there:.1f} s" if there else "never",
            )
        )
    write_table(
        "performance.md", "topic models", markdown_table(TOPIC_HEADER, rows), describe_conditions("tomotopy", "numpy")
    )


def million_tokens_per_second(tokens: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return tokens / min(times) / 1e6


def benchmark_ngram_models() -> None:
    rng, rows = np.random.default_rng(0), []
    for size in (53, 5000):
        texts = [rng.zipf(1.3, rng.integers(20, 400)) % size for _ in range(5000)]
        tokens = sum(map(len, texts))
        for order in (3, 5):
            model = KneserNeyModel.fit(texts, order, size)
            counted = million_tokens_per_second(tokens, functools.partial(KneserNeyModel.fit, texts, order, size))
            scored = million_tokens_per_second(tokens, functools.partial(model.log_probs, texts))
            print(
                f"  {tokens:,} tokens of {size:,} types, order {order}: {counted:.1f} M tokens/s counted, "
                f"{scored:.1f} M scored, {1 / (1 / counted + 1 / scored):.1f} M both",
                flush=True,
            )
            rates = (counted, scored, 1 / (1 / counted + 1 / scored))
            rows.append((f"{tokens:,} of {size:,} kinds", order, *(f"{rate:.1f} M/s" for rate in rates)))
    table = markdown_table(("tokens", "order", "counted", "scored", "both"), rows)
    write_table("performance.md", "n-grams", table, describe_conditions("numpy"))


def main() -> None:
    print("n-gram models")
    benchmark_ngram_models()
    print("topic models")
    with threadpool_limits(1):  # the peer also has one worker, and idle threads would add CPU time
        benchmark_topic_models()
