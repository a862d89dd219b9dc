"""Corpora of texts: metrics under stress, critics of structure, and preparation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import Count, Names, PositiveInt, Values, given, public
from finecomb.api.progress import Progress, track
from finecomb.api.selection import select_part
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.options import join_names
from finecomb.corpora.stress import METRICS, Metric, corrupt_documents, run_stress_trial
from finecomb.corpora.stress.metric_sources import build_metric
from finecomb.corpora.stress.stress_trial import MetricFalls, check_corruptions, exclusion_notes
from finecomb.engine.options import PartitionOptions


@public
def stress(
    study: StudyLike,
    *,
    metric: Values = ("rouge1", "rouge2", "rougeL"),
    corruption: Names = (),
    where: Values = (),
    drop: Values = (),
    draws: Count = 1000,
    seed: int = 0,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> MetricFalls:
    """Damage texts in known ways and measure how far each metric falls.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to damage, with references for metrics that compare with them.
    metric : str or sequence of str, default ("rouge1", "rouge2", "rougeL")
        Metric, such as rougeL, chrf, bertscore:MODEL or detector:NAME; may be repeated.
        There are rouge1, rouge2, rougeL, bleu, chrf, bertscore:MODEL, perplexity:MODEL, mauve:MODEL, detector:NAME,
        critic:FOLDER, command:COMMAND and code:MODULE:FUNCTION. A command reads one JSON object per line (`text`,
        `references`) and writes one number per line.
    corruption : str or sequence of str
        Kinds of damage, comma-separated (default: all, and another human text as ceiling).
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the damage and of the resamples.
    engine : str, default "local"
        Where scores are computed: local processes, ray, or ray:ADDRESS of a cluster.
    workers : int, optional
        Number of processes; changes no number.
    partitions : path, optional
        Folder for finished parts, so that an interrupted run resumes.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the metrics done and all metrics.

    Returns
    -------
    MetricFalls
        One row per metric and corruption; ``.ranks`` has the rank correlation of damage and fall per metric.

    Raises
    ------
    ParameterError
        If a metric or corruption is unknown, or an option does not apply to the metrics.

    Examples
    --------
    >>> import finecomb as fc
    >>> from finecomb.api.corpora import stress
    >>> falls = stress(fc.demo(), metric="detector:rules", corruption="repeated", draws=0)
    >>> falls.find(metric="detector:rules").value > 0  # it notices sentences that are repeated
    True
    """
    chosen = given(stress, locals())
    whole = as_study(study)
    source = whole.origin or "the study"
    part = select_part(whole, as_values(where), as_values(drop))
    documents = [document for document in part.iter_documents() if document.text.strip()]
    if not documents:
        raise FinecombError(f"{source}: has no texts to damage")
    metrics = [build_metric(name) for name in as_values(metric)]
    _refuse_engine_of_metrics(chosen, metrics)
    corruptions = check_corruptions(as_names(corruption))
    pairs = corrupt_documents(documents, corruptions, seed)
    if not pairs:
        raise FinecombError(f"{source}: no text can be damaged in this way; `finecomb stress --help` lists the kinds")
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor() as executor:
        table = run_stress_trial(
            pairs, metrics, draws, seed, executor, lambda items: track(items, progress, "metrics", len(items))
        )
    notes = exclusion_notes(documents, pairs, corruptions, metrics)
    return MetricFalls(table, notes, executor.reused_row_count)


_ENGINE = ("engine", "workers", "partitions")


def _refuse_engine_of_metrics(chosen: Iterable[str], metrics: Sequence[Metric]) -> None:
    """Refuse options of the engine where every metric has to see all texts at once."""
    if any(metric.by_text for metric in metrics):
        return
    for name in _ENGINE:
        if name in chosen:
            raise ParameterError(
                f"{param(name)} does not apply to {join_names(metric.name for metric in metrics)}; "
                f"it applies to {join_names(METRICS)}",
                parameter=name,
            )
