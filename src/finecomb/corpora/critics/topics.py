"""Topics critic: co-occurrence of topics compared with real documents.

Deng et al. (2022), section 6 and Appendix F. z is the vector of topic strengths of a correlated topic model. Its
posterior is approximated by variational inference; its prior is the model's normal distribution.
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
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.topics_em import CorrelatedTopics, em_steps, infer_posteriors
from finecomb.corpora.critics.vocabulary import NO_KNOWN_WORD_REASON, Vocabulary


@dataclass(frozen=True)
class Topics(PriorCritic):
    """Critic with a correlated topic model and its vocabulary."""

    name = "topics"
    table_names = ("topics",)
    damages = ("half of another text",)
    batch = 1000
    discrete = False
    statistic = "kl"

    vocabulary: Vocabulary
    topics: Floats
    """P(word | topic), shape (K, words)."""
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
        """Fit `topics` topics to words that occur at least `least` times, in at most the share `most` of documents.

        EM stops after `iterations`, or when a step raises the bound by less than `tolerance` nats per word.
        """
        if len(real) < 2:
            raise FinecombError(f"a topic model requires at least two documents, found {len(real)}")
        vocabulary = Vocabulary.fit([document.text for document in real], most, least)
        bags = vocabulary.bags_of_words(document.text for document in real)
        readable = np.diff(bags.indptr) > 0
        bags = csr_array(bags[readable])
        unused = tuple(
            DroppedDocument(document.id, NO_KNOWN_WORD_REASON) for document in itertools.compress(real, ~readable)
        )
        steps = track_progress(
            itertools.islice(em_steps(bags, topics, rng), iterations), f"fitting {topics} topics", iterations
        )
        min_rise = tolerance * float(bags.sum())
        step = next(steps)
        for following in steps:
            rise, step = following.bound - step.bound, following
            if rise < min_rise:
                break
        model = step.model
        prior = GaussianPrior(model.mean, model.covariance)
        warnings: tuple[str, ...] = ()
        if topics > bags.shape[0]:
            fitted = f"{topics} topics were fitted on {bags.shape[0]} documents"
            warnings = (f"{fitted}; use fewer topics than documents with --set topics=N",)
        return cls(vocabulary, model.topics, prior, unused, warnings)

    def project(self, document: Document) -> Posterior:
        """Return the variational posterior of a document."""
        return self.project_via_batch(document)

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """Yield the posterior of each document, computed in batches of 1,000."""
        source = iter(documents)
        while batch := list(itertools.islice(source, self.batch)):
            bags = self.vocabulary.bags_of_words(document.text for document in batch)
            beliefs = infer_posteriors(CorrelatedTopics(self.topics, self.prior.mean, self.prior.covariance), bags)
            for document, mean, variance, entries in zip(batch, *beliefs, np.diff(bags.indptr), strict=True):
                yield document, Gaussian(mean, variance) if entries else ProjectionError(NO_KNOWN_WORD_REASON)

    def word_log_probs(self, text: str, posterior: Posterior | None) -> Floats | None:
        """Return log P of each known word under the mixture at the mean of `posterior`; if None, of the prior."""
        mixture: Floats = special.softmax(
            self.prior.mean if posterior is None else np.asarray(posterior.point_estimate())
        )
        logs: Floats = np.log(np.maximum(mixture @ self.topics, 1e-12))[self.vocabulary.word_indices(text)]
        return logs

    def known_word_share(self, document: Document) -> float:
        """Return the share of a document's words that are in the vocabulary."""
        return self.vocabulary.known_word_share(document.text)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Return the table `topics`: each topic's share of the real documents, and its words."""
        # Each topic with its mean share of the real documents and its most likely words, largest share first
        if not real.points:
            shares = np.full(len(self.topics), np.nan)
        else:
            raised = np.exp(np.stack(real.points) - np.max(real.points, axis=1, keepdims=True))
            mean: Floats = (raised / raised.sum(axis=1, keepdims=True)).mean(axis=0)
            shares = mean
        best = np.argsort(-self.topics, axis=1)[:, :10]
        listed = [" ".join(self.vocabulary.words[topic] for topic in row) for row in best]
        rows = {"topic": np.arange(len(shares)), "share": shares, "words": listed}
        return {"topics": pl.DataFrame(rows).sort("share", descending=True)}

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"words": list(self.vocabulary.words), "topics": self.topics, "prior": self.prior.state()}

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """Rebuild the critic from its saved state."""
        return cls(Vocabulary(tuple(state["words"])), state["topics"], GaussianPrior.from_state(state["prior"]))
