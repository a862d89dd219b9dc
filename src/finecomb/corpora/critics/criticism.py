"""The whole way from documents to scores: hold some real documents back, fit, and score the rest and every system."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import Critic, CriticScores, DroppedDocument, Statistic
from finecomb.corpora.critics.comparison import COPY_REASON
from finecomb.corpora.critics.progress import track
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import critic_class, parse_fit_options
from finecomb.engine.partitions import Executor


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
        for_fitting, real = (fit, real) if fit is not None else split_for_fitting(real, share, seed)
        critic = fit_critic(critic, for_fitting, seed, options)
    return score_real_and_systems(critic, real, systems, statistic)


def split_for_fitting(
    documents: Iterable[Document], share: float = 0.5, seed: int = 0
) -> tuple[list[Document], list[Document]]:
    """Documents to fit on, and held-out ones."""
    parts: tuple[list[Document], list[Document]] = [], []
    for document in documents:
        parts[not is_for_fitting(document.id, share, seed)].append(document)
    return parts


def is_for_fitting(id: str, share: float = 0.5, seed: int = 0) -> bool:
    """Whether a real document is fitted on; it depends on its id and the seed, not on the order of documents."""
    digest = hashlib.blake2b(f"{seed}\x1f{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64


# --- who was fitted on -------------------------------------------------------------------------------------------

FITTED_REASON = "has the text of a document that the critic was fitted on"
REPEATED_REASON = "has the text of another real document"


def fingerprint(document: Document) -> str:
    """What a document says, whatever its id: a hash of its words and of the titles and words of its sections."""
    parts = [document.text[segment.start : segment.end] for segment in document.segments or ()]
    titles = [segment.title for segment in document.segments or ()]
    content = "\x1f".join(" ".join(part.split()) for part in (document.text, *titles, *parts))
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def unseen_real_documents(
    documents: Iterable[Document], fitted_on: Collection[str], lost: list[DroppedDocument]
) -> Iterator[Document]:
    """Real documents that were not fitted on, by what they say and not by id, each text once; others go to `lost`."""
    earlier: set[str] = set()
    for document in documents:
        mark = fingerprint(document)
        if mark in fitted_on or mark in earlier:
            lost.append(DroppedDocument(document.id, FITTED_REASON if mark in fitted_on else REPEATED_REASON))
        else:
            earlier.add(mark)
            yield document


def exclude_copies(
    documents: Iterable[Document], fitted_on: Collection[str], lost: list[DroppedDocument]
) -> Iterator[Document]:
    """Generated documents that are no copies of texts that were fitted on; copies go to `lost`."""
    for document in documents:
        if fitted_on and fingerprint(document) in fitted_on:
            lost.append(DroppedDocument(document.id, COPY_REASON))
        else:
            yield document


def fit_critic(
    critic: str | type[Critic], documents: Sequence[Document], seed: int, options: Mapping[str, object]
) -> Critic:
    """A critic fitted on documents, its options checked first."""
    kind = critic_class(critic) if isinstance(critic, str) else critic
    checked = parse_fit_options(kind.fit, options, kind.name)
    if len(documents) < 2:
        raise FinecombError(
            f"the {kind.name} critic needs at least two documents to be fitted on, not {len(documents)}"
        )
    model = kind.fit(documents, np.random.default_rng(seed), **checked)
    object.__setattr__(model, "fitted_on", frozenset(map(fingerprint, documents)))  # critics may be frozen
    return model


def score_real_and_systems(
    critic: Critic,
    real: Iterable[Document],
    systems: Mapping[str, Iterable[Document]],
    statistic: Statistic | None = None,
    cluster: str = "",
    spread: Executor | None = None,
) -> Criticism:
    """Scores of everybody, made as `spread` says; documents are read once and not kept.

    Real documents that the critic was fitted on, by text, and repeated ones take no part. Generated documents that copy
    a text that was fitted on take no part either and are reported as copies.
    """
    lost: list[DroppedDocument] = []
    judged = _score_with_progress(
        critic, unseen_real_documents(real, critic.fitted_on, lost), "real", statistic, cluster, spread=spread
    )
    real_scores = replace(judged, dropped=judged.dropped + tuple(lost))
    if lost and not real_scores.ids:
        raise FinecombError(
            f"all {len(lost)} real documents, e.g. {lost[0].id!r}, have texts that the critic was fitted on; generated "
            "documents can only be compared with real ones that the critic has not seen"
        )
    return Criticism(
        critic,
        real_scores,
        {name: generated_scores(critic, systems[name], name, statistic, cluster, spread) for name in systems},
    )


def generated_scores(
    critic: Critic,
    documents: Iterable[Document],
    name: str,
    statistic: Statistic | None,
    cluster: str = "",
    spread: Executor | None = None,
) -> CriticScores:
    """Scores of generated documents; copies of texts that were fitted on are among `dropped`."""
    lost: list[DroppedDocument] = []
    total = len(documents) if isinstance(documents, Sequence) else None
    judged = _score_with_progress(
        critic, exclude_copies(documents, critic.fitted_on, lost), name, statistic, cluster, total, spread
    )
    return replace(judged, dropped=judged.dropped + tuple(lost))


def _score_with_progress(
    critic: Critic,
    documents: Iterable[Document],
    name: str,
    statistic: Statistic | None,
    cluster: str,
    total: int | None = None,
    spread: Executor | None = None,
) -> CriticScores:
    return score_documents(critic, track(documents, f"{critic.name} critic: {name}", total), statistic, cluster, spread)


def scores_by_system(
    critic: Critic,
    documents: Iterable[Document],
    name: str,
    statistic: Statistic | None,
    cluster: str = "",
    spread: Executor | None = None,
) -> dict[str, CriticScores]:
    """Scores of systems that stand in one stream and are told apart by document meta."""
    system: dict[str, str] = {}
    generated = generated_scores(
        critic, _record_systems(documents, name, system), "generated", statistic, cluster, spread
    )
    return {
        system_name: generated.select({id for id, other in system.items() if other == system_name})
        for system_name in sorted(set(system.values()))
    }


def _record_systems(documents: Iterable[Document], name: str, system: dict[str, str]) -> Iterator[Document]:
    """The same documents, the system of each noted by its id on the way."""
    for document in documents:
        if document.id in system:
            raise FinecombError(f"two generated documents have the id {document.id!r}, so systems cannot be told apart")
        if name not in document.meta:
            raise FinecombError(f"generated document {document.id!r} has no meta {name!r} to tell its system by")
        system[document.id] = str(document.meta[name])
        yield document
