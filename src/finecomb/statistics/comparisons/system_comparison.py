"""Do two systems differ? Any statistic of a document, compared between the systems that wrote the documents."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.options import reject_inapplicable
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.engine.partitions import Executor
from finecomb.statistics.comparisons.system_pairs import ComparisonWork, Pairing, SystemPair, compare_systems
from finecomb.statistics.inference.permutation_tests import Correction, adjust_p_values
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.measures.annotation_matrix import Overlap, build_annotation_matrix
from finecomb.statistics.measures.annotation_measures import MEASURES, MeasureOptions
from finecomb.statistics.measures.numeric_answers import numeric_answer_values
from finecomb.statistics.selection.view import ANY, View, as_view

AnnotationStatistic = Callable[[View], pl.DataFrame]
"""Columns `annotation`, `document` and `value`, one row per annotation; those without a value are left out.

A document's value is the mean over its annotations."""


def measure_annotations(view: View, name: str, tokens: str = "words", overlap: Overlap = "add") -> pl.DataFrame:
    """One of the measures of `finecomb measure` for each annotation, all its marks together."""
    measure, reading = MEASURES[name], build_annotation_matrix(view, tokens=tokens)
    amounts = measure.amounts(reading, MeasureOptions(tokens=tokens, overlap=overlap))
    top, bottom = amounts.top[-1], amounts.bottom[-1]
    lacking = 0 if amounts.lacking is None else int(amounts.lacking[-1].sum())
    if measure.strict and lacking:
        raise FinecombError(f"{lacking} marks have no {measure.needs}; leave their labels out, or compare counts")
    defined = (bottom > 0) & (True if amounts.counts is None else amounts.counts)
    return reading.rows.select("annotation", "document", value=pl.Series(ratio_or_nan(top, bottom))).filter(
        pl.Series(defined)
    )


def numeric_answer_per_annotation(view: View, question: str) -> pl.DataFrame:
    """The answer of each annotation as a number, e.g. `rating`; who did not answer is left out."""
    return numeric_answer_values(view, question)


def resolve_statistic(
    statistic: str | AnnotationStatistic, tokens: str = "words", overlap: Overlap = "add"
) -> tuple[str, AnnotationStatistic]:
    """A statistic by name (`answer:rating` is a numeric answer), or a function as it is."""
    if not isinstance(statistic, str):
        return getattr(statistic, "__name__", "own"), statistic
    kind, _, question = statistic.partition(":")
    if kind == "answer" and question:
        return statistic, functools.partial(numeric_answer_per_annotation, question=question)
    names = [name for name in MEASURES if name != "fraction"]  # a share of all marks is no value of an annotation
    if statistic not in names:
        near = did_you_mean(statistic, [*names, "answer:NAME"])
        raise FinecombError(f"no statistic of a document is called {statistic!r}{near}")
    return statistic, functools.partial(measure_annotations, name=statistic, tokens=tokens, overlap=overlap)


def statistic_per_annotation(view: View, statistic: str | AnnotationStatistic, label: str = ANY) -> pl.DataFrame:
    """Columns annotation, document, annotator and value of a statistic of one label."""
    values = resolve_statistic(statistic)[1](restrict_to_label(view, label))
    who = view.study.annotations.select("annotator", annotation="id")
    return values.join(who, on="annotation", how="left", maintain_order="left")


def compare(
    study: Study | View,
    by: str = "model",
    statistic: str | AnnotationStatistic = "coverage",
    labels: Sequence[str] = (ANY,),
    pairing: Pairing = "auto",
    key: str = "",
    correction: Correction = "holm",
    tokens: str = "words",
    overlap: Overlap = "add",
    draws: int = 10_000,
    seed: int = 0,
    spread: Executor | None = None,
) -> Findings:
    """Every two systems compared: difference of means over documents, interval, p, and p corrected for all rows.

    `statistic` is a measure by name (coverage, count, rate-1000, ...), `answer:NAME`, or a function of a view.

    Systems are the values of `by`, document meta or an annotator's field. Documents are paired by `key` (a name of
    document meta; else `prompt_id`, else the text of the context `prompt`, `source` or `headline`; the document itself
    where systems share documents, as when `by` is `condition`), and several of one system with the same key are
    averaged. With `auto` a comparison is paired when every key of one system is found in the other. NaN with fewer than
    two documents or pairs. Comparisons, each with random numbers of its own, are made as `spread` says.
    """
    if pairing not in ("auto", "yes", "no"):
        raise FinecombError(f"pairing is auto, yes or no, not {pairing!r}")
    view = as_view(study)
    name, per_annotation = resolve_statistic(statistic, tokens, overlap)
    _reject_unused_options(name, {"tokens": (tokens, "words"), "overlap": (overlap, "add")})
    parts = [(str(group[by]), part) for group, part in view.split([by]) if group[by] is not None]
    if len(parts) < 2:
        there = f"only {parts[0][0]!r}" if parts else "none"
        raise FinecombError(f"a comparison needs two systems; by {by} there is {there}")
    keys, uses = _document_pairing_keys(view, parts, key), MEASURES[name].uses if name in MEASURES else ()
    comparisons: list[SystemPair] = []
    for label in labels:
        values = {
            system: _keyed_document_means(per_annotation(restrict_to_label(part, label)), keys)
            for system, part in parts
        }
        for a, b in itertools.combinations(values, 2):
            signature = Signature.from_fields(
                statistic=f"compare:{name}", label=label, by=by, correction=correction, pairing=pairing,
                key=key or None, tokens=tokens if "tokens" in uses else None,
                overlap=overlap if "overlap" in uses else None, **view.fields,
                annotators=view.study.annotations["annotator"].n_unique(), documents=len(view.study.documents),
                draws=draws, seed=seed,
            )  # fmt: skip
            columns: dict[str, object] = {"measure": name, "label": label, "a": a, "b": b}
            comparisons.append(SystemPair(columns, values[a], values[b], signature))
    work = ComparisonWork(pairing, draws, seed)
    return Findings(add_adjusted_p(list(compare_systems(comparisons, work, spread or Executor())), correction))


def _reject_unused_options(name: str, options: Mapping[str, tuple[str, str]]) -> None:
    """An error for an option that is not at its default and changes nothing about the statistic; pairs of both."""
    uses = MEASURES[name].uses if name in MEASURES else ()
    for option, (value, default) in options.items():
        if value != default and option not in uses:
            reject_inapplicable([option], [name], {other: row.uses for other, row in MEASURES.items()})


def add_adjusted_p(rows: Sequence[Finding], correction: Correction) -> list[Finding]:
    """The same findings with `p_adjusted`, their p corrected for how many they are."""
    p = np.array([_number_or_nan(row.columns.get("p")) for row in rows], dtype=np.float64)
    return [
        replace(row, columns={**row.columns, "p_adjusted": float(p_adjusted)})
        for row, p_adjusted in zip(rows, adjust_p_values(p, correction), strict=True)
    ]


def _number_or_nan(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def restrict_to_label(whole: View, label: str) -> View:
    """The same annotations with only the marks of one category; `any` keeps all."""
    if label == ANY:
        return whole
    if label not in whole.categories:
        raise FinecombError(f"no label is called {label!r}{did_you_mean(label, whole.categories)}")
    return replace(whole, study=replace(whole.study, marks=whole.study.marks.filter(pl.col("label") == label)))


def pairing_keys(view: View, by: str, key: str = "") -> pl.DataFrame:
    """Columns document and key: which documents of different systems belong together, as `compare` pairs them."""
    parts = [(str(group[by]), part) for group, part in view.split([by]) if group[by] is not None]
    return _document_pairing_keys(view, parts, key)


def _document_pairing_keys(view: View, parts: Iterable[tuple[str, View]], key: str) -> pl.DataFrame:
    """Columns document and key; key is null where the document has none."""
    texts = view.study.documents
    shared = pl.concat([part.study.documents["id"] for _, part in parts]).is_duplicated().any()
    if shared and not key:
        return texts.select(document="id", key="id")
    if key:
        keys = texts.select(pl.col("id").alias("document"), meta_entry(key).alias("key"))
        if keys["key"].null_count() == len(keys):
            raise FinecombError(f"no document has the meta {key!r} to pair by")
        return keys
    inputs = [
        pl.col("context").map_elements(_build_context_getter(name), pl.String)
        for name in ("prompt", "source", "headline")
    ]
    return texts.select(pl.col("id").alias("document"), key=pl.coalesce(meta_entry("prompt_id"), *inputs))


def _build_context_getter(name: str) -> Callable[[str], str | None]:
    return lambda text: parse_json_object(text).get(name)


def _keyed_document_means(values: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """One row per document: document, value (the mean over annotations) and key, without undefined values."""
    defined = values.filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
    means = defined.group_by("document", maintain_order=True).agg(pl.col("value").cast(pl.Float64).mean())
    return means.join(keys, on="document", how="left", maintain_order="left")
