"""Corpora of a criticism: real and generated documents, read as streams, once for each critic."""

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
from finecomb.corpora.critics.human_judgements import REAL
from finecomb.corpora.critics.progress import track
from finecomb.engine.partitions import Executor


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A corpus that can be read again and again."""

    name: str
    """Of the system that wrote the documents, where no meta field names it."""
    read: Callable[[], Iterable[Document]]
    """Called for each pass over the documents."""


@dataclass(frozen=True, slots=True)
class CriticCorpora:
    """Real documents, generated ones and those to fit on; only documents that are fitted on are kept in memory."""

    real: DocumentSource
    generated: Sequence[DocumentSource]
    fit: DocumentSource | None
    share: float
    """Share of the real documents that is fitted on where `fit` is None."""
    by: str
    """Document meta that tells systems apart; without it each source is a system."""
    seed: int
    cluster: str = ""

    def fitting_documents(self) -> list[Document]:
        """Return the documents that critics are fitted on."""
        source = track((self.fit or self.real).read(), "reading documents to fit on")
        return [document for document in source if self.fit or is_for_fitting(document.id, self.share, self.seed)]

    def held_out(self, whole: bool) -> Iterator[Document]:
        """Return real documents that take no part in fitting; all of them when the critic came fitted."""
        whole = whole or self.fit is not None
        return (
            document for document in self.real.read() if whole or not is_for_fitting(document.id, self.share, self.seed)
        )

    def unseen_real_documents(self, critic: Critic, whole: bool, max_count: int | None = None) -> list[Document]:
        """Return held-out real documents, at most `max_count`, without those whose text the critic was fitted on."""
        return list(itertools.islice(unseen_real_documents(self.held_out(whole), critic.fitted_on, []), max_count))

    def score_systems(self, critic: Critic, whole: bool, stat: Statistic | None, spread: Executor) -> Criticism:
        """Score held-out real documents and those of every system."""
        if self.by:
            real_scores = score_real_and_systems(critic, self.held_out(whole), {}, stat, self.cluster, spread)
            documents = itertools.chain.from_iterable(source.read() for source in self.generated)
            systems = scores_by_system(critic, documents, self.by, stat, self.cluster, spread)
            return replace(real_scores, systems=systems)
        sources = {source.name: source for source in self.generated}
        if len(sources) < len(self.generated):
            raise FinecombError(
                f"two files of generated documents have the same name; tell systems apart with {param('by')}"
            )
        corpora = {name: source.read() for name, source in sources.items()}
        return score_real_and_systems(critic, self.held_out(whole), corpora, stat, self.cluster, spread)

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Yield every generated document with its system, then every real one."""
        yield from self.generated_documents()
        yield from ((REAL, document) for document in self.real.read())

    def generated_documents(self) -> Iterator[tuple[str, Document]]:
        """Yield every generated document with its system."""
        for source in self.generated:
            for document in source.read():
                yield str(document.meta[self.by]) if self.by else source.name, document
