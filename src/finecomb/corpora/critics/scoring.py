"""T(x) of many documents, spread out: batches of documents go to workers, and values come back in their order."""

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
from finecomb.core.errors import FinecombError, shorten
from finecomb.core.records import Document
from finecomb.corpora.critics.base import STATISTICS, Critic, CriticScores, DroppedDocument, Statistic
from finecomb.corpora.critics.posteriors import Floats, Posterior, Z
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.critics.storage import state_digest
from finecomb.corpora.critics.vocabulary import word_count
from finecomb.engine.partitions import Executor, Tables
from finecomb.version import __version__

_FAMILIARITY_POOL_SIZE, _FAMILIARITY_SAMPLE_SIZE = (
    1000,
    200,
)  # of the first documents that are scored, so many tell whether the critic knows their words
_FAILURE_PREFIX = "set aside: "
_COLUMNS = {
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
    """T(x) of every document; what cannot be projected or has no finite value is listed with its reason.

    `cluster` names the document meta, e.g. `prompt`, by which documents belong together; one that lacks it stands for
    itself. Documents are projected as `spread` says. It is an error if the critic breaks down at every document.
    """
    spread, scoring = spread or Executor(), DocumentScoring(critic, statistic or critic.statistic, cluster)
    run = spread.start_run(scoring, scoring.tables_for_lost_row, scoring.cache_key() if spread.is_resumable else "")
    first: list[Document] = []
    for _ in run.run_partitions(document_batches(_remember_first(documents, first), critic.batch)):
        pass
    table = run.table("scores").collect() if run.names else pl.DataFrame(schema=_COLUMNS)
    _raise_if_all_failed(table, critic)
    scored, unscored = table.filter(pl.col("problem").is_null()), table.filter(pl.col("problem").is_not_null())
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
        familiarity=_familiarity(critic, first, set(scored["id"].head(_FAMILIARITY_POOL_SIZE))),
    )


def _remember_first(documents: Iterable[Document], first: list[Document]) -> Iterator[Document]:
    """The same documents; the first thousand are noted on the way."""
    for document in documents:
        if len(first) < _FAMILIARITY_POOL_SIZE:
            first.append(document)
        yield document


def document_batches(documents: Iterable[Document], size: int) -> Iterator[pl.DataFrame]:
    """Documents as frames of `size` rows."""
    source = iter(documents)
    while batch := list(itertools.islice(source, size)):
        yield frames.build_frame(frames.DOCUMENTS, map(frames.document_row, batch))


def critic_identity(critic: Critic) -> str:
    """The same for critics that say the same; never the same for a critic without a state."""
    try:
        return state_digest(critic)
    except FinecombError:  # it cannot be saved, so a later run cannot tell that it is the same
        return uuid.uuid4().hex


def _familiarity(critic: Critic, documents: Sequence[Document], scored: set[str]) -> float:
    """The median share of words that the critic knows, of the first documents that have a score."""
    sample = itertools.islice((document for document in documents if document.id in scored), _FAMILIARITY_SAMPLE_SIZE)
    shares = [critic.familiarity(document) for document in sample]
    return float(np.median(shares)) if shares else math.nan


def _raise_if_all_failed(table: pl.DataFrame, critic: Critic) -> None:
    """Where the critic breaks down at every document, the fault is not in the documents."""
    if len(table) and (table["problem"].str.starts_with(_FAILURE_PREFIX).fill_null(False)).all():
        reason = table["problem"][0].removeprefix(_FAILURE_PREFIX)
        raise FinecombError(f"the {critic.name} critic failed at every document: {reason}")


@dataclass(frozen=True, slots=True)
class DocumentScoring:
    """A critic as work that can be sent to other processes."""

    critic: Critic
    statistic: Statistic
    cluster: str

    @property
    def uses_all_cores(self) -> bool:
        """As its critic."""
        return self.critic.uses_all_cores

    def cache_key(self) -> str:
        """All that a document's score depends on beside the document."""
        return "\x1f".join(["criticize", critic_identity(self.critic), self.statistic, self.cluster, __version__])

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """The scores of a batch; a document at which the critic breaks down is set aside with the reason."""
        documents = list(frames.iter_documents(rows))
        try:
            return _table([self._row(*pair) for pair in self.critic.project_all(documents)])
        except FinecombError:
            raise  # what a critic needs and does not have is no document's fault
        except Exception:  # whatever a critic may raise; each document alone tells which one it was
            return _table([self._score_single_document(document) for document in documents])

    def _score_single_document(self, document: Document) -> tuple[Any, ...]:
        try:
            ((_, posterior),) = self.critic.project_all([document])
            return self._row(document, posterior)
        except FinecombError:
            raise
        except Exception as error:  # set aside, so that one document does not keep the others from being scored
            return _problem_row(document.id, f"{_FAILURE_PREFIX}{type(error).__name__}: {shorten(str(error), 200)}")

    def _row(self, document: Document, posterior: Posterior | ProjectionError) -> tuple[Any, ...]:
        try:
            if isinstance(posterior, ProjectionError):
                raise posterior
            terms = _require_finite(STATISTICS[self.statistic](self.critic, posterior), self.statistic)
        except ProjectionError as error:
            return _problem_row(document.id, str(error))
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
        """The result for a document that no process survived."""
        return _table([_problem_row(row["id"][0], f"{_FAILURE_PREFIX}{reason}")])


def _problem_row(id: str, reason: str) -> tuple[Any, ...]:
    return id, reason, None, None, None, None, None


def _table(rows: Sequence[tuple[Any, ...]]) -> Tables:
    return {"scores": pl.DataFrame(rows, _COLUMNS, orient="row")}


def _require_finite(terms: Floats, statistic: Statistic) -> Floats:
    if np.isnan(terms).any():
        raise ProjectionError(f"its {statistic} is not a number: the critic's posterior does not define it")
    if np.isinf(terms).any():
        raise ProjectionError("a step has probability 0 under the prior; smooth it")
    return terms


# --- z as text ---------------------------------------------------------------------------------------------------


def point_to_json(z: Z) -> str:
    """A z as JSON from which `point_from_json` makes the same again, to the last bit.

    >>> point_from_json(point_to_json((("she", 1), "it")))
    (('she', 1), 'it')
    """
    return json.dumps(_to_json_value(z))


def point_from_json(text: str) -> Z:
    """The z of a text by `point_to_json`."""
    return _from_json_value(json.loads(text))


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
        f"a state of type {type(z).__name__} cannot be written down; a critic's z is made of strings, numbers, tuples, "
        "lists and arrays"
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
