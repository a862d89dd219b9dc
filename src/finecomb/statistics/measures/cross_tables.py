"""Labels against topics, models or settings: tables normalised both ways, and findings as a grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import (
    draw_annotation_resamples,
    estimate_with_interval,
    few_documents_reason,
    ratio_or_nan,
)
from finecomb.statistics.measures.annotation_matrix import AnnotationMatrix, Floats, build_annotation_matrix
from finecomb.statistics.measures.annotation_measures import MeasureAmounts, MeasureOptions, find_measure
from finecomb.statistics.measures.study_counts import group_sort_key
from finecomb.statistics.measures.unit_grid import Ints
from finecomb.statistics.selection.view import View

Normalise = Literal["column", "label"]
_NO_MARKS = "no marks to take a share of"


def cross_tabulate(
    view: View, column: str = "topic", measure: str = "coverage", normalise: Normalise = "column", **choices: Any
) -> list[Finding]:
    """A measure by label and by one column, as shares: of each column, or of each label over the columns.

    Dou et al. (2022), Figure 13. Shares of a topic add up to 1 over labels (`column`), shares of a label over topics
    (`label`). `choices` are those of `measures.measure`. The interval draws documents again within each column value.
    NaN where nothing was marked.
    """
    options = MeasureOptions(**choices)
    reading = build_annotation_matrix(view, [column], options.level, options.tokens, options.antecedents)
    amounts = find_measure(measure).amounts(reading, options)
    groups = reading.groups([column])
    rngs = np.random.default_rng(options.seed).spawn(len(groups))
    cells = [_compute_column(reading, amounts, at, options, rng) for (_, at), rng in zip(groups, rngs, strict=True)]
    if not cells:
        return []
    axis = -2 if normalise == "column" else -1  # arrays are (..., labels, groups)
    value, resampled = (
        _normalise_shares(np.stack(parts, axis=-1), axis) for parts in list(zip(*cells, strict=True))[:2]
    )
    fewest = min(cell.documents for cell in cells)
    findings = []
    for place, (columns, _) in enumerate(groups):
        documents = cells[place].documents
        without = few_documents_reason(documents if normalise == "column" else fewest)
        signature_fields: dict[str, Any] = {
            **view.fields,
            "documents": documents,
            "draws": options.draws,
            "seed": options.seed,
        }
        for row, label in enumerate(_row_labels(reading)):
            signature = Signature.from_fields(
                statistic=measure,
                label=label,
                normalise=normalise,
                of=f"{column}={columns[column]}",
                **signature_fields,
            )
            estimate = estimate_with_interval(
                float(value[row, place]), resampled[:, row, place], signature, _NO_MARKS, without
            )
            findings.append(Finding({"measure": measure, "label": label, **columns}, estimate))
    return findings


def _row_labels(reading: AnnotationMatrix) -> tuple[str, ...]:
    return reading.labels[:-1] or reading.labels


class _CrossedColumn(NamedTuple):
    """One column of the table."""

    values: Floats
    """(labels,)"""
    drawn: Floats
    """(draws, labels)"""
    documents: int


def _compute_column(
    reading: AnnotationMatrix, amounts: MeasureAmounts, at: Ints, options: MeasureOptions, rng: np.random.Generator
) -> _CrossedColumn:
    members = at if amounts.counts is None else at[amounts.counts[at]]
    again = draw_annotation_resamples(
        reading.document_positions[members], reading.annotator_positions[members], options.draws, rng, options.resample
    )
    rows = len(_row_labels(reading))
    top, bottom = amounts.top[:rows, members], amounts.bottom[:rows, members]
    values = ratio_or_nan(top.sum(axis=1), bottom.sum(axis=1))
    return _CrossedColumn(values, again.resampled_ratios(top, bottom), again.documents.shape[1])


def _normalise_shares(values: Floats, axis: int) -> Floats:
    """Values over their sum along an axis."""
    return ratio_or_nan(values, np.broadcast_to(np.nansum(values, axis=axis, keepdims=True), values.shape))


def pivot(
    findings: Iterable[Finding], rows: str | Sequence[str], columns: str, value: str = "value", as_given: bool = False
) -> pl.DataFrame:
    """Findings as a grid: `rows` down, the values of `columns` across, e.g. temperature by top_p.

    `value` is value, low or high. What was not measured, or has no value, is null. Columns are in the order of numbers,
    then of words; with `as_given` in that of the findings.
    """
    down = [rows] if isinstance(rows, str) else list(rows)
    table = [
        {
            **{name: _cell_text(finding.columns[name]) for name in (*down, columns)},
            "value": _estimate_field_or_none(finding.estimate, value),
        }
        for finding in findings
    ]
    kinds = dict.fromkeys((*down, columns), pl.String) | {"value": pl.Float64}
    grid = pl.DataFrame(table, kinds).pivot(columns, index=down, values="value", aggregate_function=None)
    if as_given:
        return grid
    across = sorted(grid.columns[len(down) :], key=lambda name: group_sort_key([name or None]))
    return grid.select(*down, *across)


def _cell_text(value: object) -> str:
    return "" if value is None else str(value)


def _estimate_field_or_none(estimate: Estimate, name: str) -> float | None:
    number = float(getattr(estimate, name))
    return None if math.isnan(number) else number
