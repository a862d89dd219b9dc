"""The critic of languages: does a document keep to one language, or whatever else its words fall into?

Deng et al. (2022), Appendix C: latent Dirichlet allocation with as many topics as there are languages; z is the mixture
of a document. E[log z] is taken in closed form, as draws of a Dirichlet with a small alpha underflow to 0.
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
from finecomb.corpora.critics.languages_gibbs import GibbsSampler, fold_in_texts, iterate_sweeps
from finecomb.corpora.critics.posteriors import Dirichlet, Floats, Posterior
from finecomb.corpora.critics.priors import DirichletPrior, ProjectionError, SavedState
from finecomb.corpora.critics.progress import track
from finecomb.corpora.critics.vocabulary import NO_WORD, Vocabulary, prose_words

_PROJECTION_SWEEPS = 20


@dataclass(frozen=True)
class Languages(PriorCritic):
    """Latent Dirichlet allocation of few topics, and the vocabulary it reads documents with."""

    name = "languages"
    table_names = ("languages", "mixing")
    damages = ("half of another text",)
    batch = 1000
    discrete = False
    statistic = "kl"

    vocabulary: Vocabulary
    topics: Floats
    """(K, words): P(word | topic)."""
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
        """`languages` topics over words that occur `least` times and in at most the share `most` of the documents.

        Of `starts` chains the one that is likeliest after a quarter of the `sweeps` goes on: a chain that begins badly
        may join two languages for good. Alpha starts at 1 / K and is optimised after every 20 sweeps.
        """
        if languages < 2:
            raise FinecombError(f"mixtures need at least 2 languages, not {languages}")
        vocabulary = Vocabulary.fit([document.text for document in real], most, least, prose_words)
        texts = [vocabulary.word_indices(document.text) for document in real]
        unused = tuple(
            DroppedDocument(document.id, NO_WORD) for document, text in zip(real, texts, strict=True) if not len(text)
        )
        chains = [iterate_sweeps(texts, len(vocabulary.words), languages, rng, beta) for _ in range(starts)]
        last = _run_best_chain(chains, sweeps)
        return cls(vocabulary, last.topic_word_probabilities(), DirichletPrior(last.alpha), unused)

    def project(self, document: Document) -> Posterior:
        """A Dirichlet: alpha and the words of each language in the document, the mean over Gibbs samples."""
        return self.project_as_batch(document)

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """The same for many; what is drawn for a document depends on its text alone."""
        source = iter(documents)
        while batch := list(itertools.islice(source, self.batch)):
            texts = [self.vocabulary.word_indices(document.text) for document in batch]
            rngs = [np.random.default_rng(zlib.crc32(document.text.encode())) for document in batch]
            counts = fold_in_texts(texts, self.topics, self.prior.alpha, rngs, _PROJECTION_SWEEPS)
            for document, text, shares in zip(batch, texts, counts, strict=True):
                has_words = len(text) > 0
                none = ProjectionError(NO_WORD)
                yield document, Dirichlet(self.prior.alpha + shares) if has_words else none

    def word_log_probs(self, text: str, posterior: Posterior | None) -> Floats | None:
        """log P of each known word under the mixture of a posterior, or of the prior's mean."""
        mean = self.prior.alpha / self.prior.alpha.sum()
        mixture: Floats = mean if posterior is None else np.asarray(posterior.point_estimate())
        logs: Floats = np.log(np.maximum(mixture @ self.topics, 1e-12))[self.vocabulary.word_indices(text)]
        return logs

    def familiarity(self, document: Document) -> float:
        """The share of its words that are in the vocabulary."""
        return self.vocabulary.known_word_share(document.text)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """`languages` (Table 10): the words of each; `mixing`: how much of documents is not of their main language."""
        return {"languages": top_words(self), "mixing": language_mixing({"real": real, **systems})}

    def state(self) -> SavedState:
        """For storage."""
        return {"words": list(self.vocabulary.words), "topics": self.topics, "prior": self.prior.state()}

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """From storage."""
        return cls(
            Vocabulary(tuple(state["words"]), prose_words), state["topics"], DirichletPrior.from_state(state["prior"])
        )


def _run_best_chain(chains: Sequence[Iterator[GibbsSampler]], sweeps: int) -> GibbsSampler:
    """The best chain after a quarter of the sweeps, when it has done them all."""
    early = max(1, sweeps // 4)
    total = len(chains) * early + sweeps - early
    bar = track(range(total), f"sampling, {len(chains)} chains", total)
    after = [[next(chain) for _, _ in zip(range(early), bar, strict=False)][-1] for chain in chains]
    best = max(range(len(chains)), key=lambda at: after[at].log_joint())
    for _ in bar:
        next(chains[best])
    return after[best]


def top_words(critic: Languages, count: int = 20) -> pl.DataFrame:
    """The likeliest words of each language, numbered from 1 as in the paper."""
    best = np.argsort(-critic.topics, axis=1)[:, :count]
    listed = [" ".join(critic.vocabulary.words[at] for at in row) for row in best]
    return pl.DataFrame({"language": np.arange(1, len(listed) + 1), "alpha": critic.prior.alpha, "words": listed})


def language_mixing(corpora: Mapping[str, CriticScores]) -> pl.DataFrame:
    """By corpus: the mean share of a document outside its main language, and of documents with a tenth or more."""
    shares = {name: 1 - np.max(scores.points, axis=1) for name, scores in corpora.items() if scores.points}
    return pl.DataFrame(
        {
            "system": list(shares),
            "documents": [len(outside) for outside in shares.values()],
            "outside": [float(outside.mean()) for outside in shares.values()],
            "mixed": [float((outside >= 0.1).mean()) for outside in shares.values()],
        }
    )
