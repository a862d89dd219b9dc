"""Correlation of scalar metrics with human answers, overall and within systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy  # submodules load on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.frames import meta_entry
from finecomb.core.results import Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, resampled_positions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ScoredDocuments(NamedTuple):
    """Scores of one metric and of people for the same documents, each (draws, documents)."""

    metric: Floats
    human: Floats
    system: Ints


def pearson(rows: ScoredDocuments) -> Floats:
    """Compute Pearson's r per row; NaN where the metric or the human scores do not vary."""
    x, y = (side - side.mean(axis=-1, keepdims=True) for side in (rows.metric, rows.human))
    return _cosine(x, y)


def spearman(rows: ScoredDocuments) -> Floats:
    """Compute Spearman's rank correlation per row; ties share their mean rank."""
    ranks = [scipy.stats.rankdata(side, axis=-1).astype(np.float64) for side in (rows.metric, rows.human)]
    return pearson(ScoredDocuments(ranks[0], ranks[1], rows.system))


def partial_correlation(rows: ScoredDocuments) -> Floats:
    """Compute the partial correlation given the system: Pearson's r of the deviations from each system's mean."""
    return _cosine(*(_centre_by_system(side, rows.system) for side in (rows.metric, rows.human)))


def _cosine(x: Floats, y: Floats) -> Floats:
    spread = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    return ratio_or_nan((x * y).sum(axis=-1), np.where(spread > 1e-12, spread, 0.0))


def _centre_by_system(values: Floats, system: Ints) -> Floats:
    """Subtract from each value the mean of its system within the same row."""
    draws, systems = len(values), int(system.max(initial=0)) + 1
    cell = (system + systems * np.arange(draws)[:, None]).ravel()
    counts = np.bincount(cell, minlength=draws * systems)
    sums = np.bincount(cell, weights=values.ravel(), minlength=draws * systems)
    means: Floats = (sums / np.maximum(counts, 1))[cell].reshape(values.shape)
    return values - means


CORRELATION_BY_NAME: dict[str, Callable[[ScoredDocuments], Floats]] = {
    "pearson": pearson,
    "spearman": spearman,
    "partial": partial_correlation,
}


def metric_correlations(
    study: Study, question: str, given: str = "model", draws: int = 1000, seed: int = 0
) -> list[Finding]:
    """Compute Pearson, Spearman and partial correlation of every scalar metric with the answers to `question`.

    A metric is an annotator of kind detector whose annotations answer `score`. Human answers about a document are
    averaged. Documents without a score or a human answer are excluded (column n). Intervals resample documents. The
    result is NaN with fewer than three documents, or if the metric or the answers do not vary. Pagnoni et al. (2021)
    use the partial correlation for FRANK.
    """
    human, scores = _numeric_answers(study, question), _numeric_answers(study, "score")
    if human.is_empty():
        names = study.answers.filter(pl.col("of") == "annotation")["question"].unique().sort().to_list()
        raise FinecombError(f"question {question!r} has no numeric answers{did_you_mean(question, names)}")
    means = human.group_by("document").agg(human=pl.col("number").mean())
    systems = study.documents.select(document="id", system=meta_entry(given).fill_null(""))
    rows = scores.join(means, on="document").join(systems, on="document")
    return [
        finding
        for (name,), scored in rows.partition_by("annotator", as_dict=True, maintain_order=True).items()
        for finding in _metric_findings(str(name), scored, question, given, draws, seed)
    ]


def _numeric_answers(study: Study, question: str) -> pl.DataFrame:
    answers = study.submitted_work().answers
    return answers.filter(
        (pl.col("of") == "annotation") & (pl.col("question") == question) & pl.col("number").is_not_null()
    )


def _metric_findings(
    name: str, scored: pl.DataFrame, question: str, given: str, draws: int, seed: int
) -> Iterator[Finding]:
    n = len(scored)
    system = scored["system"].rank("dense").to_numpy().astype(np.int64) - 1
    observed = ScoredDocuments(scored["number"].to_numpy()[None], scored["human"].to_numpy()[None], system[None])
    positions = resampled_positions(n, draws, np.random.default_rng(seed))
    resampled = ScoredDocuments(*(values[0][positions] for values in observed))
    for statistic, correlation in CORRELATION_BY_NAME.items():
        signature = Signature.from_fields(
            statistic=f"metric:{statistic}", question=question, given=given if statistic == "partial" else None,
            documents=n, draws=draws, seed=seed,
        )  # fmt: skip
        value = float(correlation(observed)[0]) if n >= 3 else np.nan
        columns = {"measure": statistic, "metric": name, "n": n}
        within = " within systems" if statistic == "partial" else ""
        why = "fewer than three documents" if n < 3 else f"the metric or the answers do not vary{within}"
        values = correlation(resampled) if len(positions) and not np.isnan(value) else np.zeros(0)
        yield Finding(columns, estimate_with_interval(value, values, signature, why))
