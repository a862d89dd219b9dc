"""Inter-annotator agreement by label, for all registered measures, with intervals over clusters of documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.options import build_options, reject_unknown_options
from finecomb.core.results import Finding, Findings, Signature
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement_options import ALLOWED_OPTION_VALUES, AgreementLevel, AgreeOptions
from finecomb.statistics.agreement.alpha import ALL_UNITS_MARKED_REASON
from finecomb.statistics.agreement.gamma.best_alignment import DEFAULT_WORK_UNITS
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.rating_sources import (
    RATING_SOURCES,
    ItemLabels,
    MeasureResult,
    RatingSource,
    build_rating_source,
    rating_source_type,
)
from finecomb.statistics.agreement.registry import AGREEMENT_MEASURES, MEASURE_FAMILIES, AgreementMeasure
from finecomb.statistics.inference.clusters import Clusters, find_clusters
from finecomb.statistics.inference.intervals import (
    Interval,
    IntervalSettings,
    count_reason,
    estimate_from_interval,
    percentile_of_draws,
    weighted_intervals,
)
from finecomb.statistics.inference.resampling import seeded_document_weights
from finecomb.statistics.measures.annotation_measures import split_comma_separated_names
from finecomb.statistics.selection.view import View, as_view, view

MAX_LEAVE_ONE_OUT_TEXTS = 1000
"""Maximum number of documents for which leave-one-out influence is computed."""


def agree(
    study: Study | View,
    measures: str | Sequence[str] = ("alpha", "two-agree"),
    level: AgreementLevel = "token",
    **options: Any,
) -> Findings:
    """Compute agreement measures for all marks together and for each label, per combination of the `by` columns.

    `options` are the fields of `AgreeOptions`; an option that applies to none of the measures or sources raises an
    error. Intervals are over clusters of documents; the notes describe the clusters.
    """
    names = resolve_measure_names(split_comma_separated_names(measures) if isinstance(measures, str) else measures)
    if "by" in options:
        options["by"] = tuple(split_comma_separated_names(options["by"]))
    choices = build_options(AgreeOptions, level=level, **options) if options else AgreeOptions(level=level)
    for name, allowed in ALLOWED_OPTION_VALUES.items():
        value = getattr(choices, name)
        if value not in allowed:
            raise FinecombError(f"unknown {name} {value!r}{did_you_mean(value, allowed)}")
    if options:
        _reject_unused_options(names, choices, options)
    chosen = view(study) if isinstance(study, Study) else study
    findings = (
        Finding({**columns, **finding.columns}, finding.estimate)
        for columns, part in (chosen.split_by_columns(choices.by) if choices.by else [({}, chosen)])
        for finding in _estimate_agreement(part, names, choices)
    )
    return Findings(findings, find_clusters(chosen.study.documents, choices.cluster).notes)


def _reject_unused_options(names: Sequence[str], choices: AgreeOptions, options: Mapping[str, Any]) -> None:
    """Raise an error for an option that applies neither to the requested measures nor to their source."""
    source = rating_source_type(choices)
    asked_for = {**{name: AGREEMENT_MEASURES[name].options for name in names}, source.noun: source.options_type}
    everything = {name: row.options for name, row in AGREEMENT_MEASURES.items()}
    reject_unknown_options(options, asked_for, everything | {kind.noun: kind.options_type for kind in RATING_SOURCES})
    if options.get("gamma", GammaSettings()) != GammaSettings() and not any(name.startswith("gamma") for name in names):
        raise FinecombError(f"gamma settings do not apply to {', '.join(names)}; omit them")


def resolve_measure_names(names: Sequence[str]) -> list[str]:
    """Expand names of measures and of families of measures to a list of measures without duplicates."""
    expanded: list[str] = []
    for name in names:
        if name not in MEASURE_FAMILIES and name not in AGREEMENT_MEASURES:
            near = did_you_mean(name, [*MEASURE_FAMILIES, *AGREEMENT_MEASURES])
            raise FinecombError(f"unknown agreement measure {name!r}{near}")
        expanded += MEASURE_FAMILIES.get(name, (name,))
    return list(dict.fromkeys(expanded))


def _estimate_agreement(view: View, names: Sequence[str], options: AgreeOptions) -> list[Finding]:
    source = build_rating_source(view, options)
    clusters = find_clusters(view.study.documents, options.cluster)
    findings: list[Finding] = []
    for name in names:
        measure = AGREEMENT_MEASURES[name]
        if not isinstance(source, measure.reads):
            able = " or ".join(kind.noun for kind in measure.reads)
            raise FinecombError(f"{name} requires {able}, found {source.noun}")
        result, intervals = _run_measure(source, measure, clusters)
        fields = {**_signature_fields(source, name, measure), **clusters.signature_fields}
        for row, columns in enumerate(result.columns):
            value, why = float(result.values[0, row]), ""
            if math.isnan(value):
                why = result.whys[row] if result.whys else _undefined_reason(source, measure, str(columns["label"]))
            unit = measure.unit or options.level
            signature = Signature.from_fields(statistic=name, unit=unit, **columns, **fields)
            is_drawn = measure.has_chance_error or intervals[row].method in ("bootstrap-t", "percentile")
            signature = signature.insert(draws=options.draws, seed=options.seed) if is_drawn else signature
            estimate = estimate_from_interval(value, intervals[row], signature, why)
            findings.append(Finding({"measure": name, "level": unit, **columns}, estimate))
    return findings


def _run_measure(
    source: RatingSource, measure: AgreementMeasure, clusters: Clusters
) -> tuple[MeasureResult, list[Interval]]:
    """Return the rows of a measure and their intervals."""
    options, study = source.options, np.ones((1, len(clusters.positions)))
    if measure.has_chance_error:  # the first draw is the study itself, without sampling error
        weights = seeded_document_weights(clusters.count, options.draws if clusters.count > 1 else 0, options.seed)
        result = measure.run(source, np.concatenate([study, clusters.expand_weights(weights)]))
        is_per_text = any("document" in columns for columns in result.columns)  # varies by chance agreement only
        reason = "" if is_per_text else count_reason(clusters.count, clusters.name)
        intervals = [
            percentile_of_draws(result.values[1:, row], clusters.count, reason) for row in range(len(result.columns))
        ]
        return replace(result, values=result.values[:1]), intervals
    result = measure.run(source, study)
    intervals = weighted_intervals(
        lambda weights: measure.run(source, weights).values,
        clusters,
        measure.kind,
        bounds=measure.bounds,
        settings=IntervalSettings(options.interval, options.draws, options.seed),
        value=result.values[0],
    )
    return result, intervals


def most_influential_text_by_label(study: Study | View, name: str = "alpha") -> dict[str, str]:
    """Return, for each label, the ID of the document whose removal changes agreement most, if any changes it.

    Each document is left out once, so the work is quadratic. The result is empty for more than
    `MAX_LEAVE_ONE_OUT_TEXTS` documents.
    """
    chosen = as_view(study)
    ids = chosen.study.documents["id"].to_list()
    if not 1 < len(ids) <= MAX_LEAVE_ONE_OUT_TEXTS:
        return {}
    weights = np.concatenate([np.ones((1, len(ids))), 1 - np.eye(len(ids))])
    result = AGREEMENT_MEASURES[name].run(build_rating_source(chosen, AgreeOptions(draws=0)), weights)
    changes = np.nan_to_num(np.abs(result.values[1:] - result.values[0]))
    return {
        str(columns["label"]): ids[int(changes[:, row].argmax())]
        for row, columns in enumerate(result.columns)
        if changes[:, row].max() > 0
    }


def _undefined_reason(source: RatingSource, measure: AgreementMeasure, label: str) -> str:
    study = source.view.study
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    people = {kinds.get(id) for id in study.annotations["annotator"].unique()}
    if measure.individuals and people == {"pooled"}:
        return "pooled votes do not identify the annotators"
    reason = source.undefined_reason(label)
    return measure.undefined if reason == ALL_UNITS_MARKED_REASON else reason


def _signature_fields(source: RatingSource, name: str, measure: AgreementMeasure) -> dict[str, object]:
    """Return the signature fields that follow those of the row, with None for fields that do not apply."""
    options, study = source.options, source.view.study
    items = options.level == "item"
    pooled = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    has_pooled = study.annotations["annotator"].is_in(pooled.implode()).any()
    return {
        "question": options.question or None,
        "tokens": options.tokens if options.level == "token" and not measure.unit else None,
        "align": options.align if items else None,
        "convention": options.convention if isinstance(source, ItemLabels) else None,
        "overlap": options.overlap if name.startswith("f1") else None,
        "rest": options.rest if name.startswith("one-vs-rest") else None,
        # on sentences and larger units, pooled votes are summed over marks, up to the number of annotators
        "pooled": "summed-votes" if has_pooled and options.level in ("sentence", "segment", "document") else None,
        **(
            _gamma_signature_fields(source)
            if name.startswith("gamma")
            else {"work": DEFAULT_WORK_UNITS if items and options.align == "gamma" else None}
        ),
        **source.view.fields,
        "annotators": study.annotations["annotator"].n_unique(),
        "documents": len(study.documents),
    }


def _gamma_signature_fields(source: RatingSource) -> dict[str, object]:
    """Return all gamma settings, and the number of marks that have no span on the text."""
    settings = {**asdict(source.options.gamma), "soft": source.options.gamma.soft or None}
    unplaced = (
        len(source.view.study.marks) - source.view.study.spans.filter(pl.col("part") == TEXT_PART)["mark"].n_unique()
    )
    return {**settings, "precision": source.options.gamma.precision or None, "left_out": unplaced or None}
