"""How often and how bad: coverage, counts, scores, rates, lengths and shares of a view, each with its interval."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean, param
from finecomb.core.estimate import Finding, Signature
from finecomb.core.options import build_options, option, reject_unknown_options
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.statistics.inference.resampling import (
    Average,
    Resample,
    Resamples,
    document_average_terms,
    draw_annotation_resamples,
    estimate_with_interval,
    no_interval_reason,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.annotation_matrix import (
    AnnotationMatrix,
    AnnotationTable,
    Floats,
    Overlap,
    back_off_labels_to_groups,
)
from finecomb.statistics.measures.numeric_answers import numeric_answer_values
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups
from finecomb.statistics.measures.unit_grid import Ints, Level, build_grid
from finecomb.statistics.selection.view import View, as_view

Detail = Literal["label", "group", "any"]
Missing = Literal["undefined", "leave-out"]


@dataclass(frozen=True)
class IntervalOptions:
    """Options of every statistic with an interval over documents."""

    by: tuple[str, ...] = option((), "Document meta or annotator fields, with commas.", commas=True)
    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class MeanOptions(IntervalOptions):
    """Options of every measure that is a mean over annotations."""

    average: Average = option("annotation", "Mean over annotations, mean of document means, or all tokens in one pot.")
    target: float | None = option(None, "Test each value against this one.")
    resample: Resample = option("documents", "Intervals over documents, or over documents and annotators.")


@dataclass(frozen=True)
class ExplanationOptions(MeanOptions):
    """Options of measures that count tokens of explanations."""

    tokens: str = option("words", "words, whitespace, or spacy:NAME.")


@dataclass(frozen=True)
class TextUnitOptions(ExplanationOptions):
    """Options of measures that count tokens, or other units, of texts."""

    level: Level = option("token", "What is covered or counted in the text.")


@dataclass(frozen=True)
class SpanOptions(TextUnitOptions):
    """Options of measures of the words that marks cover."""

    antecedents: bool = option(False, "Count antecedents as covered too.")


@dataclass(frozen=True)
class CoverageOptions(SpanOptions):
    """Options of coverage."""

    overlap: Overlap = option("add", "A token in two marks counts twice, or once.")


@dataclass(frozen=True)
class WeightedScoreOptions(MeanOptions):
    """Options of measures for which every mark needs a weight."""

    missing: Missing = option("undefined", "Marks without severity or weight: no value, or left out.")


@dataclass(frozen=True)
class SeverityCoverageOptions(WeightedScoreOptions, SpanOptions):
    """Options of coverage weighted by severity."""


@dataclass(frozen=True)
class MeasureOptions(SeverityCoverageOptions, CoverageOptions):
    """All options of measures as values."""

    detail: Detail = "label"
    """Whether there is a row for each label, for each group of labels, or for all marks together only."""


@dataclass(frozen=True, slots=True)
class MeasureAmounts:
    """A measure is sum(top) / sum(bottom), over documents and the annotations in them."""

    top: Floats
    """(labels, annotations)"""
    bottom: Floats
    """(labels, annotations)"""
    counts: NDArray[np.bool_] | None = None
    """(annotations,): whether each can be measured at all; None for all."""
    lacking: Floats | None = None
    """(labels, annotations): marks without what the measure needs."""


def concatenate_amounts(parts: Sequence[MeasureAmounts]) -> MeasureAmounts:
    """The amounts of all annotations from those of parts of them."""
    if len(parts) == 1:
        return parts[0]
    top = np.concatenate([part.top for part in parts], axis=1)
    is_per_annotation = not any(any(part.bottom.strides) for part in parts)
    counts = [part.counts for part in parts if part.counts is not None]
    lacking = [part.lacking for part in parts if part.lacking is not None]
    return MeasureAmounts(
        top,
        _broadcast_ones(top.shape) if is_per_annotation else np.concatenate([part.bottom for part in parts], axis=1),
        np.concatenate(counts) if counts else None,
        np.concatenate(lacking, axis=1) if lacking else None,
    )


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the registry."""

    amounts: Callable[[AnnotationMatrix, MeasureOptions], MeasureAmounts]
    says: str
    """What it is, in a line."""
    undefined: str
    """Why it has no value when nothing can be divided by."""
    needs: str = ""
    """What a mark must have."""
    strict: bool = False
    """Whether a mark without it leaves its annotation without a value; otherwise only the mark is left out."""
    uses: tuple[str, ...] = ()
    """Options that change it, for the signature."""
    options: type = MeanOptions
    """The dataclass of its options."""
    page: str = "counts-and-rates"
    """The page of `docs/statistics` that describes it."""
    of_text: bool = False
    """Whether it is about the whole text, so that labels have no rows of their own."""


def _broadcast_ones(shape: tuple[int, ...]) -> Floats:
    """An array of ones that takes no memory."""
    return np.broadcast_to(1.0, shape)


def _per_annotation_amounts(reading: AnnotationMatrix, top: Floats) -> MeasureAmounts:
    return MeasureAmounts(top, _broadcast_ones(top.shape))


def _coverage_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    covered = (
        reading.covered_unit_counts() if choices.overlap == "union" else reading.sum_by_category(reading.mark_lengths)
    )
    return _text_share_amounts(reading, covered, choices)


def _text_share_amounts(
    reading: AnnotationMatrix, covered: Floats, choices: MeasureOptions, lacking: Floats | None = None
) -> MeasureAmounts:
    """Tokens covered / tokens; texts without tokens are left out."""
    if choices.average == "pooled":
        bottom = np.broadcast_to(reading.unit_counts, covered.shape).copy()
        return MeasureAmounts(covered, bottom, reading.unit_counts > 0, lacking)
    share = np.nan_to_num(ratio_or_nan(covered, np.broadcast_to(reading.unit_counts, covered.shape)))
    return MeasureAmounts(share, _broadcast_ones(share.shape), reading.unit_counts > 0, lacking)


def _severity_coverage_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    unknown = np.isnan(reading.severities)
    covered = reading.sum_by_category(reading.mark_lengths * np.nan_to_num(reading.severities))
    return _text_share_amounts(reading, covered, choices, reading.sum_by_category(unknown.astype(np.float64)))


def _mark_count_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _per_annotation_amounts(reading, reading.sum_by_category())


def _weighted_score_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = reading.sum_by_category(np.nan_to_num(reading.mark_weights))
    lacking = reading.sum_by_category(np.isnan(reading.mark_weights).astype(np.float64))
    return MeasureAmounts(top, np.ones_like(top), lacking=lacking)


def _marks_per_thousand_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = 1000 * reading.sum_by_category()
    return MeasureAmounts(top, np.broadcast_to(reading.unit_counts, top.shape).copy(), reading.unit_counts > 0)


def _marked_annotation_share_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _per_annotation_amounts(reading, (reading.sum_by_category() > 0).astype(np.float64))


def _mean_over_marks_amounts(reading: AnnotationMatrix, values: Floats, has_value: NDArray[np.bool_]) -> MeasureAmounts:
    """Mean over the marks that have a value."""
    has, lacks = (reading.sum_by_category(which.astype(np.float64)) for which in (has_value, ~has_value))
    return MeasureAmounts(reading.sum_by_category(np.where(has_value, values, 0.0)), has, lacking=lacks)


def _mean_severity_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _mean_over_marks_amounts(reading, reading.severities, ~np.isnan(reading.severities))


def _mean_span_length_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _mean_over_marks_amounts(reading, reading.mark_lengths, reading.mark_lengths > 0)


def _mean_explanation_length_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    return _mean_over_marks_amounts(reading, reading.explanation_lengths, reading.explanation_lengths > 0)


def _label_share_amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
    top = reading.sum_by_category()
    return MeasureAmounts(top, np.broadcast_to(top[-1], top.shape).copy())


_SIGNATURE_NAMES = {"level": "unit"}
"""What an option is called in a signature, where that is another word."""
_TEXT_OPTIONS = ("level", "tokens", "average", "antecedents")
_NO_TOKENS = "no text that was read has a token"

MEASURES: dict[str, Measure] = {
    "coverage": Measure(
        _coverage_amounts,
        "share of the tokens covered",
        _NO_TOKENS,
        uses=("overlap", *_TEXT_OPTIONS),
        options=CoverageOptions,
        page="coverage",
    ),
    "severity-coverage": Measure(
        _severity_coverage_amounts,
        "coverage with each mark times its severity",
        _NO_TOKENS,
        "severity",
        True,
        uses=_TEXT_OPTIONS,
        options=SeverityCoverageOptions,
        page="coverage",
    ),
    "count": Measure(_mark_count_amounts, "marks per annotation", "no annotations"),
    "score": Measure(
        _weighted_score_amounts,
        "points per annotation by the protocol's weights",
        "no annotations",
        "weight",
        True,
        options=WeightedScoreOptions,
        page="scores",
    ),
    "rate-1000": Measure(
        _marks_per_thousand_amounts,
        "marks per 1,000 tokens",
        _NO_TOKENS,
        uses=("level", "tokens"),
        options=TextUnitOptions,
    ),
    "marked-documents": Measure(_marked_annotation_share_amounts, "share of annotations with a mark", "no annotations"),
    "severity": Measure(_mean_severity_amounts, "mean severity", "no mark has a severity that is a number", "severity"),
    "span-length": Measure(
        _mean_span_length_amounts,
        "mean tokens of a mark",
        "no mark covers a token",
        "place",
        uses=("level", "tokens", "antecedents"),
        options=SpanOptions,
    ),
    "explanation-length": Measure(
        _mean_explanation_length_amounts,
        "mean tokens of an explanation",
        "no mark has an explanation",
        "explanation",
        uses=("tokens",),
        options=ExplanationOptions,
    ),
    "fraction": Measure(_label_share_amounts, "share of all marks", "no marks"),
}


ANSWER_PREFIX = "answer:"
"""How the name of a measure begins that is the mean answer to a question about the document."""


def _build_answer_measure(question: str) -> Measure:
    """The mean answer to a question; words of an ordinal question count by their order, from 1."""

    def amounts(reading: AnnotationMatrix, choices: MeasureOptions) -> MeasureAmounts:
        answers = numeric_answer_values(reading.view, question)
        values = reading.rows.select("annotation").join(answers, on="annotation", how="left", maintain_order="left")
        numbers = values["value"].fill_null(math.nan).to_numpy()
        is_answered = np.isfinite(numbers)
        top = np.broadcast_to(np.nan_to_num(numbers), (len(reading.labels), len(reading))).copy()
        return MeasureAmounts(top, np.broadcast_to(is_answered.astype(np.float64), top.shape).copy(), is_answered)

    return Measure(amounts, f"mean answer to {question}", "nobody answered with a number", of_text=True)


def split_comma_separated_names(names: str | Sequence[str]) -> Sequence[str]:
    """Names as a list; one text holds names with commas between them.

    >>> split_comma_separated_names("coverage, count")
    ['coverage', 'count']
    """
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names


def measure(
    study: Study | View, measures: str | Sequence[str] = ("coverage",), by: str | Sequence[str] = (), **options: Any
) -> Findings:
    """Measures of a study or view by label and by the `by` columns, each with a bootstrap interval over documents.

    `measures` are names of `MEASURES`, or `answer:NAME` for the mean answer to a question about the document. `options`
    are the fields of `MeasureOptions`; one that no measure asked for has is refused. Columns: measure, level (what is
    covered or counted, where that can be chosen), label (`any` for all together), the `by` columns and, with a
    `target`, target, t, df, p and test. Undefined values are NaN with the reason; so are intervals of fewer than two
    documents, or when all documents give the same value and drawing them again shows no spread.
    """
    measures, by = split_comma_separated_names(measures), split_comma_separated_names(by)
    choices = build_options(MeasureOptions, by=tuple(by), **options)
    rows, view = {name: find_measure(name) for name in measures}, as_view(study)
    reject_unknown_options(options, *({name: row.options for name, row in table.items()} for table in (rows, MEASURES)))
    _reject_pointless_request(view, choices.resample, rows.values())
    annotations, amounts = _compute_amounts(
        back_off_labels_to_groups(view) if choices.detail == "group" else view, rows, choices
    )
    findings: dict[str, list[Finding]] = {name: [] for name in amounts}
    for columns, members in annotations.groups(by):
        group = MeasuredGroup(annotations, choices, columns, members)
        for name in amounts:
            findings[name] += group.findings(name, amounts[name])
    return Findings(finding for rows_of_one in findings.values() for finding in rows_of_one)


def _compute_amounts(
    view: View, measures: Mapping[str, Measure], choices: MeasureOptions
) -> tuple[AnnotationTable, dict[str, MeasureAmounts]]:
    """The amounts of each measure, made from some documents at a time, and the annotations that they are of."""
    rows, has_answers = (
        annotation_rows_with_groups(view.study, choices.by),
        any(row.of_text for row in measures.values()),
    )
    tables: list[pl.DataFrame] = []
    amounts: dict[str, list[MeasureAmounts]] = {name: [] for name in measures}
    for part in [view] if has_answers else view.parts():  # who answered a question is known from the whole study
        inside = rows if part.study is view.study else _rows_of_documents(rows, part.study.documents)
        grid = build_grid(part.study, choices.level, choices.tokens)
        matrix = AnnotationMatrix(part, inside, grid, choices.antecedents)
        tables.append(inside)
        for name, row in measures.items():
            amounts[name].append(row.amounts(matrix, choices))
    whole = AnnotationTable(view, pl.concat(tables))
    return whole, {name: concatenate_amounts(amounts.pop(name)) for name in measures}


def _rows_of_documents(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """The rows about some documents."""
    return rows.filter(pl.col("document").is_in(documents["id"].implode()))


def _reject_pointless_request(view: View, resample: Resample, rows: Iterable[Measure]) -> None:
    """Nothing to count where nobody was asked to mark; nobody to draw again where there is one annotator."""
    of_marks = any(not row.of_text for row in rows)
    if of_marks and view.protocol is not None and not view.protocol.labels and view.study.marks.is_empty():
        way = f"its answers are averaged by `finecomb measure {param('measure', 'answer:NAME')}`"
        raise FinecombError(f"protocol {view.protocol.id} asks for no marks; {way}")
    if resample == "two-way" and view.study.annotations["annotator"].n_unique() == 1:
        raise FinecombError("a two-way interval needs two annotators; there is one, so resample documents")


def find_measure(name: str) -> Measure:
    """The measure of that name, or of the answers to a question; an error that names the nearest otherwise."""
    if name.startswith(ANSWER_PREFIX):
        return _build_answer_measure(name.removeprefix(ANSWER_PREFIX))
    if name not in MEASURES:
        raise FinecombError(f"no measure is called {name!r}{did_you_mean(name, [*MEASURES, 'answer:NAME'])}")
    return MEASURES[name]


class GroupAmounts(NamedTuple):
    """The amounts of one group."""

    labels: list[str]
    top: Floats
    """(labels, annotations)"""
    bottom: Floats
    """(labels, annotations)"""
    lacking: Ints
    """(labels,): marks without what the measure needs."""


@dataclass(frozen=True)
class MeasuredGroup:
    """The annotations of one row of a table, to be measured."""

    reading: AnnotationTable
    choices: MeasureOptions
    columns: dict[str, str | None]
    annotations: Ints

    def findings(self, name: str, amounts: MeasureAmounts) -> list[Finding]:
        """One finding for each label and one for `any`."""
        annotations = self.annotations if amounts.counts is None else self.annotations[amounts.counts[self.annotations]]
        part = self.select_amounts(name, amounts, annotations)
        resampled = (
            self._shared_resamples if len(annotations) == len(self.annotations) else self._draw_resamples(annotations)
        )
        numbers = resampled.resampled_ratios(part.top, part.bottom, self.choices.average)
        tops, bottoms = document_average_terms(
            resampled.sum_per_document(part.top), resampled.sum_per_document(part.bottom), self.choices.average
        )
        signatures = self._signatures(name, part, resampled)
        return [
            self._label_finding(name, part, row, (tops[row], bottoms[row]), numbers[:, row], signatures[row])
            for row in range(len(part.labels))
        ]

    def select_amounts(self, name: str, amounts: MeasureAmounts, annotations: Ints) -> GroupAmounts:
        """The amounts of some annotations and of the labels asked for."""
        labels = self.reading.labels
        whole = self.choices.detail == "any" or find_measure(name).of_text
        rows = np.arange(len(labels) - (name == "fraction"))[-1 if whole else 0 :]
        top, bottom, lacking = (
            None if table is None else table[np.ix_(rows, annotations)]
            for table in (amounts.top, amounts.bottom, amounts.lacking)
        )
        assert top is not None
        assert bottom is not None
        if lacking is None:
            lacking = np.zeros_like(top)
        elif find_measure(name).strict and self.choices.missing == "leave-out":
            top, bottom = np.where(lacking > 0, 0.0, top), np.where(lacking > 0, 0.0, bottom)
        return GroupAmounts([labels[row] for row in rows], top, bottom, lacking.sum(axis=1).astype(np.int64))

    @functools.cached_property
    def _shared_resamples(self) -> Resamples:
        """Shared by all measures, since drawing takes longer than adding up."""
        return self._draw_resamples(self.annotations)

    def _draw_resamples(self, annotations: Ints) -> Resamples:
        document, annotator = (
            self.reading.document_positions[annotations],
            self.reading.annotator_positions[annotations],
        )
        rng = np.random.default_rng(self.choices.seed)
        return draw_annotation_resamples(document, annotator, self.choices.draws, rng, self.choices.resample)

    def _label_finding(
        self,
        name: str,
        part: GroupAmounts,
        row: int,
        sums: tuple[Floats, Floats],
        resampled: Floats,
        signature: Signature,
    ) -> Finding:
        level = self.choices.level if "level" in find_measure(name).uses else ""
        columns: dict[str, object] = {"measure": name, "level": level, "label": part.labels[row], **self.columns}
        why = self.undefined_reason(name, part, row)
        if self.choices.target is not None:
            columns |= target_t_test(self.choices.target, *sums, why)
        if why:
            return Finding(columns, undefined_estimate(signature, why))
        value = float(sums[0].sum() / sums[1].sum())
        return Finding(
            columns,
            estimate_with_interval(
                value, resampled, signature, missing_interval_reason=no_interval_reason(ratio_or_nan(*sums))
            ),
        )

    def undefined_reason(self, name: str, part: GroupAmounts, row: int) -> str:
        """Why there is no value, or nothing."""
        kind = find_measure(name)
        if not len(self.annotations):
            return "no annotations"
        if kind.strict and part.lacking[row] and self.choices.missing == "undefined":
            return self._missing_values_reason(kind, int(part.lacking[row]))
        return "" if part.bottom[row].sum() > 0 else kind.undefined

    def _missing_values_reason(self, kind: Measure, lacking: int) -> str:
        protocol = self.reading.view.protocol
        if kind.needs == "weight" and protocol is not None and not protocol.weights:
            return f"protocol {protocol.id} has no weights"
        what = "a severity that is a number" if kind.needs == "severity" else f"a {kind.needs}"
        return f"{lacking} {'marks do' if lacking > 1 else 'mark does'} not have {what}"

    def _signatures(self, name: str, part: GroupAmounts, resampled: Resamples) -> list[Signature]:
        """What made each row's number."""
        choices, default = self.choices, MeasureOptions()
        uses = find_measure(name).uses
        fields = {_SIGNATURE_NAMES.get(option, option): getattr(choices, option) for option in uses}
        quiet = [option for option in ("level", "antecedents") if getattr(choices, option) == getattr(default, option)]
        fields |= dict.fromkeys(_SIGNATURE_NAMES.get(option, option) for option in quiet if option in uses) | {
            "average": choices.average if choices.average != "annotation" else None
        }
        of = "+".join(f"{column}={value}" for column, value in self.columns.items()) or None
        sizes: dict[str, Any] = {"annotations": len(resampled.document), "documents": resampled.documents.shape[1]}
        sizes |= {"resample": choices.resample if choices.resample != "documents" else None}
        sizes |= {"draws": choices.draws, "seed": choices.seed}
        return [
            Signature.from_fields(
                statistic=name,
                label=label,
                **fields,
                left_out=lacking or None,
                of=of,
                **self.reading.view.fields,
                **sizes,
            )
            for label, lacking in zip(part.labels, part.lacking.tolist(), strict=True)
        ]


def target_t_test(target: float, top: Floats, bottom: Floats, why: str = "") -> dict[str, object]:
    r"""One-sample t-test, two-sided, that sum(top) / sum(bottom) over documents is `target`.

    Over $r_d = top_d - target \cdot bottom_d$, whose mean is 0 when the ratio is the target. With as many annotations
    for every document it is the usual t-test over document means.
    """
    columns: dict[str, object] = {"target": target, "t": math.nan, "df": max(0, len(top) - 1), "p": math.nan}
    if why or len(top) < 2 or not bottom.any():
        return columns | {"test": f"undefined: {why or 'fewer than two documents'}"}
    residuals = top - target * bottom
    if np.ptp(residuals) == 0:
        return columns | {"test": "undefined: all documents give the same value"}
    t = residuals.mean() / (residuals.std(ddof=1) / math.sqrt(len(residuals)))
    p = 2 * scipy.stats.t.sf(abs(t), len(residuals) - 1)
    return columns | {"t": float(t), "p": float(p), "test": "t over documents"}
