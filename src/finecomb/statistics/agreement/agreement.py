"""Agreement under every name of the registry, for all labels at once, with intervals over documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding, Signature
from finecomb.core.options import build_options, reject_unknown_options
from finecomb.core.results import Findings
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement_options import AgreementLevel, AgreeOptions
from finecomb.statistics.agreement.coincidences import Weights
from finecomb.statistics.agreement.gamma.best_alignment import DEFAULT_WORK
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.rating_sources import (
    SOURCES,
    ItemLabels,
    Source,
    build_rating_source,
    rating_source_type,
)
from finecomb.statistics.agreement.registry import FAMILIES, MEASURES, AgreementMeasure, MeasureResult
from finecomb.statistics.inference.resampling import (
    estimate_with_interval,
    few_documents_reason,
    study_and_resample_batches,
)
from finecomb.statistics.measures.annotation_measures import split_comma_separated_names
from finecomb.statistics.selection.view import View, as_view

MAX_LEAVE_ONE_OUT_TEXTS = 1000
"""Documents up to which each is left out in turn."""


def agree(
    study: Study | View,
    measures: str | Sequence[str] = ("alpha", "two-agree"),
    level: AgreementLevel = "token",
    **options: Any,
) -> Findings:
    """Agreement under every name in `measures`, for any mark and each label, in each part that `by` makes.

    `options` are the fields of `AgreeOptions`; one that nothing asked for has is refused. Intervals are
    over documents, the same draws for all measures.
    """
    if "by" in options:
        options["by"] = tuple(split_comma_separated_names(options["by"]))
    names, choices = (
        resolve_measure_names(split_comma_separated_names(measures)),
        build_options(AgreeOptions, level=level, **options),
    )
    _reject_unused_options(names, choices, options)
    return Findings(
        Finding({**columns, **finding.columns}, finding.estimate)
        for columns, part in as_view(study).split(choices.by)
        for finding in _estimate_agreement(part, names, choices)
    )


def _reject_unused_options(names: Sequence[str], choices: AgreeOptions, options: Mapping[str, Any]) -> None:
    """An error for an option that neither the measures asked for nor what they read have."""
    source = rating_source_type(choices)
    asked_for = {**{name: MEASURES[name].options for name in names}, source.noun: source.options_type}
    everything = {name: row.options for name, row in MEASURES.items()}
    reject_unknown_options(options, asked_for, everything | {kind.noun: kind.options_type for kind in SOURCES})
    if options.get("gamma", GammaSettings()) != GammaSettings() and not any(name.startswith("gamma") for name in names):
        raise FinecombError(f"settings of gamma do not apply to {', '.join(names)}")


def resolve_measure_names(names: Sequence[str]) -> list[str]:
    """The names of the registry that names of measures and of families stand for, each once."""
    members = {**FAMILIES, **{name: (name,) for name in MEASURES}}
    for name in names:
        if name not in members:
            raise FinecombError(f"no measure of agreement is called {name!r}{did_you_mean(name, members)}")
    return list(dict.fromkeys(member for name in names for member in members[name]))


def _estimate_agreement(view: View, names: Sequence[str], options: AgreeOptions) -> list[Finding]:
    source, documents = build_rating_source(view, options), len(view.study.documents)
    without = few_documents_reason(documents)
    findings: list[Finding] = []
    for name in names:
        measure = MEASURES[name]
        if not isinstance(source, measure.reads):
            able = " or ".join(kind.noun for kind in measure.reads)
            raise FinecombError(f"{name} is for {able}, not for {source.noun}")
        result = _run_on_resamples(measure, source, study_and_resample_batches(documents, options.draws, options.seed))
        for row, columns in enumerate(result.columns):
            signature = _agreement_signature(source, name, columns)
            why = result.whys[row] if result.whys else _undefined_reason(source, measure, str(columns["label"]))
            value, values = float(result.values[0, row]), result.values[1:, row]
            estimate = estimate_with_interval(value, values, signature, why, without)
            findings.append(Finding({"measure": name, "level": measure.unit or options.level, **columns}, estimate))
    return findings


def _run_on_resamples(measure: AgreementMeasure, source: Source, batches: Iterable[Weights]) -> MeasureResult:
    """The result of a measure for all draws; the first batch begins with the study itself and names the rows."""
    first, *others = (measure.run(source, weights) for weights in batches)
    return replace(first, values=np.concatenate([first.values, *(batch.values for batch in others)]))


def most_influential_text_by_label(study: Study | View, name: str = "alpha") -> dict[str, str]:
    """By label, the document without which agreement would differ most; no label where none changes it.

    Every document is left out once, so the work grows with their square: of more than `MAX_LEAVE_ONE_OUT_TEXTS`
    nothing is said.
    """
    chosen = as_view(study)
    ids = chosen.study.documents["id"].to_list()
    if not 1 < len(ids) <= MAX_LEAVE_ONE_OUT_TEXTS:
        return {}
    weights = np.concatenate([np.ones((1, len(ids))), 1 - np.eye(len(ids))])
    result = MEASURES[name].run(build_rating_source(chosen, AgreeOptions(draws=0)), weights)
    changes = np.nan_to_num(np.abs(result.values[1:] - result.values[0]))
    return {
        str(columns["label"]): ids[int(changes[:, row].argmax())]
        for row, columns in enumerate(result.columns)
        if changes[:, row].max() > 0
    }


def _undefined_reason(source: Source, measure: AgreementMeasure, label: str) -> str:
    study = source.view.study
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    people = {kinds.get(id) for id in study.annotations["annotator"].unique()}
    if measure.individuals and people == {"pooled"}:
        return "pooled votes do not say who marked what"
    return source.undefined_reason(label)


def _agreement_signature(source: Source, name: str, columns: Mapping[str, object]) -> Signature:
    options, study = source.options, source.view.study
    items = options.level == "item"
    by_gamma = items and options.align == "gamma"
    return Signature.from_fields(
        statistic=name,
        unit=MEASURES[name].unit or options.level,
        **columns,
        question=options.question or None,
        tokens=options.tokens if options.level == "token" and not MEASURES[name].unit else None,
        align=options.align if items else None,
        convention=options.convention if isinstance(source, ItemLabels) else None,
        overlap=options.overlap if name.startswith("f1") else None,
        rest=options.rest if name.startswith("one-vs-rest") else None,
        pooled=_pooled_vote_rule(source),
        **(
            _gamma_signature_fields(source)
            if name.startswith("gamma")
            else {"work": DEFAULT_WORK if by_gamma else None}
        ),
        **source.view.fields,
        annotators=study.annotations["annotator"].n_unique(),
        documents=len(study.documents),
        draws=options.draws,
        seed=options.seed,
    )


def _pooled_vote_rule(source: Source) -> str | None:
    """What pooled votes on a sentence or more are: the sum over its marks, no more than there were readers."""
    study, level = source.view.study, source.options.level
    pooled = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    has_pooled = study.annotations["annotator"].is_in(pooled.implode()).any()
    return "summed-votes" if has_pooled and level in ("sentence", "segment", "document") else None


def _gamma_signature_fields(source: Source) -> dict[str, object]:
    """All settings of gamma, and how many marks have no place on the text."""
    settings = {**asdict(source.options.gamma), "soft": source.options.gamma.soft or None}
    unplaced = len(source.view.study.marks) - source.view.study.spans.filter(pl.col("part") == TEXT)["mark"].n_unique()
    return {**settings, "precision": source.options.gamma.precision or None, "left_out": unplaced or None}
