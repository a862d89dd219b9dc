"""Scoring of many candidates, spread out: a text that a metric fails at is set aside, the others have their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, shorten
from finecomb.core.records import Document
from finecomb.corpora.stress.stress_metrics import Candidate, Floats, Metric
from finecomb.engine.partitions import Executor, Tables, rows_per_partition
from finecomb.version import __version__

_PARTITION_STEP = 64  # candidates of a partition, most of which are little work
_CANDIDATE_COLUMNS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "text": pl.String,
    "references": pl.List(pl.String),
    "document": pl.String,
}
_SCORE_COLUMNS = {"score": pl.Float64, "problem": pl.String}


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """The numbers of candidates, and why some have none."""

    values: Floats
    """(candidates,); NaN where there is none."""
    failures: Mapping[int, str]
    """Reasons by the place of the candidate that the metric failed at."""


def score_candidates(metric: Metric, candidates: Sequence[Candidate], spread: Executor) -> CandidateScores:
    """Numbers of all candidates; those of a metric that must see all at once are not spread out.

    It is an error if the metric fails at every candidate.
    """
    if not metric.by_text or not candidates:
        return CandidateScores(metric_values(metric, candidates, len(candidates)), {})
    rows = pl.DataFrame(
        [_candidate_row(metric, candidate) for candidate in candidates], _CANDIDATE_COLUMNS, orient="row"
    )
    scoring = CandidateScoring(metric)
    run = spread.start_run(
        scoring, scoring.tables_for_lost_row, f"stress\x1f{metric.name}\x1f{metric.identity}\x1f{__version__}"
    )
    for _ in run.run_partitions(rows.iter_slices(rows_per_partition(len(rows), _PARTITION_STEP))):
        pass
    table = run.table("scores").collect()
    failures = {place: problem for place, problem in enumerate(table["problem"]) if problem is not None}
    if len(failures) == len(candidates):
        raise FinecombError(f"metric {metric.name}: failed: {failures[0]}")
    return CandidateScores(table["score"].to_numpy(), failures)


def _candidate_row(metric: Metric, candidate: Candidate) -> tuple[str, str, list[str], str | None]:
    document = candidate.document
    content = document.model_dump_json() if metric.needs_document else None
    return document.id, candidate.text, list(candidate.references), content


@dataclass(frozen=True, slots=True)
class CandidateScoring:
    """A metric as work that can be sent to other processes."""

    metric: Metric

    @property
    def uses_all_cores(self) -> bool:
        """As its metric."""
        return self.metric.uses_all_cores

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """A number for each candidate; one that the metric fails at is set aside with the reason."""
        try:
            values = metric_values(self.metric, [_candidate_from_row(row) for row in rows.iter_rows()], len(rows))
            return _table([(value, None) for value in values.tolist()])
        except FinecombError:
            raise  # what a metric needs and does not have is no text's fault
        except Exception:  # whatever a metric may raise; each text alone tells which one it was
            return _table([self._score_single_candidate(row) for row in rows.iter_rows()])

    def _score_single_candidate(self, row: tuple[str, str, list[str], str | None]) -> tuple[float | None, str | None]:
        try:
            return float(metric_values(self.metric, [_candidate_from_row(row)], 1)[0]), None
        except FinecombError:
            raise
        except Exception as error:  # set aside, so that one text does not keep the others from being scored
            return None, f"{type(error).__name__}: {shorten(str(error), 200)}"

    def tables_for_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """The result for a candidate that no process survived."""
        return _table([(None, reason)])


def _candidate_from_row(row: tuple[str, str, list[str], str | None]) -> Candidate:
    id, text, references, content = row
    document = Document(id=id, text=text) if content is None else Document.model_validate_json(content)
    return Candidate(text, tuple(references), document)


def _table(rows: Sequence[tuple[float | None, str | None]]) -> Tables:
    return {"scores": pl.DataFrame(rows, _SCORE_COLUMNS, orient="row")}


def metric_values(metric: Metric, candidates: Sequence[Candidate], count: int) -> Floats:
    """A metric's numbers, so many; others are an error, and so is whatever a metric of all texts at once raises."""
    try:
        values = np.array(metric.score(candidates), dtype=np.float64)
    except Exception as error:
        if metric.by_text or isinstance(error, FinecombError):
            raise
        raise FinecombError(f"metric {metric.name}: failed: {type(error).__name__}: {error}") from error
    if values.shape != (count,):
        raise FinecombError(f"metric {metric.name}: gave {values.size} numbers for {len(candidates)} texts")
    return values
