"""Languages critic: mixture of languages, or other word classes, within a document.

Deng et al. (2022), Appendix C: latent Dirichlet allocation with as many topics as languages. z is the mixture of a
document. E[log z] is computed in closed form, because draws from a Dirichlet with a small alpha underflow to 0.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import CriticScores, DroppedDocument, PriorCritic
from finecomb.corpora.critics.languages_gibbs import fold_in_texts, iterate_sweeps
from finecomb.corpora.critics.posteriors import Dirichlet, Floats, Posterior
from finecomb.corpora.critics.priors import DirichletPrior, ProjectionError, SavedState
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.vocabulary import NO_KNOWN_WORD_REASON, Vocabulary, prose_words

_PROJECTION_SWEEPS = 20


@dataclass(frozen=True)
class Languages(PriorCritic):
    """Latent Dirichlet allocation with few topics, and its vocabulary."""

    name = "languages"
    table_names = ("languages", "mixing")
    damages = ("half of another text",)
    batch = 1000
    discrete = False
    statistic = "kl"

    vocabulary: Vocabulary
    topics: Floats
    """P(word | topic), shape (K, words)."""
    prior: DirichletPrior
    unused: tuple[DroppedDocument, ...] = ()

    @classmethod
    def fit(
        cls,
        real: Sequence[Document],
        rng: np.random.Generator,
        languages: int = 3,
        most: float = 1.0,
        least: int = 5,
        sweeps: int = 200,
        starts: int = 4,
        beta: float = 0.01,
    ) -> Self:
        """Fit `languages` topics to words that occur at least `least` times, in at most the share `most` of documents.

        Of `starts` chains, the most likely one after a quarter of the `sweeps` continues, because a bad start can merge
        two languages permanently. Alpha starts at 1 / K and is optimised every 20 sweeps.
        """
        if languages < 2:
            raise FinecombError(f"languages must be at least 2, found {languages}")
        vocabulary = Vocabulary.fit([document.text for document in real], most, least, prose_words)
        texts = [vocabulary.word_indices(document.text) for document in real]
        unused = tuple(
            DroppedDocument(document.id, NO_KNOWN_WORD_REASON)
            for document, text in zip(real, texts, strict=True)
            if not len(text)
        )
        chains = [iterate_sweeps(texts, len(vocabulary.words), languages, rng, beta) for _ in range(starts)]
        # Run all chains for a quarter of the sweeps and the best one to the end, and return it
        early = max(1, sweeps // 4)
        total = len(chains) * early + sweeps - early
        bar = track_progress(range(total), f"sampling, {len(chains)} chains", total)
        after = [[next(chain) for _, _ in zip(range(early), bar, strict=False)][-1] for chain in chains]
        best = max(range(len(chains)), key=lambda at: after[at].log_joint())
        for _ in bar:
            next(chains[best])
        last = after[best]
        return cls(vocabulary, last.topic_word_probabilities(), DirichletPrior(last.alpha), unused)

    def project(self, document: Document) -> Posterior:
        """Return a Dirichlet with alpha plus the mean number of words per language over Gibbs samples."""
        return self.project_via_batch(document)

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """Yield the posterior of each document; its random draws depend on its text alone."""
        source = iter(documents)
        while batch := list(itertools.islice(source, self.batch)):
            texts = [self.vocabulary.word_indices(document.text) for document in batch]
            rngs = [np.random.default_rng(zlib.crc32(document.text.encode())) for document in batch]
            counts = fold_in_texts(texts, self.topics, self.prior.alpha, rngs, _PROJECTION_SWEEPS)
            for document, text, shares in zip(batch, texts, counts, strict=True):
                has_words = len(text) > 0
                none = ProjectionError(NO_KNOWN_WORD_REASON)
                yield document, Dirichlet(self.prior.alpha + shares) if has_words else none

    def word_log_probs(self, text: str, posterior: Posterior | None) -> Floats | None:
        """Return log P of each known word under the mixture at the mean of `posterior`; if None, of the prior."""
        mean = self.prior.alpha / self.prior.alpha.sum()
        mixture: Floats = mean if posterior is None else np.asarray(posterior.point_estimate())
        logs: Floats = np.log(np.maximum(mixture @ self.topics, 1e-12))[self.vocabulary.word_indices(text)]
        return logs

    def known_word_share(self, document: Document) -> float:
        """Return the share of a document's words that are in the vocabulary."""
        return self.vocabulary.known_word_share(document.text)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Return `languages` (Table 10: the words of each language) and `mixing` (share outside the main language)."""
        # Most likely words of each language, numbered from 1 as in the paper
        best = np.argsort(-self.topics, axis=1)[:, :20]
        listed = [" ".join(self.vocabulary.words[index] for index in row) for row in best]
        shares = {
            name: 1 - np.max(scores.points, axis=1)
            for name, scores in {"real": real, **systems}.items()
            if scores.points
        }
        return {
            "languages": pl.DataFrame(
                {"language": np.arange(1, len(listed) + 1), "alpha": self.prior.alpha, "words": listed}
            ),
            "mixing": pl.DataFrame(
                {
                    "system": list(shares),
                    "documents": [len(outside) for outside in shares.values()],
                    "outside": [float(outside.mean()) for outside in shares.values()],
                    "mixed": [float((outside >= 0.1).mean()) for outside in shares.values()],
                }
            ),
        }

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"words": list(self.vocabulary.words), "topics": self.topics, "prior": self.prior.state()}

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """Rebuild the critic from its saved state."""
        return cls(
            Vocabulary(tuple(state["words"]), prose_words), state["topics"], DirichletPrior.from_state(state["prior"])
        )
