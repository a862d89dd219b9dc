r"""Latent Dirichlet allocation by collapsed Gibbs sampling, vectorised over documents.

Griffiths and Steyvers (2004), "Finding scientific topics": with proportions and topics integrated out, the topic of a
token has a probability proportional to $(n_{dk} + \alpha_k)(n_{kw} + \beta) / (n_k + V \beta)$, without its own count.
Documents are assigned to lanes, and one token per lane is drawn at a time in a NumPy operation. Tokens drawn together
do not see each other's new topics; Newman et al. (2009), "Distributed algorithms for topic models", found that this
makes no difference. With one lane, this is the textbook sampler, token by token.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from finecomb.corpora.critics.priors import DirichletPrior

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(slots=True)
class GibbsSampler:
    """State of the sampler: the topic of each token and the resulting counts."""

    documents: Ints
    """Document of each token, shape (tokens,)."""
    words: Ints
    """Word of each token, shape (tokens,)."""
    topics: Ints
    """Sampled topic of each token, shape (tokens,)."""
    by_document: Floats
    """n_dk, shape (documents, K)."""
    by_word: Floats
    """n_kw, shape (V, K)."""
    alpha: Floats
    """Dirichlet parameter, shape (K,)."""
    beta: float

    @classmethod
    def from_texts(
        cls, texts: Sequence[Ints], size: int, alpha: Floats, beta: float, rng: np.random.Generator
    ) -> GibbsSampler:
        """Assign a uniformly random topic to each token of `texts`; words are integers below `size`."""
        lengths = np.array([len(text) for text in texts], np.int64)
        documents, words = np.repeat(np.arange(len(texts)), lengths), np.concatenate([np.zeros(0, np.int64), *texts])
        topics = rng.integers(len(alpha), size=len(words))
        by_document, by_word = np.zeros((len(texts), len(alpha))), np.zeros((size, len(alpha)))
        np.add.at(by_document, (documents, topics), 1)
        np.add.at(by_word, (words, topics), 1)
        return cls(documents, words, topics, by_document, by_word, alpha, beta)

    def sweep(self, rng: np.random.Generator, steps: Sequence[Ints]) -> None:
        """Draw the topic of each token once; each of `steps` lists the tokens drawn together."""
        dice = rng.random(len(self.words))
        totals = self.by_word.sum(axis=0)
        for tokens in steps:
            documents, words, old = self.documents[tokens], self.words[tokens], self.topics[tokens]
            weights = np.zeros((len(tokens), len(totals)))
            weights[np.arange(len(tokens)), old] = 1
            in_document = self.by_document[documents] - weights + self.alpha
            in_topic = (self.by_word[words] - weights + self.beta) / (totals - weights + len(self.by_word) * self.beta)
            new = sample_columns(in_document * in_topic, dice[tokens])
            self.topics[tokens] = new
            changed = new != old
            documents, words, old, new = documents[changed], words[changed], old[changed], new[changed]
            self.by_document[documents, old] -= 1  # one token per document at a time, so indices are unique
            self.by_document[documents, new] += 1
            np.subtract.at(self.by_word, (words, old), 1)
            np.add.at(self.by_word, (words, new), 1)
            totals += np.bincount(new, minlength=len(totals)) - np.bincount(old, minlength=len(totals))

    def log_joint(self) -> float:
        """Return log P(words, topics) with proportions and topics integrated out, for ranking chains."""
        sizes = self.by_document.sum(axis=1)
        proportions = (gammaln(self.by_document + self.alpha) - gammaln(self.alpha)).sum()
        proportions += (gammaln(self.alpha.sum()) - gammaln(sizes + self.alpha.sum())).sum()
        total = len(self.by_word) * self.beta
        in_topics = (gammaln(self.by_word + self.beta) - gammaln(self.beta)).sum()
        in_topics += (gammaln(total) - gammaln(self.by_word.sum(axis=0) + total)).sum()
        return float(proportions + in_topics)

    def topic_word_probabilities(self) -> Floats:
        """Return P(word | topic), smoothed by beta, shape (K, V)."""
        smoothed = (self.by_word + self.beta).T
        distributions: Floats = smoothed / smoothed.sum(axis=1, keepdims=True)
        return distributions


def iterate_sweeps(
    texts: Sequence[Ints], size: int, topics: int, rng: np.random.Generator, beta: float = 0.01, every: int = 20
) -> Iterator[GibbsSampler]:
    """Yield the sampler after each sweep, indefinitely. Alpha starts at 1 / K and is refitted every `every` sweeps."""
    gibbs = GibbsSampler.from_texts(texts, size, np.full(topics, 1 / topics), beta, rng)
    steps = token_schedule(texts, lanes=max(1, len(gibbs.words) // max(map(len, texts))))
    for number in itertools.count(1):
        gibbs.sweep(rng, steps)
        if number % every == 0:
            gibbs.alpha = DirichletPrior.fit(gibbs.by_document[gibbs.by_document.any(axis=1)]).alpha
        yield gibbs


def token_schedule(texts: Sequence[Ints], lanes: int) -> list[Ints]:
    """Return the tokens to draw together: whole documents assigned to lanes, then the n-th token of each lane.

    >>> [step.tolist() for step in token_schedule([np.arange(2), np.arange(1), np.arange(1)], 2)]
    [[0, 2], [1, 3]]
    """
    lengths = np.array([len(text) for text in texts], np.int64)
    starts = np.cumsum(lengths) - lengths
    filled, rows = np.zeros(lanes, np.int64), [list[Ints]() for _ in range(lanes)]
    for document in np.argsort(-lengths, kind="stable"):
        lane = int(filled.argmin())
        rows[lane].append(np.arange(starts[document], starts[document] + lengths[document]))
        filled[lane] += lengths[document]
    tokens = [np.concatenate([np.zeros(0, np.int64), *row]) for row in rows]
    return [np.array([row[position] for row in tokens if position < len(row)]) for position in range(int(filled.max()))]


def sample_columns(weights: Floats, dice: Floats) -> Ints:
    """Draw one column per row with probability proportional to its weight."""
    cumulative = np.cumsum(weights, axis=1)
    return np.asarray((cumulative < dice[:, None] * cumulative[:, -1:]).sum(axis=1), np.int64)


def fold_in_texts(
    texts: Sequence[Ints], topic_words: Floats, alpha: Floats, rngs: Sequence[np.random.Generator], sweeps: int
) -> Floats:
    """Return mean topic counts of new texts over the second half of `sweeps`, with fixed topics, shape (texts, K).

    Each text has its own generator, so its result does not depend on the other texts.
    """
    by_length = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    lengths = np.array([len(texts[number]) for number in by_length], np.int64)
    words, topics = (
        _pad_rows([texts[number] for number in by_length], 0),
        np.full((len(texts), lengths.max(initial=0)), -1),
    )
    counts, means = np.zeros((len(texts), len(alpha))), np.zeros((len(texts), len(alpha)))
    by_word = np.ascontiguousarray(topic_words.T)
    for sweep in range(sweeps):
        dice = _pad_rows([rngs[number].random(len(texts[number])) for number in by_length], 0.0)
        for position in range(words.shape[1]):
            rows = np.arange(np.searchsorted(-lengths, -position))  # texts longer than `position`
            old = topics[rows, position]
            counts[rows[old >= 0], old[old >= 0]] -= 1
            new = sample_columns((counts[rows] + alpha) * by_word[words[rows, position]], dice[rows, position])
            counts[rows, new] += 1
            topics[rows, position] = new
        means += counts * (sweep >= sweeps // 2)
    shares = np.empty_like(means)
    shares[by_length] = means / (sweeps - sweeps // 2)
    return shares


def _pad_rows(rows: Sequence[NDArray[Any]], filler: float) -> NDArray[Any]:
    """Return rows of different lengths as one padded array."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), filler, rows[0].dtype if rows else float)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded
