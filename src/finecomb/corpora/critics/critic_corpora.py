"""Corpora for critics: real and generated documents, streamed once per critic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from finecomb.core.errors import FinecombError, param
from finecomb.core.records import Document
from finecomb.corpora.critics.base import Critic, Statistic
from finecomb.corpora.critics.criticism import (
    Criticism,
    is_for_fitting,
    score_real_and_systems,
    scores_by_system,
    unseen_real_documents,
)
from finecomb.corpora.critics.human_judgements import REAL_SYSTEM
from finecomb.corpora.critics.progress import track_progress
from finecomb.engine.partitions import Executor


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """Corpus that can be read repeatedly."""

    name: str
    """Name of the system that wrote the documents, unless a meta field gives it."""
    read: Callable[[], Iterable[Document]]
    """Function that starts a new pass over the documents."""


@dataclass(frozen=True, slots=True)
class CriticCorpora:
    """Real and generated documents, and those used for fitting; only the latter are kept in memory."""

    real: DocumentSource
    generated: Sequence[DocumentSource]
    fit: DocumentSource | None
    share: float
    """Share of the real documents used for fitting if `fit` is None."""
    by: str
    """Meta field with the system of a document; if empty, each source is a system."""
    seed: int
    cluster: str = ""

    def fitting_documents(self) -> list[Document]:
        """Return the documents for fitting critics."""
        source = track_progress((self.fit or self.real).read(), "reading documents to fit on")
        return [document for document in source if self.fit or is_for_fitting(document.id, self.share, self.seed)]

    def held_out_documents(self, whole: bool) -> Iterator[Document]:
        """Return the real documents not used for fitting; if `whole`, as for a saved critic, return all of them."""
        whole = whole or self.fit is not None
        return (
            document for document in self.real.read() if whole or not is_for_fitting(document.id, self.share, self.seed)
        )

    def unseen_real_documents(self, critic: Critic, whole: bool, max_count: int | None = None) -> list[Document]:
        """Return at most `max_count` held-out real documents whose text the critic was not fitted on."""
        return list(
            itertools.islice(unseen_real_documents(self.held_out_documents(whole), critic.fitted_on, []), max_count)
        )

    def score_systems(self, critic: Critic, whole: bool, stat: Statistic | None, spread: Executor) -> Criticism:
        """Score the held-out real documents and the documents of each system."""
        if self.by:
            real_scores = score_real_and_systems(critic, self.held_out_documents(whole), {}, stat, self.cluster, spread)
            documents = itertools.chain.from_iterable(source.read() for source in self.generated)
            systems = scores_by_system(critic, documents, self.by, stat, self.cluster, spread)
            return replace(real_scores, systems=systems)
        sources = {source.name: source for source in self.generated}
        if len(sources) < len(self.generated):
            raise FinecombError(
                f"two generated corpora have the same name; rename one, or distinguish systems with {param('by')}"
            )
        corpora = {name: source.read() for name, source in sources.items()}
        return score_real_and_systems(critic, self.held_out_documents(whole), corpora, stat, self.cluster, spread)

    def documents_with_system(self) -> Iterator[tuple[str, Document]]:
        """Yield each generated document with its system, then each real document."""
        yield from self.generated_documents_with_system()
        yield from ((REAL_SYSTEM, document) for document in self.real.read())

    def generated_documents_with_system(self) -> Iterator[tuple[str, Document]]:
        """Yield each generated document with its system."""
        for source in self.generated:
            for document in source.read():
                yield str(document.meta[self.by]) if self.by else source.name, document
