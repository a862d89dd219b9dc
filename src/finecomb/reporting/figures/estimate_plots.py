"""Plots of findings: dots with intervals in the style of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from finecomb.core.errors import FinecombError, param
from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle
from finecomb.core.results import Finding
from finecomb.reporting.figures.figure_model import (
    BaseFigure,
    DotFigure,
    DotRow,
    FigureStack,
    LabelPanel,
    PanelFigure,
    build_axis,
    format_count_with_noun,
)
from finecomb.statistics.selection.view import ANY_LABEL

_FIGURE_COLUMNS = ("measure", "level", "match", "statistic")
"""Columns that appear in the title of a figure instead of in its row names."""
_RESULT_COLUMNS = ("p", "p_adjusted", "df", "t", "a_mean", "b_mean", "mean", "sd", "judged", "artefacts", "errors", "n")
"""Columns that hold results and are therefore not used to name rows."""
_MAX_ROWS = 40  # per figure; more rows would be illegible


def plot_findings(findings: Sequence[Finding], styles: Mapping[str | None, LabelStyle] | None = None) -> FigureStack:
    """Return a figure of findings with one plot per measure, from top to bottom."""
    figures = build_figures(findings, styles)
    if not figures:
        raise FinecombError(f"{param('plot')}: no estimate has a value, so there is nothing to draw")
    title = ", ".join(figure.title for figure in figures)
    return FigureStack("plot", title, figures[0].caption, signature=figures[0].signature, figures=tuple(figures))


def build_figures(
    findings: Sequence[Finding], styles: Mapping[str | None, LabelStyle] | None = None
) -> list[BaseFigure]:
    """Build one figure per measure: label panels if labels have several rows each, dot rows otherwise."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if not math.isnan(finding.estimate.value):
            title = ", ".join(str(finding.columns[name]) for name in _FIGURE_COLUMNS if finding.columns.get(name))
            groups.setdefault(title, []).append(finding)
    return [_build_figure(title, group, styles or {}) for title, group in groups.items()]


def _build_figure(title: str, findings: Sequence[Finding], styles: Mapping[str | None, LabelStyle]) -> BaseFigure:
    table = tuple({**finding.columns, "value": finding.estimate.value} for finding in findings)
    caption, signature = "With 95% intervals.", str(findings[0].estimate.signature)
    by_label: dict[str, list[DotRow]] = {}
    for finding, name in zip(findings, unique_row_names(findings, skipped=("label",)), strict=True):
        by_label.setdefault(str(finding.columns.get("label", ANY_LABEL)), []).append(DotRow(name, finding.estimate))
    if 1 < len(by_label) < len(findings):  # with one row per label, labels are the rows
        panels = tuple(
            LabelPanel(
                styles.get(label) or LabelStyle(label, label, UNLABELLED_SLOT, label[:2].upper(), ""),
                tuple(rows[:_MAX_ROWS]),
            )
            for label, rows in by_label.items()
        )
        scale = build_axis([row.estimate for panel in panels for row in panel.rows])
        return PanelFigure("plot", title, caption, table, signature, panels=panels, axis=scale)
    drawn = list(zip(findings, unique_row_names(findings), strict=True))[:_MAX_ROWS]
    styled = styles if len(by_label) > 1 else {}
    rows = tuple(
        DotRow(name, finding.estimate, style=styled.get(str(finding.columns.get("label")))) for finding, name in drawn
    )
    more = len(findings) - len(rows)
    caption += f" {format_count_with_noun(more, 'more row')} not drawn." if more else ""
    scale = build_axis([row.estimate for row in rows])
    return DotFigure("plot", title, caption, table, signature, rows=rows, axis=scale)


def unique_row_names(findings: Sequence[Finding], skipped: Sequence[str] = ()) -> list[str]:
    """Name each finding by its text columns that vary, adding numeric columns until names are unique.

    Text values appear unchanged, and numbers after the name of their column.
    """
    left_out = (*skipped, *_FIGURE_COLUMNS)
    columns = [name for name in dict.fromkeys(name for row in findings for name in row.columns) if name not in left_out]
    varying = [name for name in columns if len({str(finding.columns.get(name)) for finding in findings}) > 1]
    words = [name for name in varying if any(isinstance(finding.columns.get(name), str) for finding in findings)]
    name_columns = words or [name for name in columns if isinstance(findings[0].columns.get(name), str)][:1]
    for number in [name for name in varying if name not in words and name not in _RESULT_COLUMNS]:
        keys = {tuple(str(row.columns.get(name)) for name in (*skipped, *name_columns)) for row in findings}
        if len(keys) == len(findings):
            break
        name_columns.append(number)
    names = []
    for finding in findings:
        cells = [(name, finding.columns.get(name)) for name in columns if name in name_columns]
        texts = [
            value if isinstance(value, str) else f"{name} {value:g}"
            for name, value in cells
            if isinstance(value, str | int | float) and value != "" and value == value
        ]
        names.append(" · ".join(texts) or str(finding.columns.get("label", ANY_LABEL)))
    return names
