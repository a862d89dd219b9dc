"""Criticism of systems: split real documents, fit a critic, and score held-out real and generated documents."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from finecomb.core.errors import FinecombError, param
from finecomb.core.records import Document
from finecomb.corpora.critics.base import Critic, CriticScores, DroppedDocument, Statistic
from finecomb.corpora.critics.comparison import COPY_REASON
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import critic_class, parse_fit_options
from finecomb.engine.partitions import Executor


@dataclass(frozen=True, slots=True)
class Criticism:
    """Scores of held-out real documents and of each system under one critic."""

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
    """Fit a critic and score held-out real documents and each system; `compare` takes these scores.

    The critic is fitted on `fit`, or on a random `share` of `real`, which is then excluded. A critic that is already
    fitted is used unchanged.
    """
    if not isinstance(critic, Critic):
        for_fitting, real = (fit, real) if fit is not None else split_for_fitting(real, share, seed)
        critic = fit_critic(critic, for_fitting, seed, options)
    return score_real_and_systems(critic, real, systems, statistic)


def split_for_fitting(
    documents: Iterable[Document], share: float = 0.5, seed: int = 0
) -> tuple[list[Document], list[Document]]:
    """Split documents into documents for fitting and held-out documents."""
    parts: tuple[list[Document], list[Document]] = [], []
    for document in documents:
        parts[not is_for_fitting(document.id, share, seed)].append(document)
    return parts


def is_for_fitting(id: str, share: float = 0.5, seed: int = 0) -> bool:
    """Check whether a real document is for fitting; depends on its ID and the seed, not on the order of documents."""
    digest = hashlib.blake2b(f"{seed}\x1f{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64


# --- documents used for fitting ----------------------------------------------------------------------------------

FITTED_ON_REASON = "has the text of a document that the critic was fitted on"
DUPLICATE_REASON = "has the text of another real document"


def content_fingerprint(document: Document) -> str:
    """Return a hash of a document's words and of its section titles and texts, independent of its ID."""
    parts = [document.text[segment.start : segment.end] for segment in document.segments or ()]
    titles = [segment.title for segment in document.segments or ()]
    content = "\x1f".join(" ".join(part.split()) for part in (document.text, *titles, *parts))
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def unseen_real_documents(
    documents: Iterable[Document], fitted_on: Collection[str], lost: list[DroppedDocument]
) -> Iterator[Document]:
    """Yield real documents whose text was not used for fitting, each text once; add the other documents to `lost`."""
    earlier: set[str] = set()
    for document in documents:
        mark = content_fingerprint(document)
        if mark in fitted_on or mark in earlier:
            lost.append(DroppedDocument(document.id, FITTED_ON_REASON if mark in fitted_on else DUPLICATE_REASON))
        else:
            earlier.add(mark)
            yield document


def exclude_copies(
    documents: Iterable[Document], fitted_on: Collection[str], lost: list[DroppedDocument]
) -> Iterator[Document]:
    """Yield generated documents that do not copy a text used for fitting; add copies to `lost`."""
    for document in documents:
        if fitted_on and content_fingerprint(document) in fitted_on:
            lost.append(DroppedDocument(document.id, COPY_REASON))
        else:
            yield document


def fit_critic(
    critic: str | type[Critic], documents: Sequence[Document], seed: int, options: Mapping[str, object]
) -> Critic:
    """Check the options and fit a critic on documents."""
    kind = critic_class(critic) if isinstance(critic, str) else critic
    checked = parse_fit_options(kind.fit, options, kind.name)
    if len(documents) < 2:
        raise FinecombError(
            f"the {kind.name} critic requires at least two real documents for fitting, found {len(documents)}"
        )
    model = kind.fit(documents, np.random.default_rng(seed), **checked)
    object.__setattr__(
        model, "fitted_on", frozenset(map(content_fingerprint, documents))
    )  # critics may be frozen dataclasses
    return model


def score_real_and_systems(
    critic: Critic,
    real: Iterable[Document],
    systems: Mapping[str, Iterable[Document]],
    statistic: Statistic | None = None,
    cluster: str = "",
    spread: Executor | None = None,
) -> Criticism:
    """Score real documents and each system, reading each document once.

    Real documents whose text was used for fitting, and duplicates, are excluded. Generated documents that copy a
    fitting text are excluded and reported as copies.
    """
    lost: list[DroppedDocument] = []
    scores = _score_with_progress(
        critic, unseen_real_documents(real, critic.fitted_on, lost), "real", statistic, cluster, spread=spread
    )
    real_scores = replace(scores, dropped=scores.dropped + tuple(lost))
    if lost and not real_scores.ids:
        if scores.dropped:
            first = scores.dropped[0]
            raise FinecombError(
                f"no real document can be scored: {len(lost)} were used for fitting or are duplicates, and "
                f"{len(scores.dropped)} cannot be read by the critic (e.g. {first.id!r}: {first.why}); add other real "
                "documents"
            )
        raise FinecombError(
            f"all {len(lost)} real documents, e.g. {lost[0].id!r}, were used for fitting; add real documents that the "
            "critic was not fitted on"
        )
    return Criticism(
        critic,
        real_scores,
        {name: score_generated_documents(critic, systems[name], name, statistic, cluster, spread) for name in systems},
    )


def score_generated_documents(
    critic: Critic,
    documents: Iterable[Document],
    name: str,
    statistic: Statistic | None,
    cluster: str = "",
    spread: Executor | None = None,
) -> CriticScores:
    """Score generated documents; copies of fitting texts are listed in `dropped`."""
    lost: list[DroppedDocument] = []
    total = len(documents) if isinstance(documents, Sequence) else None
    scores = _score_with_progress(
        critic, exclude_copies(documents, critic.fitted_on, lost), name, statistic, cluster, total, spread
    )
    return replace(scores, dropped=scores.dropped + tuple(lost))


def _score_with_progress(
    critic: Critic,
    documents: Iterable[Document],
    name: str,
    statistic: Statistic | None,
    cluster: str,
    total: int | None = None,
    spread: Executor | None = None,
) -> CriticScores:
    return score_documents(
        critic, track_progress(documents, f"{critic.name} critic: {name}", total), statistic, cluster, spread
    )


def scores_by_system(
    critic: Critic,
    documents: Iterable[Document],
    name: str,
    statistic: Statistic | None,
    cluster: str = "",
    spread: Executor | None = None,
) -> dict[str, CriticScores]:
    """Return the scores by system for a stream of documents whose system is given by a meta field."""
    system: dict[str, str] = {}
    generated = score_generated_documents(
        critic, _record_systems(documents, name, system), "generated", statistic, cluster, spread
    )
    return {
        system_name: generated.select({id for id, other in system.items() if other == system_name})
        for system_name in sorted(set(system.values()))
    }


def _record_systems(documents: Iterable[Document], name: str, system: dict[str, str]) -> Iterator[Document]:
    """Yield the documents and record the system of each by its ID."""
    for document in documents:
        if document.id in system:
            raise FinecombError(f"two generated documents have the ID {document.id!r}; give each document a unique ID")
        if name not in document.meta:
            raise FinecombError(
                f"generated document {document.id!r} has no meta field {name!r} to name its system; add it, or use "
                f"another field with {param('by')}"
            )
        system[document.id] = str(document.meta[name])
        yield document
