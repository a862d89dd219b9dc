"""Coverage, counts, scores, rates, lengths and shares of marks, each with an interval over clusters of texts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy  # submodules load on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean, param
from finecomb.core.options import build_options, option_field, reject_unknown_options
from finecomb.core.results import Finding, Findings, Signature
from finecomb.core.study import Study, annotation_rows_with_groups
from finecomb.engine.partitions import ProgressWatcher, count_steps
from finecomb.plugins import Registry
from finecomb.statistics.inference.clusters import ANNOTATOR_CLUSTER, Clusters, find_clusters
from finecomb.statistics.inference.intervals import (
    Bounds,
    Interval,
    IntervalMethod,
    IntervalSettings,
    estimate_from_interval,
    missing_interval,
    ratio_intervals,
    two_way_ratio_intervals,
)
from finecomb.statistics.inference.resampling import Average, document_average_terms, ratio_or_nan
from finecomb.statistics.measures.numeric_answers import numeric_answer_values
from finecomb.statistics.measures.unit_grid import (
    AnnotationMatrix,
    AnnotationTable,
    Floats,
    Ints,
    OverlapMode,
    UnitLevel,
    build_unit_grid,
    words_per_document,
)
from finecomb.statistics.selection.view import View, as_view, back_off_labels_to_groups

LabelDetail = Literal["label", "group", "any"]
MissingValueMode = Literal["undefined", "leave-out"]


@dataclass(frozen=True)
class IntervalOptions:
    """Options of statistics with an interval over clusters of documents."""

    by: tuple[str, ...] = option_field((), commas=True)
    cluster: str = option_field("")
    interval: IntervalMethod = option_field("auto")
    draws: int = option_field(1000, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True)
class MeanOptions(IntervalOptions):
    """Options of measures that are computed as means over annotations."""

    average: Average = option_field("annotation")
    target: float | None = option_field(None)


@dataclass(frozen=True)
class ExplanationOptions(MeanOptions):
    """Options of measures that count the tokens of explanations."""

    tokens: str = option_field("words")


@dataclass(frozen=True)
class TextUnitOptions(ExplanationOptions):
    """Options of measures that count the tokens or other units of texts."""

    level: UnitLevel = option_field("token")


@dataclass(frozen=True)
class SpanOptions(TextUnitOptions):
    """Options of measures that count the units covered by marks."""

    antecedents: bool = option_field(False)


@dataclass(frozen=True)
class CoverageOptions(SpanOptions):
    """Options of coverage."""

    overlap: OverlapMode = option_field("add")


@dataclass(frozen=True)
class WeightedScoreOptions(MeanOptions):
    """Options of measures that require a weight for each mark."""

    missing: MissingValueMode = option_field("undefined")


@dataclass(frozen=True)
class SeverityCoverageOptions(WeightedScoreOptions, SpanOptions):
    """Options of severity-weighted coverage."""


@dataclass(frozen=True)
class MeasureOptions(SeverityCoverageOptions, CoverageOptions):
    """All options of measures."""

    detail: LabelDetail = "label"
    """Level of the rows: one row per label, one per group of labels, or one for all marks."""


@dataclass(frozen=True, slots=True)
class MeasureAmounts:
    """Numerators and denominators of a measure, which is sum(top) / sum(bottom) over documents and annotations."""

    top: Floats
    """(labels, annotations): numerators."""
    bottom: Floats
    """(labels, annotations): denominators."""
    counts: NDArray[np.bool_] | None = None
    """(annotations,): True where the measure is defined; None for all annotations."""
    lacking: Floats | None = None
    """(labels, annotations): number of marks without a property that the measure needs, e.g. a severity."""


def concatenate_amounts(parts: Sequence[MeasureAmounts]) -> MeasureAmounts:
    """Concatenate the amounts of several parts along the annotations."""
    top = np.concatenate([part.top for part in parts], axis=1)
    # strides of 0 identify the broadcast ones of measures per annotation, which need no copy
    is_per_annotation = not any(any(part.bottom.strides) for part in parts)
    counts = [part.counts for part in parts if part.counts is not None]
    lacking = [part.lacking for part in parts if part.lacking is not None]
    return MeasureAmounts(
        top,
        np.broadcast_to(1.0, top.shape)
        if is_per_annotation
        else np.concatenate([part.bottom for part in parts], axis=1),
        np.concatenate(counts) if counts else None,
        np.concatenate(lacking, axis=1) if lacking else None,
    )


@dataclass(frozen=True, slots=True)
class AnnotationMeasure:
    """A registered measure."""

    amounts: Callable[[AnnotationMatrix, MeasureOptions], MeasureAmounts]
    gloss: str
    """One-line description."""
    undefined: str
    """Reason for an undefined value when the denominator is 0."""
    needs: str = ""
    """Property that a mark must have for this measure, e.g. a severity."""
    strict: bool = False
    """True if a mark that lacks `needs` makes its annotation's value undefined; otherwise only the mark is skipped."""
    uses: tuple[str, ...] = ()
    """Names of the options that change the value and are part of the signature."""
    options: type = MeanOptions
    """Dataclass of the measure's options."""
    page: str = "counts-and-rates"
    """Page of `docs/statistics` that describes the measure."""
    of_text: bool = False
    """True if the measure describes the whole text and therefore has no rows per label."""
    bounds: Bounds = (0.0, math.inf)
    """Smallest and largest possible value; intervals do not exceed them."""


def _coverage_amounts(matrix: AnnotationMatrix, choices: MeasureOptions, by_severity: bool = False) -> MeasureAmounts:
    """Build the amounts of the share of covered units among all units; texts without units are excluded."""
    lacking: Floats | None = None
    if by_severity:
        covered = matrix.sum_by_category(matrix.mark_lengths * np.nan_to_num(matrix.severities))
        lacking = matrix.sum_by_category(np.isnan(matrix.severities).astype(np.float64))
    elif choices.overlap == "union":
        covered = matrix.count_covered_units_by_category()
    else:
        covered = matrix.sum_by_category(matrix.mark_lengths)
    sizes = np.diff(matrix.grid.bounds)[matrix.document_positions].astype(np.float64)
    units = np.broadcast_to(sizes, covered.shape)
    if choices.average == "pooled":
        return MeasureAmounts(covered, units.copy(), sizes > 0, lacking)
    share = np.nan_to_num(ratio_or_nan(covered, units))
    return MeasureAmounts(share, np.broadcast_to(1.0, share.shape), sizes > 0, lacking)


def _mark_count_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = matrix.sum_by_category()
    return MeasureAmounts(top, np.broadcast_to(1.0, top.shape))


def _weighted_score_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = matrix.sum_by_category(np.nan_to_num(matrix.mark_weights))
    lacking = matrix.sum_by_category(np.isnan(matrix.mark_weights).astype(np.float64))
    return MeasureAmounts(top, np.ones_like(top), lacking=lacking)


def _build_rate_amounts(size: int) -> Callable[[AnnotationMatrix, MeasureOptions], MeasureAmounts]:
    """Build the amounts of marks per `size` words; other levels count their units instead of words."""

    def amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
        is_token = choices.level == "token"
        sizes = words_per_document(matrix.view.study, matrix.grid.tokens) if is_token else matrix.grid.sizes
        lengths = sizes[matrix.document_positions].astype(np.float64)
        top = size * matrix.sum_by_category()
        return MeasureAmounts(top, np.broadcast_to(lengths, top.shape).copy(), lengths > 0)

    return amounts


def _marked_annotation_share_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = (matrix.sum_by_category() > 0).astype(np.float64)
    return MeasureAmounts(top, np.broadcast_to(1.0, top.shape))


def _mean_over_marks_amounts(matrix: AnnotationMatrix, values: Floats, has_value: NDArray[np.bool_]) -> MeasureAmounts:
    """Build the amounts of a mean over the marks that have a value."""
    has, lacks = (matrix.sum_by_category(mask.astype(np.float64)) for mask in (has_value, ~has_value))
    return MeasureAmounts(matrix.sum_by_category(np.where(has_value, values, 0.0)), has, lacking=lacks)


def _mean_severity_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _mean_over_marks_amounts(matrix, matrix.severities, ~np.isnan(matrix.severities))


def _mean_span_length_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _mean_over_marks_amounts(matrix, matrix.mark_lengths, matrix.mark_lengths > 0)


def _mean_explanation_length_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _mean_over_marks_amounts(matrix, matrix.explanation_lengths, matrix.explanation_lengths > 0)


def _label_share_amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = matrix.sum_by_category()
    return MeasureAmounts(top, np.broadcast_to(top[-1], top.shape).copy())


_SIGNATURE_NAME_BY_OPTION = {"level": "unit"}
"""Name under which an option appears in signatures, if it differs from the option's own name."""
_TEXT_SIGNATURE_OPTIONS = ("level", "tokens", "average", "antecedents")
_NO_TOKENS_REASON = "no annotated text contains a token"
_NO_WORDS_REASON = "no annotated text contains a word"

ANNOTATION_MEASURES = Registry[AnnotationMeasure](
    "measures",
    AnnotationMeasure,
    {
        "coverage": AnnotationMeasure(
            _coverage_amounts,
            "share of tokens covered by marks",
            _NO_TOKENS_REASON,
            uses=("overlap", *_TEXT_SIGNATURE_OPTIONS),
            options=CoverageOptions,
            page="coverage",
        ),
        "severity-coverage": AnnotationMeasure(
            functools.partial(_coverage_amounts, by_severity=True),
            "coverage weighted by the severity of each mark",
            _NO_TOKENS_REASON,
            "severity",
            True,
            uses=_TEXT_SIGNATURE_OPTIONS,
            options=SeverityCoverageOptions,
            page="coverage",
        ),
        "count": AnnotationMeasure(_mark_count_amounts, "marks per annotation", "no annotations"),
        "score": AnnotationMeasure(
            _weighted_score_amounts,
            "points per annotation, by the protocol's weights",
            "no annotations",
            "weight",
            True,
            options=WeightedScoreOptions,
            page="scores",
            bounds=(-math.inf, math.inf),
        ),
        "rate-100": AnnotationMeasure(
            _build_rate_amounts(100),
            "marks per 100 words",
            _NO_WORDS_REASON,
            uses=("level", "tokens"),
            options=TextUnitOptions,
        ),
        "rate-1000": AnnotationMeasure(
            _build_rate_amounts(1000),
            "marks per 1,000 words",
            _NO_WORDS_REASON,
            uses=("level", "tokens"),
            options=TextUnitOptions,
        ),
        "marked-documents": AnnotationMeasure(
            _marked_annotation_share_amounts,
            "share of annotations with at least one mark",
            "no annotations",
            bounds=(0.0, 1.0),
        ),
        "severity": AnnotationMeasure(
            _mean_severity_amounts,
            "mean severity",
            "no mark has a numeric severity",
            "severity",
            bounds=(-math.inf, math.inf),
        ),
        "span-length": AnnotationMeasure(
            _mean_span_length_amounts,
            "mean number of tokens per mark",
            "no mark covers a token",
            "place",
            uses=("level", "tokens", "antecedents"),
            options=SpanOptions,
        ),
        "explanation-length": AnnotationMeasure(
            _mean_explanation_length_amounts,
            "mean number of tokens per explanation",
            "no mark has an explanation",
            "explanation",
            uses=("tokens",),
            options=ExplanationOptions,
        ),
        "fraction": AnnotationMeasure(_label_share_amounts, "share of all marks", "no marks", bounds=(0.0, 1.0)),
    },
)


ANSWER_PREFIX = "answer:"
"""Prefix of measures that are the mean answer to a question about the document."""


def split_comma_separated_names(names: str | Sequence[str]) -> Sequence[str]:
    """Split a string of comma-separated names; a sequence of names is returned unchanged.

    >>> split_comma_separated_names("coverage, count")
    ['coverage', 'count']
    """
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names


def measure(
    study: Study | View,
    measures: str | Sequence[str] = ("coverage",),
    by: str | Sequence[str] = (),
    watch: ProgressWatcher | None = None,
    **options: Any,
) -> Findings:
    """Compute measures by label and by the `by` columns, each with an interval over clusters of documents.

    `measures` are names of `ANNOTATION_MEASURES`, or `answer:NAME` for the mean answer to a question about the
    document. `options` are the fields of `MeasureOptions`; an option that applies to none of the measures raises an
    error. Columns: measure, level (the unit covered or counted, where it can be chosen), label (`any` for all marks),
    the `by` columns and, with a `target`, target, t, df, p and test.

    An undefined value is NaN, with a reason. So are intervals with fewer than four clusters, or if all clusters have
    the same value. The clusters are described in the notes.
    """
    measures = split_comma_separated_names(measures) if isinstance(measures, str) else measures
    by = split_comma_separated_names(by) if isinstance(by, str) else by
    rows: dict[str, AnnotationMeasure] = {}
    for name in measures:
        if (row := find_measure(name)) is None:
            raise FinecombError(f"unknown measure {name!r}{did_you_mean(name, [*ANNOTATION_MEASURES, 'answer:NAME'])}")
        rows[name] = row
    view = study if isinstance(study, View) else as_view(study)
    choices = MeasureOptions(by=tuple(by))
    if options:
        choices = build_options(MeasureOptions, by=tuple(by), **options)
        reject_unknown_options(
            options, *({name: row.options for name, row in table.items()} for table in (rows, ANNOTATION_MEASURES))
        )
    # Raise an error if a protocol asks for no marks
    of_marks = any(not row.of_text for row in rows.values())
    if of_marks and view.protocol is not None and not view.protocol.labels and view.study.marks.is_empty():
        fix = f"average its answers with `finecomb measure {param('measure', 'answer:NAME')}`"
        raise FinecombError(f"protocol {view.protocol.id} does not ask for marks; {fix}")
    names = [name.strip() for name in choices.cluster.split(",")]
    is_two_way = ANNOTATOR_CLUSTER in names
    clusters = find_clusters(view.study.documents, ",".join(name for name in names if name != ANNOTATOR_CLUSTER))
    annotations, amounts = _compute_amounts(
        back_off_labels_to_groups(view) if choices.detail == "group" else view, rows, choices
    )
    findings: dict[str, list[Finding]] = {name: [] for name in amounts}
    groups = list(annotations.groups(by))
    with count_steps(len(groups) * len(amounts), watch) if watch else nullcontext() as step:
        for columns, members in groups:
            group = MeasuredGroup(annotations, choices, columns, members, clusters, is_two_way)
            for name in amounts:
                findings[name] += group.findings(name, rows[name], amounts[name])
                if step:
                    step()
    return Findings((finding for rows_of_one in findings.values() for finding in rows_of_one), clusters.notes)


def _compute_amounts(
    view: View, measures: Mapping[str, AnnotationMeasure], choices: MeasureOptions
) -> tuple[AnnotationTable, dict[str, MeasureAmounts]]:
    """Compute the amounts of each measure, a few documents at a time, and return them with the table of annotations."""
    rows = annotation_rows_with_groups(view.study, choices.by)
    # The names of answered questions are collected over the full study.
    has_answers = any(row.of_text for row in measures.values())
    tables: list[pl.DataFrame] = []
    amounts: dict[str, list[MeasureAmounts]] = {name: [] for name in measures}
    for study in [view.study] if has_answers else view.study.iter_parts():
        is_whole = study is view.study
        inside = rows if is_whole else rows.filter(pl.col("document").is_in(study.documents["id"].implode()))
        part = view if is_whole else replace(view, study=study)
        matrix = AnnotationMatrix(
            part, inside, build_unit_grid(study, choices.level, choices.tokens), choices.antecedents
        )
        tables.append(inside)
        for name, row in measures.items():
            amounts[name].append(row.amounts(matrix, choices))
    if len(tables) == 1:
        return AnnotationTable(view, tables[0]), {name: parts[0] for name, parts in amounts.items()}
    return AnnotationTable(view, pl.concat(tables)), {name: concatenate_amounts(amounts.pop(name)) for name in measures}


def find_measure(name: str) -> AnnotationMeasure | None:
    """Return the mean over annotations with this name: one of `ANNOTATION_MEASURES`, or answers to a question."""
    question = name.removeprefix(ANSWER_PREFIX)
    if name.startswith(ANSWER_PREFIX) and question:

        def amounts(matrix: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
            answers = numeric_answer_values(matrix.view, question)
            values = matrix.rows.select("annotation").join(answers, on="annotation", how="left", maintain_order="left")
            numbers = values["value"].fill_null(math.nan).to_numpy()
            is_answered = np.isfinite(numbers)
            top = np.broadcast_to(np.nan_to_num(numbers), (len(matrix.labels), len(matrix))).copy()
            return MeasureAmounts(top, np.broadcast_to(is_answered.astype(np.float64), top.shape).copy(), is_answered)

        return AnnotationMeasure(
            amounts,
            f"mean answer to {question}",
            "no annotation has a numeric answer",
            of_text=True,
            bounds=(-math.inf, math.inf),
        )
    return ANNOTATION_MEASURES.get(name)


@dataclass(frozen=True)
class MeasuredGroup:
    """Annotations of one combination of the `by` columns, for which measures are computed."""

    table: AnnotationTable
    choices: MeasureOptions
    columns: dict[str, str | None]
    annotations: Ints
    clusters: Clusters
    """Clusters of the documents of the view."""
    is_two_way: bool = False
    """True if annotators are crossed clusters."""

    def findings(self, name: str, measure: AnnotationMeasure, amounts: MeasureAmounts) -> list[Finding]:
        """Compute one finding per label and one for all marks (`any`)."""
        annotations = self.annotations if amounts.counts is None else self.annotations[amounts.counts[self.annotations]]
        labels = self.table.labels
        is_overall = self.choices.detail == "any" or measure.of_text
        rows = np.arange(len(labels) - (name == "fraction"))[-1 if is_overall else 0 :]
        cells = np.ix_(rows, annotations)
        top, bottom = amounts.top[cells], amounts.bottom[cells]
        lacking = np.zeros_like(top) if amounts.lacking is None else amounts.lacking[cells]
        if measure.strict and self.choices.missing == "leave-out":
            top, bottom = np.where(lacking > 0, 0.0, top), np.where(lacking > 0, 0.0, bottom)
        present, document = np.unique(self.table.document_positions[annotations], return_inverse=True)
        clusters = self.clusters.select(present)
        tops, bottoms = (sum_annotations(values, document, len(present)) for values in (top, bottom))
        if self.choices.average == "document":
            tops, bottoms = document_average_terms(tops, bottoms, "document")
        cluster_tops, cluster_bottoms = clusters.sum_documents(tops.T), clusters.sum_documents(bottoms.T)
        bounds = (0.0, 1.0) if name == "coverage" and self.choices.overlap == "union" else measure.bounds
        if self.is_two_way:
            if self.choices.average == "document":
                raise FinecombError("crossed annotators require the average over annotations, found document")
            people = self.table.annotator_positions[annotations]
            intervals = two_way_ratio_intervals(
                top.T, bottom.T, clusters.positions[document], people, bounds=bounds, settings=self.settings
            )
        else:
            intervals = ratio_intervals(
                cluster_tops, cluster_bottoms, bounds=bounds, settings=self.settings, noun=clusters.name
            )
        fields = self._signature_fields(measure, len(annotations), clusters)
        level = self.choices.level if "level" in measure.uses else ""
        findings: list[Finding] = []
        for row, label in enumerate(labels[row] for row in rows):
            columns: dict[str, object] = {"measure": name, "level": level, "label": label, **self.columns}
            left_out = int(lacking[row].sum()) or None
            signature = Signature.from_fields(statistic=name, label=label, **(fields | {"left_out": left_out}))
            is_defined = bottom[row].sum() > 0 and not (measure.strict and left_out)
            why = "" if is_defined else self.undefined_reason(measure, bottom[row], left_out or 0)
            if self.choices.target is not None:
                columns |= target_t_test(self.choices.target, cluster_tops[:, row], cluster_bottoms[:, row], why)
            value = math.nan if why else float(tops[row].sum() / bottoms[row].sum())
            interval: Interval = missing_interval(why) if why else intervals[row]
            findings.append(Finding(columns, estimate_from_interval(value, interval, signature, why)))
        return findings

    @property
    def settings(self) -> IntervalSettings:
        """Settings of intervals."""
        return IntervalSettings(self.choices.interval, self.choices.draws, self.choices.seed)

    def undefined_reason(self, measure: AnnotationMeasure, bottom: Floats, lacking: int) -> str:
        """Return the reason for an undefined value, or an empty string.

        `bottom`, (annotations,), has the denominators; `lacking` marks do not have a property that the measure needs.
        """
        if not len(self.annotations):
            return "no annotations"
        if measure.strict and lacking and self.choices.missing == "undefined":
            protocol = self.table.view.protocol
            if measure.needs == "weight" and protocol is not None and not protocol.weights:
                return f"protocol {protocol.id} has no weights"
            requirement = "a numeric severity" if measure.needs == "severity" else f"a {measure.needs}"
            return f"{lacking} {'marks do' if lacking > 1 else 'mark does'} not have {requirement}"
        return "" if bottom.sum() > 0 else measure.undefined

    def _signature_fields(self, measure: AnnotationMeasure, annotations: int, clusters: Clusters) -> dict[str, Any]:
        """Return the signature fields that follow measure and label; `left_out` differs between rows."""
        choices, default, uses = self.choices, MeasureOptions(), measure.uses
        fields = {_SIGNATURE_NAME_BY_OPTION.get(option, option): getattr(choices, option) for option in uses}
        quiet = [option for option in ("level", "antecedents") if getattr(choices, option) == getattr(default, option)]
        fields |= dict.fromkeys(_SIGNATURE_NAME_BY_OPTION.get(option, option) for option in quiet if option in uses) | {
            "average": choices.average if choices.average != "annotation" else None
        }
        fields |= {"left_out": None, "of": "+".join(f"{name}={value}" for name, value in self.columns.items()) or None}
        fields |= self.table.view.fields
        fields |= {"annotations": annotations, "documents": len(clusters.positions), **clusters.signature_fields}
        fields |= {"crossed": ANNOTATOR_CLUSTER if self.is_two_way else None}
        return fields | self.settings.signature_fields


def sum_annotations(values: Floats, document: Ints, documents: int) -> Floats:
    """Sum `values`, (labels, annotations), over the annotations of each document, (labels, documents)."""
    if not len(document):
        return np.zeros((len(values), documents))
    order = np.argsort(document, kind="stable")
    return np.add.reduceat(values[:, order], np.searchsorted(document[order], np.arange(documents)), axis=1)


def target_t_test(target: float, top: Floats, bottom: Floats, why: str = "") -> dict[str, object]:
    r"""Run a two-sided one-sample t-test over clusters that compares sum(top) / sum(bottom) with `target`.

    The test is on $r_d = top_d - target \cdot bottom_d$, whose mean is 0 if the ratio equals the target. If all
    clusters have the same number of annotations, it is the usual t-test on cluster means.
    """
    columns: dict[str, object] = {"target": target, "t": math.nan, "df": max(0, len(top) - 1), "p": math.nan}
    if why or len(top) < 2 or not bottom.any():
        return columns | {"test": f"undefined: {why or 'fewer than two clusters'}"}
    residuals = top - target * bottom
    if np.ptp(residuals) == 0:
        return columns | {"test": "undefined: all clusters give the same value"}
    t = residuals.mean() / (residuals.std(ddof=1) / math.sqrt(len(residuals)))
    p = 2 * scipy.stats.t.sf(abs(t), len(residuals) - 1)
    return columns | {"t": float(t), "p": float(p), "test": "t over clusters"}
