"""Parallel scoring of documents: workers score batches, and values are returned in document order."""

from __future__ import annotations

import itertools
import json
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from finecomb.core import frames
from finecomb.core.errors import FinecombError, format_as_flag, shorten
from finecomb.core.guarded_json import load_json
from finecomb.core.records import Document
from finecomb.corpora.critics.base import STATISTICS, Critic, CriticScores, DroppedDocument, Statistic
from finecomb.corpora.critics.posteriors import Posterior, Z
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.critics.storage import state_digest
from finecomb.corpora.critics.vocabulary import word_count
from finecomb.engine.partitions import Executor, Tables
from finecomb.version import __version__

_FAMILIARITY_POOL_SIZE, _FAMILIARITY_SAMPLE_SIZE = (
    1000,
    200,
)  # for the share of known words: number of documents to sample from, and sample size
_FAILURE_PREFIX = "set aside: "  # separates failures of the critic from documents that it cannot project
_SCORE_COLUMNS = {
    "id": pl.String,
    "problem": pl.String,
    "value": pl.Float64,
    "steps": pl.Int64,
    "length": pl.Int64,
    "point": pl.String,
    "cluster": pl.String,
}


def score_documents(
    critic: Critic,
    documents: Iterable[Document],
    statistic: Statistic | None = None,
    cluster: str = "",
    spread: Executor | None = None,
) -> CriticScores:
    """Score documents by T(x); those that cannot be projected or have no finite value are listed with reasons.

    `cluster` names a meta field, e.g. `prompt`, that groups documents; a document without it is its own cluster. Raises
    an error if the critic fails on every document.
    """
    spread, scoring = spread or Executor(), DocumentScoring(critic, statistic or critic.statistic, cluster)
    run = spread.start_run(scoring, scoring.tables_for_lost_row, scoring.cache_key() if spread.is_resumable else "")
    first: list[Document] = []
    for _ in run.run_partitions(document_batches(_keep_first_documents(documents, first), critic.batch)):
        pass
    table = run.result_table("scores").collect() if run.names else pl.DataFrame(schema=_SCORE_COLUMNS)
    # Raise an error if the critic fails on every document, since the cause is then not in the documents
    if len(table) and (table["problem"].str.starts_with(_FAILURE_PREFIX).fill_null(False)).all():
        reason = table["problem"][0].removeprefix(_FAILURE_PREFIX)
        raise FinecombError(f"the {critic.name} critic failed on every document: {reason}")
    scored, unscored = table.filter(pl.col("problem").is_null()), table.filter(pl.col("problem").is_not_null())
    scored_ids = set(scored["id"].head(_FAMILIARITY_POOL_SIZE))
    sample = [document for document in first if document.id in scored_ids][:_FAMILIARITY_SAMPLE_SIZE]
    known_shares = [critic.known_word_share(document) for document in sample]
    return CriticScores(
        critic=critic.name,
        statistic=scoring.statistic,
        discrete=critic.discrete,
        ids=tuple(scored["id"]),
        values=scored["value"].to_numpy().copy(),
        steps=scored["steps"].to_numpy().copy(),
        lengths=scored["length"].to_numpy().copy(),
        points=tuple(map(point_from_json, scored["point"])),
        dropped=tuple(DroppedDocument(*row) for row in unscored.select("id", "problem").iter_rows()),
        clusters=tuple(scored["cluster"]) if cluster else (),
        familiarity=float(np.median(known_shares)) if known_shares else math.nan,
    )


def _keep_first_documents(documents: Iterable[Document], first: list[Document]) -> Iterator[Document]:
    """Yield all documents, and append the first few to the list `first`."""
    for document in documents:
        if len(first) < _FAMILIARITY_POOL_SIZE:
            first.append(document)
        yield document


def document_batches(documents: Iterable[Document], size: int) -> Iterator[pl.DataFrame]:
    """Yield documents as frames of `size` rows."""
    source = iter(documents)
    while batch := list(itertools.islice(source, size)):
        yield frames.build_frame(frames.DOCUMENT_COLUMNS, map(frames.document_row, batch))


def critic_identity(critic: Critic) -> str:
    """Return a digest that is the same for equal critics; a critic that cannot be saved gets a unique one."""
    try:
        return state_digest(critic)
    except FinecombError:  # a later run cannot recognise a critic that cannot be saved
        return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class DocumentScoring:
    """Task for worker processes: score documents with a critic."""

    critic: Critic
    statistic: Statistic
    cluster: str

    @property
    def uses_all_cores(self) -> bool:
        """True if the critic itself uses all cores."""
        return self.critic.uses_all_cores

    def cache_key(self) -> str:
        """Return a cache key for everything that a document's score depends on, except the document itself."""
        return "\x1f".join(["criticize", critic_identity(self.critic), self.statistic, self.cluster, __version__])

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """Score a batch; a document that the critic fails on is recorded with the reason."""
        documents = list(frames.iter_documents(rows))
        try:
            return _score_table([self._score_row(*pair) for pair in self.critic.project_all(documents)])
        except FinecombError:
            raise  # a missing requirement of the critic is not the fault of a document
        except Exception:  # critics can raise anything; scoring documents one by one shows which one failed
            scored: list[tuple[Any, ...]] = []
            for document in documents:
                try:
                    ((_, posterior),) = self.critic.project_all([document])
                    scored.append(self._score_row(document, posterior))
                except FinecombError:
                    raise
                except Exception as error:  # record the failure so that the other documents are still scored
                    reason = f"{_FAILURE_PREFIX}{type(error).__name__}: {shorten(str(error), 200)}"
                    scored.append(_problem_row(document.id, reason))
            return _score_table(scored)

    def _score_row(self, document: Document, posterior: Posterior | ProjectionError) -> tuple[Any, ...]:
        try:
            if isinstance(posterior, ProjectionError):
                raise posterior
            terms = STATISTICS[self.statistic](self.critic, posterior)
            if np.isnan(terms).any():
                raise ProjectionError(f"the {self.statistic} is undefined (NaN) under the critic's posterior")
            if np.isinf(terms).any():
                raise ProjectionError("a step has probability 0 under the prior; use smoothing")
        except ProjectionError as error:
            # reasons are data and must not depend on the client
            return _problem_row(document.id, error.format_message(format_as_flag))
        length = len(terms) if self.critic.discrete else word_count(document.text)
        group = str(document.meta.get(self.cluster, f"document {document.id}")) if self.cluster else None
        return (
            document.id,
            None,
            float(terms.sum()),
            len(terms),
            length,
            point_to_json(posterior.point_estimate()),
            group,
        )

    def tables_for_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """Return the result for a document whose worker process died."""
        return _score_table([_problem_row(row["id"][0], f"{_FAILURE_PREFIX}{reason}")])


def _problem_row(id: str, reason: str) -> tuple[Any, ...]:
    return id, reason, None, None, None, None, None


def _score_table(rows: Sequence[tuple[Any, ...]]) -> Tables:
    return {"scores": pl.DataFrame(rows, _SCORE_COLUMNS, orient="row")}


# --- z as JSON ---------------------------------------------------------------------------------------------------


def point_to_json(z: Z) -> str:
    """Serialise z as JSON, from which `point_from_json` restores it exactly.

    >>> point_from_json(point_to_json((("she", 1), "it")))
    (('she', 1), 'it')
    """
    return json.dumps(_to_json_value(z))


def point_from_json(text: str) -> Z:
    """Restore z from the output of `point_to_json`."""
    return _from_json_value(load_json(text))


def _to_json_value(z: Any) -> Any:
    match z:
        case np.ndarray():
            return {"array": z.tolist(), "type": z.dtype.str}
        case np.generic():
            return z.item()
        case tuple():
            return {"tuple": [_to_json_value(part) for part in z]}
        case list():
            return [_to_json_value(part) for part in z]
        case str() | int() | float() | None:
            return z
    raise FinecombError(
        f"a state of type {type(z).__name__} cannot be saved; z must consist of strings, numbers, tuples, lists and "
        "arrays"
    )


def _from_json_value(value: Any) -> Any:
    match value:
        case {"array": items, "type": kind}:
            return np.array(items, dtype=np.dtype(kind))
        case {"tuple": items}:
            return tuple(map(_from_json_value, items))
        case list():
            return [_from_json_value(item) for item in value]
    return value
