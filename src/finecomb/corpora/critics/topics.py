"""The critic of topics: do the topics that go together in real documents go together in generated ones?

Deng et al. (2022), section 6 and Appendix F. z is the vector of topic strengths of a correlated topic model, its
posterior the variational one, its prior the model's normal distribution.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
from scipy import special
from scipy.sparse import csr_array

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import CriticScores, DroppedDocument, PriorCritic
from finecomb.corpora.critics.posteriors import Floats, Gaussian, Posterior
from finecomb.corpora.critics.priors import GaussianPrior, ProjectionError, SavedState
from finecomb.corpora.critics.progress import track
from finecomb.corpora.critics.topics_em import CorrelatedTopics, EmStep, em_steps, infer_posteriors
from finecomb.corpora.critics.vocabulary import NO_WORD, Vocabulary


@dataclass(frozen=True)
class Topics(PriorCritic):
    """A correlated topic model, and the vocabulary it reads documents with."""

    name = "topics"
    table_names = ("topics",)
    damages = ("half of another text",)
    batch = 1000
    discrete = False
    statistic = "kl"

    vocabulary: Vocabulary
    topics: Floats
    """(K, words): P(word | topic)."""
    prior: GaussianPrior
    unused: tuple[DroppedDocument, ...] = ()
    cautions: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        real: Sequence[Document],
        rng: np.random.Generator,
        topics: int = 100,
        most: float = 0.5,
        least: int = 5,
        iterations: int = 100,
        tolerance: float = 2e-4,
    ) -> Self:
        """`topics` topics over words that occur `least` times and in at most the share `most` of the documents.

        EM stops after `iterations`, or when a step raises the bound by less than `tolerance` nats a word.
        """
        if len(real) < 2:
            raise FinecombError(f"a topic model needs at least two documents, not {len(real)}")
        vocabulary = Vocabulary.fit([document.text for document in real], most, least)
        bags, unused = _drop_empty_bags(vocabulary.bags_of_words(document.text for document in real), real)
        steps = track(itertools.islice(em_steps(bags, topics, rng), iterations), f"fitting {topics} topics", iterations)
        model = _run_until_converged(steps, tolerance * float(bags.sum())).model
        prior = GaussianPrior(model.mean, model.covariance)
        return cls(vocabulary, model.topics, prior, unused, _topic_count_cautions(bags.shape[0], topics))

    def project(self, document: Document) -> Posterior:
        """The variational posterior of one document."""
        return self.project_as_batch(document)

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """The same for many, a thousand at a time."""
        source = iter(documents)
        while batch := list(itertools.islice(source, self.batch)):
            bags = self.vocabulary.bags_of_words(document.text for document in batch)
            yield from zip(batch, self._posteriors(bags), strict=True)

    def _posteriors(self, bags: csr_array) -> Iterator[Posterior | ProjectionError]:
        beliefs = infer_posteriors(CorrelatedTopics(self.topics, self.prior.mean, self.prior.covariance), bags)
        for mean, variance, entries in zip(*beliefs, np.diff(bags.indptr), strict=True):
            if entries:
                yield Gaussian(mean, variance)
            else:
                yield ProjectionError(NO_WORD)

    def word_log_probs(self, text: str, posterior: Posterior | None) -> Floats | None:
        """log P of each known word under the mixture of a posterior, or of the prior's mean."""
        mixture: Floats = special.softmax(
            self.prior.mean if posterior is None else np.asarray(posterior.point_estimate())
        )
        logs: Floats = np.log(np.maximum(mixture @ self.topics, 1e-12))[self.vocabulary.word_indices(text)]
        return logs

    def familiarity(self, document: Document) -> float:
        """The share of its words that are in the vocabulary."""
        return self.vocabulary.known_word_share(document.text)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """`topics`: the share of each in real documents, and its words."""
        return {"topics": top_words(self, real)}

    def state(self) -> SavedState:
        """For storage."""
        return {"words": list(self.vocabulary.words), "topics": self.topics, "prior": self.prior.state()}

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """From storage."""
        return cls(Vocabulary(tuple(state["words"])), state["topics"], GaussianPrior.from_state(state["prior"]))


def _topic_count_cautions(documents: int, topics: int) -> tuple[str, ...]:
    """A caution where topics exceed documents: most of them then hold the words of one document or of none."""
    if topics <= documents:
        return ()
    return (
        f"{topics} topics were fitted on {documents} documents; say --set topics=N with fewer topics than documents",
    )


def _drop_empty_bags(bags: csr_array, real: Sequence[Document]) -> tuple[csr_array, tuple[DroppedDocument, ...]]:
    """The bags that hold words, and the documents that have none."""
    readable = np.diff(bags.indptr) > 0
    unused = tuple(
        DroppedDocument(document.id, NO_WORD) for document, has in zip(real, readable, strict=True) if not has
    )
    return csr_array(bags[readable]), unused


def _run_until_converged(steps: Iterator[EmStep], min_rise: float) -> EmStep:
    """The first step whose bound is less than `enough` above the one before, or the last there is."""
    step = next(steps)
    for following in steps:
        rise, step = following.bound - step.bound, following
        if rise < min_rise:
            break
    return step


def top_words(critic: Topics, real: CriticScores, count: int = 10) -> pl.DataFrame:
    """Every topic with its mean share of the real documents and its likeliest words, the largest share first."""
    shares = _mean_topic_shares(real.points, len(critic.topics))
    best = np.argsort(-critic.topics, axis=1)[:, :count]
    listed = [" ".join(critic.vocabulary.words[at] for at in row) for row in best]
    rows = {"topic": np.arange(len(shares)), "share": shares, "words": listed}
    return pl.DataFrame(rows).sort("share", descending=True)


def _mean_topic_shares(points: Sequence[Floats], topics: int) -> Floats:
    if not points:
        return np.full(topics, np.nan)
    raised = np.exp(np.stack(points) - np.max(points, axis=1, keepdims=True))
    mean: Floats = (raised / raised.sum(axis=1, keepdims=True)).mean(axis=0)
    return mean
