"""Cross-tables of labels by another column, normalised by column or by label, and pivot tables of findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.frames import group_sort_key
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import (
    draw_annotation_resamples,
    estimate_with_interval,
    few_documents_reason,
    ratio_or_nan,
)
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES, MeasureAmounts, MeasureOptions
from finecomb.statistics.measures.unit_grid import AnnotationMatrix, Floats, Ints, build_annotation_matrix
from finecomb.statistics.selection.view import View

Normalise = Literal["column", "label"]
_NO_MARKS_REASON = "no marks, so there are no shares"


def cross_tabulate(
    view: View, column: str = "topic", measure: str = "coverage", normalise: Normalise = "column", **choices: Any
) -> list[Finding]:
    """Cross-tabulate a measure by label and one column, as shares of each column or of each label.

    Dou et al. (2022), Figure 13. With `column`, the shares of a topic add up to 1 over labels; with `label`, the shares
    of a label add up to 1 over topics. `choices` holds the options of `measure`. The interval resamples documents
    within each value of the column. Cells are NaN where nothing was marked.
    """
    options = MeasureOptions(**choices)
    matrix = build_annotation_matrix(view, [column], options.level, options.tokens, options.antecedents)
    amounts = ANNOTATION_MEASURES[measure].amounts(matrix, options)
    groups = matrix.groups([column])
    # one generator per column, so that columns are resampled independently
    rngs = np.random.default_rng(options.seed).spawn(len(groups))
    cells = [
        _compute_column(matrix, amounts, members, options, rng) for (_, members), rng in zip(groups, rngs, strict=True)
    ]
    if not cells:
        return []
    axis = -2 if normalise == "column" else -1  # arrays are (..., labels, groups)
    value, resampled = (
        _normalise_shares(np.stack(parts, axis=-1), axis) for parts in list(zip(*cells, strict=True))[:2]
    )
    fewest = min(cell.documents for cell in cells)
    findings = []
    for position, (columns, _) in enumerate(groups):
        documents = cells[position].documents
        without = few_documents_reason(documents if normalise == "column" else fewest)
        signature_fields: dict[str, Any] = {
            **view.fields,
            "documents": documents,
            "draws": options.draws,
            "seed": options.seed,
        }
        for row, label in enumerate(_row_labels(matrix)):
            signature = Signature.from_fields(
                statistic=measure,
                label=label,
                normalise=normalise,
                of=f"{column}={columns[column]}",
                **signature_fields,
            )
            estimate = estimate_with_interval(
                float(value[row, position]), resampled[:, row, position], signature, _NO_MARKS_REASON, without
            )
            findings.append(Finding({"measure": measure, "label": label, **columns}, estimate))
    return findings


def _row_labels(matrix: AnnotationMatrix) -> tuple[str, ...]:
    return matrix.labels[:-1] or matrix.labels


class _CrossTableColumn(NamedTuple):
    """One column of a cross-table."""

    values: Floats
    """(labels,): value of each label."""
    drawn: Floats
    """(draws, labels): value of each label in each resample."""
    documents: int


def _compute_column(
    matrix: AnnotationMatrix, amounts: MeasureAmounts, at: Ints, options: MeasureOptions, rng: np.random.Generator
) -> _CrossTableColumn:
    members = at if amounts.counts is None else at[amounts.counts[at]]
    resampled = draw_annotation_resamples(
        matrix.document_positions[members], matrix.annotator_positions[members], options.draws, rng, "documents"
    )
    rows = len(_row_labels(matrix))
    top, bottom = amounts.top[:rows, members], amounts.bottom[:rows, members]
    values = ratio_or_nan(top.sum(axis=1), bottom.sum(axis=1))
    return _CrossTableColumn(values, resampled.resampled_ratios(top, bottom), resampled.documents.shape[1])


def _normalise_shares(values: Floats, axis: int) -> Floats:
    """Divide values by their sum along an axis."""
    return ratio_or_nan(values, np.broadcast_to(np.nansum(values, axis=axis, keepdims=True), values.shape))


def pivot_findings(
    findings: Iterable[Finding], rows: str | Sequence[str], columns: str, value: str = "value", as_given: bool = False
) -> pl.DataFrame:
    """Pivot findings into a table with the values of `rows` as row names and the values of `columns` as column names.

    `value` is value, low or high. Cells without a finding or a value are null. Columns are sorted, with numbers before
    words; with `as_given`, they keep the order of the findings.
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
