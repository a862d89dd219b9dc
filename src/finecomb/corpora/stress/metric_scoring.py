"""Parallel scoring of candidate texts. Texts that a metric fails on are recorded; the others keep their scores."""

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

_PARTITION_STEP = 64  # candidates per partition, large because most metrics are fast
_CANDIDATE_COLUMNS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "text": pl.String,
    "references": pl.List(pl.String),
    "document": pl.String,
}
_SCORE_COLUMNS = {"score": pl.Float64, "problem": pl.String}


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """Scores of candidates, and the reasons for missing scores."""

    values: Floats
    """Scores of shape (candidates,); NaN where missing."""
    failures: Mapping[int, str]
    """Reasons why the metric failed on candidates, by position of the candidate."""


def score_candidates(metric: Metric, candidates: Sequence[Candidate], spread: Executor) -> CandidateScores:
    """Score all candidates, in parallel unless the metric needs all candidates at once.

    Raises an error if the metric fails on every candidate.
    """
    if not metric.by_text or not candidates:
        return CandidateScores(metric_values(metric, candidates, len(candidates)), {})
    rows = pl.DataFrame(
        [
            (
                candidate.document.id,
                candidate.text,
                list(candidate.references),
                candidate.document.model_dump_json() if metric.needs_document else None,
            )
            for candidate in candidates
        ],
        _CANDIDATE_COLUMNS,
        orient="row",
    )
    scoring = CandidateScoring(metric)
    run = spread.start_run(
        scoring, scoring.tables_for_lost_row, f"stress\x1f{metric.name}\x1f{metric.identity}\x1f{__version__}"
    )
    for _ in run.run_partitions(rows.iter_slices(rows_per_partition(len(rows), _PARTITION_STEP))):
        pass
    table = run.result_table("scores").collect()
    failures = {position: problem for position, problem in enumerate(table["problem"]) if problem is not None}
    if len(failures) == len(candidates):
        raise FinecombError(f"metric {metric.name} failed on all {len(candidates)} texts, e.g. {failures[0]}")
    return CandidateScores(table["score"].to_numpy(), failures)


@dataclass(frozen=True, slots=True)
class CandidateScoring:
    """Task for worker processes: score candidates with a metric."""

    metric: Metric

    @property
    def uses_all_cores(self) -> bool:
        """True if the metric itself uses all cores."""
        return self.metric.uses_all_cores

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """Score each candidate; if the metric fails on one, record the reason."""
        try:
            values = metric_values(self.metric, [_candidate_from_row(row) for row in rows.iter_rows()], len(rows))
            return _table([(value, None) for value in values.tolist()])
        except FinecombError:
            raise  # a missing requirement of the metric is not the fault of a text
        except Exception:  # metrics can raise anything; scoring texts one by one shows which one failed
            scores: list[tuple[float | None, str | None]] = []
            for row in rows.iter_rows():
                try:
                    scores.append((float(metric_values(self.metric, [_candidate_from_row(row)], 1)[0]), None))
                except FinecombError:
                    raise
                except Exception as error:  # record the failure so that the other texts are still scored
                    scores.append((None, f"{type(error).__name__}: {shorten(str(error), 200)}"))
            return _table(scores)

    def tables_for_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """Return the result for a candidate whose worker process died."""
        return _table([(None, reason)])


def _candidate_from_row(row: tuple[str, str, list[str], str | None]) -> Candidate:
    id, text, references, content = row
    document = Document(id=id, text=text) if content is None else Document.model_validate_json(content)
    return Candidate(text, tuple(references), document)


def _table(rows: Sequence[tuple[float | None, str | None]]) -> Tables:
    return {"scores": pl.DataFrame(rows, _SCORE_COLUMNS, orient="row")}


def metric_values(metric: Metric, candidates: Sequence[Candidate], count: int) -> Floats:
    """Return the scores of a metric; raise an error if there are not `count` scores or a corpus metric fails."""
    try:
        values = np.array(metric.score(candidates), dtype=np.float64)
    except Exception as error:
        if metric.by_text or isinstance(error, FinecombError):
            raise
        raise FinecombError(f"metric {metric.name} failed: {type(error).__name__}: {error}") from error
    if values.shape != (count,):
        result = f"found {values.size}" if values.ndim == 1 else f"found an array of shape {values.shape}"
        raise FinecombError(f"metric {metric.name}: expected {count} numbers for {len(candidates)} texts, {result}")
    return values
