"""The whole way from documents to scores: hold some real documents back, fit, and score the rest and every system."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.critics.base import Critic, CriticScores, Statistic, scores
from finecomb.critics.progress import track
from finecomb.critics.storage import checked_options, named


@dataclass(frozen=True, slots=True)
class Criticism:
    """One critic's scores of held-out real documents and of every system's."""

    critic: Critic
    real: CriticScores
    systems: Mapping[str, CriticScores]


def criticize(
    critic: str | type[Critic] | Critic,
    real: Sequence[Document],
    systems: Mapping[str, Iterable[Document]],
    fit: Sequence[Document] | None = None,
    statistic: Statistic | None = None,
    share: float = 0.5,
    seed: int = 0,
    **options: object,
) -> Criticism:
    """Fit a critic and score what it has not seen: `compare` then says whether systems differ from real documents.

    The critic is fitted on `fit`, or on a seeded `share` of `real` that takes no further part. A fitted critic is taken
    as it is.
    """
    if not isinstance(critic, Critic):
        for_fitting, real = (fit, real) if fit is not None else split(real, share, seed)
        refuse_overlap(for_fitting, real)
        critic = fitted(critic, for_fitting, seed, options)
    return criticism(critic, real, systems, statistic)


def split(documents: Iterable[Document], share: float = 0.5, seed: int = 0) -> tuple[list[Document], list[Document]]:
    """Documents to fit on, and held-out ones."""
    parts: tuple[list[Document], list[Document]] = [], []
    for document in documents:
        parts[not is_for_fitting(document.id, share, seed)].append(document)
    return parts


def is_for_fitting(id: str, share: float = 0.5, seed: int = 0) -> bool:
    """Whether a real document is fitted on; it depends on its id and the seed, not on the order of documents."""
    digest = hashlib.blake2b(f"{seed}\x1f{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64


def refuse_overlap(fit: Iterable[Document], real: Iterable[Document]) -> None:
    """Real documents that a critic was fitted on always look likelier than they should, so they are refused."""
    pairs = {(document.id, document.text) for document in fit}
    both = [document.id for document in real if (document.id, document.text) in pairs]
    if both:
        raise FinecombError(
            f"{len(both)} real documents are also fitted on, e.g. {both[0]!r}; generated ones can only be compared "
            "with real ones that the critic has not seen"
        )


def fitted(
    critic: str | type[Critic], documents: Sequence[Document], seed: int, options: Mapping[str, object]
) -> Critic:
    """A critic fitted on documents, its options checked first."""
    kind = named(critic) if isinstance(critic, str) else critic
    checked = checked_options(kind.fit, options, kind.name)
    if len(documents) < 2:
        raise FinecombError(
            f"the {kind.name} critic needs at least two documents to be fitted on, not {len(documents)}"
        )
    return kind.fit(documents, np.random.default_rng(seed), **checked)


def criticism(
    critic: Critic,
    real: Iterable[Document],
    systems: Mapping[str, Iterable[Document]],
    statistic: Statistic | None = None,
) -> Criticism:
    """Scores of everybody; documents are read once and not kept."""
    scores_by_name = {
        name: _scored(critic, documents, name, statistic) for name, documents in {"real": real, **systems}.items()
    }
    return Criticism(critic, scores_by_name["real"], {name: scores_by_name[name] for name in systems})


def _scored(critic: Critic, documents: Iterable[Document], name: str, statistic: Statistic | None) -> CriticScores:
    total = len(documents) if isinstance(documents, Sequence) else None
    return scores(critic, track(documents, f"{critic.name} critic: {name}", total), statistic)


def scores_by_system(
    critic: Critic, documents: Iterable[Document], name: str, statistic: Statistic | None
) -> dict[str, CriticScores]:
    """Scores of systems that stand in one stream and are told apart by document meta."""
    system: dict[str, str] = {}
    generated = _scored(critic, _with_system_recorded(documents, name, system), "generated", statistic)
    return {
        system_name: generated.only({id for id, other in system.items() if other == system_name})
        for system_name in sorted(set(system.values()))
    }


def _with_system_recorded(documents: Iterable[Document], name: str, system: dict[str, str]) -> Iterator[Document]:
    """The same documents, the system of each noted by its id on the way."""
    for document in documents:
        if document.id in system:
            raise FinecombError(f"two generated documents have the id {document.id!r}, so systems cannot be told apart")
        if name not in document.meta:
            raise FinecombError(f"generated document {document.id!r} has no meta {name!r} to tell its system by")
        system[document.id] = str(document.meta[name])
        yield document
