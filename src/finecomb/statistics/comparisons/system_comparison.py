"""Pairwise comparison of systems by any statistic computed per document."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.frames import json_entry, meta_entry
from finecomb.core.options import reject_inapplicable_parameters
from finecomb.core.results import Finding, Findings, Signature
from finecomb.core.study import Study
from finecomb.engine.partitions import Executor, ProgressWatcher
from finecomb.statistics.comparisons.system_pairs import (
    Pairing,
    SystemComparisonTask,
    SystemPair,
    run_pair_comparisons,
    split_into_pairs,
)
from finecomb.statistics.inference.clusters import find_clusters
from finecomb.statistics.inference.permutation_tests import (
    Correction,
    adjust_p_values,
    difference_contributions,
    max_t_adjustment,
)
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES, MeasureOptions
from finecomb.statistics.measures.numeric_answers import numeric_answer_values
from finecomb.statistics.measures.unit_grid import OverlapMode, build_annotation_matrix
from finecomb.statistics.selection.view import ANY_LABEL, View, as_view

AnnotationStatistic = Callable[[View], pl.DataFrame]
"""Function that returns one row per annotation with a value: columns `annotation`, `document` and `value`.

The value of a document is the mean over its annotations."""


def measure_annotations(view: View, name: str, tokens: str = "words", overlap: OverlapMode = "add") -> pl.DataFrame:
    """Return a measure of `finecomb measure` for each annotation, computed over all its marks."""
    measure, reading = ANNOTATION_MEASURES[name], build_annotation_matrix(view, tokens=tokens)
    amounts = measure.amounts(reading, MeasureOptions(tokens=tokens, overlap=overlap))
    top, bottom = amounts.top[-1], amounts.bottom[-1]
    lacking = 0 if amounts.lacking is None else int(amounts.lacking[-1].sum())
    if measure.strict and lacking:
        raise FinecombError(f"{lacking} marks have no {measure.needs}; exclude their labels or compare counts")
    defined = (bottom > 0) & (True if amounts.counts is None else amounts.counts)
    return reading.rows.select("annotation", "document", value=pl.Series(ratio_or_nan(top, bottom))).filter(
        pl.Series(defined)
    )


def resolve_statistic(
    statistic: str | AnnotationStatistic, tokens: str = "words", overlap: OverlapMode = "add"
) -> tuple[str, AnnotationStatistic]:
    """Return the name and function of a statistic, given by name (e.g. `answer:rating`) or as a function."""
    if not isinstance(statistic, str):
        return getattr(statistic, "__name__", "own"), statistic
    kind, _, question = statistic.partition(":")
    if kind == "answer" and question:
        return statistic, functools.partial(numeric_answer_values, question=question)
    # `fraction` is a share of all marks and has no value per annotation.
    names = [name for name in ANNOTATION_MEASURES if name != "fraction"]
    if statistic not in names:
        near = did_you_mean(statistic, [*names, "answer:NAME"])
        raise FinecombError(f"unknown document statistic {statistic!r}{near}")
    return statistic, functools.partial(measure_annotations, name=statistic, tokens=tokens, overlap=overlap)


def statistic_per_annotation(view: View, statistic: str | AnnotationStatistic, label: str = ANY_LABEL) -> pl.DataFrame:
    """Return a statistic of one label as a table: annotation, document, annotator and value."""
    values = resolve_statistic(statistic)[1](restrict_to_label(view, label))
    who = view.study.annotations.select("annotator", annotation="id")
    return values.join(who, on="annotation", how="left", maintain_order="left")


def compare_systems_pairwise(
    study: Study | View,
    by: str = "model",
    statistic: str | AnnotationStatistic = "coverage",
    labels: Sequence[str] = (ANY_LABEL,),
    pairing: Pairing = "auto",
    key: str = "",
    correction: Correction = "max-t",
    tokens: str = "words",
    overlap: OverlapMode = "add",
    cluster: str = "",
    draws: int = 10_000,
    seed: int = 0,
    spread: Executor | None = None,
    watch: ProgressWatcher | None = None,
) -> Findings:
    """Compare each pair of systems: difference of means over documents, interval, p, and p corrected over all rows.

    `statistic` is the name of a measure (coverage, count, rate-1000, ...), `answer:NAME`, or a function of a view. The
    value of a document is the mean over its annotations, without undefined values.

    Systems are the values of `by`, a document meta field or a field of annotators. Documents are paired by `key`, a
    document meta field (default: `prompt_id`, otherwise the text of the context `prompt`, `source` or `headline`). If
    systems share documents, e.g. with `by="condition"`, each document is paired with itself. Documents of one system
    with the same key are averaged. With `pairing="auto"`, pairs and unmatched documents are combined with weights by
    their variances. Clusters of documents are permuted as a whole, see `find_clusters`. The result is NaN with fewer
    than two clusters or pairs. Each comparison has its own random numbers, and `spread` determines where it runs.

    With `correction="max-t"`, corrected p-values and the columns `simultaneous_low` and `simultaneous_high` come from
    the distribution of the largest t statistic over all rows.
    """
    if pairing not in ("auto", "yes", "no"):
        raise FinecombError(f"pairing must be auto, yes or no, found {pairing!r}")
    view = as_view(study)
    name, per_annotation = resolve_statistic(statistic, tokens, overlap)
    _reject_unused_options(name, {"tokens": (tokens, "words"), "overlap": (overlap, "add")})
    parts = [(str(group[by]), part) for group, part in view.split_by_columns([by]) if group[by] is not None]
    if len(parts) < 2:
        systems = f"only {parts[0][0]!r}" if parts else "no values"
        raise FinecombError(f"a comparison requires at least two systems; {by} has {systems}")
    clusters = find_clusters(view.study.documents, cluster)
    # A document without a shared key is its own cluster, named by its ID
    names = view.study.documents["id"].to_list()
    first = {position: names[at] for at, position in reversed(list(enumerate(clusters.positions.tolist())))}
    cluster_names = pl.Series([first[position] for position in clusters.positions.tolist()], dtype=pl.String)
    keys = _document_pairing_keys(view, parts, key).with_columns(cluster=cluster_names)
    uses = ANNOTATION_MEASURES[name].uses if name in ANNOTATION_MEASURES else ()
    comparisons: list[SystemPair] = []
    for label in labels:
        values = {}
        for system, part in parts:
            rows = per_annotation(restrict_to_label(part, label))
            defined = rows.filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
            means = defined.group_by("document", maintain_order=True).agg(pl.col("value").cast(pl.Float64).mean())
            values[system] = means.join(keys, on="document", how="left", maintain_order="left")
        for a, b in itertools.combinations(values, 2):
            signature = Signature.from_fields(
                statistic=f"compare:{name}", label=label, by=by, correction=correction, pairing=pairing,
                key=key or None, tokens=tokens if "tokens" in uses else None,
                overlap=overlap if "overlap" in uses else None, **view.fields,
                annotators=view.study.annotations["annotator"].n_unique(), documents=len(view.study.documents),
                **clusters.signature_fields, draws=draws, seed=seed,
            )  # fmt: skip
            columns: dict[str, object] = {"measure": name, "label": label, "a": a, "b": b}
            comparisons.append(SystemPair(columns, values[a], values[b], signature))
    work = SystemComparisonTask(pairing, draws, seed)
    results = list(run_pair_comparisons(comparisons, work, spread or Executor(), watch))
    findings = [finding for finding, _ in results]
    if correction == "max-t":
        errors = np.array([error for _, error in results], dtype=np.float64)
        findings = _add_simultaneous_tests(comparisons, findings, errors, work)
    else:
        findings = add_adjusted_p(findings, correction)
    return Findings(findings, clusters.notes)


def _add_simultaneous_tests(
    pairs: Sequence[SystemPair], findings: Sequence[Finding], errors: NDArray[np.float64], work: SystemComparisonTask
) -> list[Finding]:
    """Return the findings with p-values and intervals that hold for all of them together, by single-step max-t."""
    names: dict[str, int] = {}
    columns: list[dict[int, float]] = []
    for pair in pairs:
        parts = split_into_pairs(pair.a, pair.b, work.pairing)
        contributions = difference_contributions(parts.pairs, parts.first, parts.second)
        column: dict[int, float] = {}
        for group, values in zip((parts.pair_names, parts.first_names, parts.second_names), contributions, strict=True):
            for name, value in zip(group, values.tolist(), strict=True):
                at = names.setdefault(name, len(names))
                column[at] = column.get(at, 0.0) + value
        columns.append(column)
    table = np.zeros((len(names), len(pairs)))
    for at, column in enumerate(columns):
        table[list(column), at] = list(column.values())
    values = np.array([finding.estimate.value for finding in findings])
    statistics = ratio_or_nan(values, np.nan_to_num(errors))
    adjusted = max_t_adjustment(table, statistics, work.draws, np.random.default_rng(work.seed))
    is_single = int(np.isfinite(adjusted.p).sum()) <= 1
    result = []
    for finding, p_joint, error in zip(findings, adjusted.p, errors, strict=True):
        p, estimate = float(str(finding.columns["p"])), finding.estimate
        low, high = (None if math.isnan(limit) else limit for limit in (estimate.low, estimate.high))
        if not is_single and low is not None and math.isfinite(adjusted.critical * error):
            # at least as wide as the row's own interval, so that the two never contradict each other
            low = float(np.fmin(estimate.low, estimate.value - adjusted.critical * error))
            high = float(np.fmax(estimate.high, estimate.value + adjusted.critical * error))
        corrected = p if is_single or math.isnan(p_joint) else max(p, float(p_joint))
        more = {"p_adjusted": corrected, "simultaneous_low": low, "simultaneous_high": high}
        result.append(replace(finding, columns={**finding.columns, **more}))
    return result


def _reject_unused_options(name: str, options: Mapping[str, tuple[str, str]]) -> None:
    """Raise an error for an option that the statistic does not use. `options` holds each value and its default."""
    uses = ANNOTATION_MEASURES[name].uses if name in ANNOTATION_MEASURES else ()
    for option, (value, default) in options.items():
        if value != default and option not in uses:
            reject_inapplicable_parameters(
                [option], [name], {other: row.uses for other, row in ANNOTATION_MEASURES.items()}
            )


def add_adjusted_p(rows: Sequence[Finding], correction: Correction) -> list[Finding]:
    """Return the findings with the column `p_adjusted`, corrected for the number of findings."""
    cells = [row.columns.get("p") for row in rows]
    p = np.array([cell if isinstance(cell, int | float) else math.nan for cell in cells], dtype=np.float64)
    return [
        replace(row, columns={**row.columns, "p_adjusted": float(p_adjusted)})
        for row, p_adjusted in zip(rows, adjust_p_values(p, correction), strict=True)
    ]


def restrict_to_label(whole: View, label: str) -> View:
    """Return the view with only the marks of one label; `any` keeps all."""
    if label == ANY_LABEL:
        return whole
    if label not in whole.categories:
        raise FinecombError(f"unknown label {label!r}{did_you_mean(label, whole.categories)}")
    return replace(whole, study=replace(whole.study, marks=whole.study.marks.filter(pl.col("label") == label)))


def pairing_keys(view: View, by: str, key: str = "") -> pl.DataFrame:
    """Return the columns document and key. Documents with equal keys are paired, as in `compare_systems_pairwise`."""
    parts = [(str(group[by]), part) for group, part in view.split_by_columns([by]) if group[by] is not None]
    return _document_pairing_keys(view, parts, key)


def _document_pairing_keys(view: View, parts: Iterable[tuple[str, View]], key: str) -> pl.DataFrame:
    """Return the columns document and key, with null for documents without a key."""
    texts = view.study.documents
    shared = pl.concat([part.study.documents["id"] for _, part in parts]).is_duplicated().any()
    if shared and not key:
        return texts.select(document="id", key="id")
    if key:
        keys = texts.select(pl.col("id").alias("document"), meta_entry(key).alias("key"))
        if keys["key"].null_count() == len(keys):
            raise FinecombError(f"no document has the meta field {key!r} to pair by")
        return keys
    inputs = [json_entry("context", name) for name in ("prompt", "source", "headline")]
    return texts.select(pl.col("id").alias("document"), key=pl.coalesce(meta_entry("prompt_id"), *inputs))
