"""Findings as a picture: dots with intervals in the look of the report, as SVG, PNG or PDF."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from finecomb.core.errors import FinecombError, param
from finecomb.core.estimate import Finding
from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle
from finecomb.formats.atomic_file import write_file
from finecomb.reporting.figures.figure_model import DotFigure, DotRow, LabelPanel, PanelFigure, ReportFigure, build_axis
from finecomb.reporting.figures.svg import standalone_svg
from finecomb.statistics.selection.view import ANY

IMAGE_SUFFIXES = (".svg", ".png", ".pdf")
"""Endings of a picture."""
_FIGURE_COLUMNS = ("measure", "level", "match", "statistic")
"""Columns that name the figure, not a row of it."""
_RESULT_COLUMNS = ("p", "p_adjusted", "df", "t", "a_mean", "b_mean", "mean", "sd", "judged", "artefacts", "errors", "n")
"""Columns that are results themselves, so that they name nothing."""
_MAX_ROWS = 40  # rows of one figure beyond which nothing can be read
_SVG_SIZE = re.compile(r'<svg [^>]*width="(\d+)" height="(\d+)"')


def save_plot(findings: Sequence[Finding], path: Path, looks: Mapping[str | None, LabelStyle] | None = None) -> None:
    """Draw findings into a file whose ending says the form; one figure for each measure, below each other."""
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise FinecombError(
            f"{param('plot', path)}: the ending says the form; it is one of {', '.join(IMAGE_SUFFIXES)}"
        )
    drawing = draw_findings_svg(findings, looks)
    if path.suffix.lower() == ".svg":
        write_file(path, drawing)
        return
    import vl_convert

    make = vl_convert.svg_to_pdf(drawing) if path.suffix.lower() == ".pdf" else vl_convert.svg_to_png(drawing, scale=2)
    write_file(path, make)


def draw_findings_svg(findings: Sequence[Finding], looks: Mapping[str | None, LabelStyle] | None = None) -> str:
    """Findings as one SVG."""
    pictures = [standalone_svg(figure) for figure in build_figures(findings, looks)]
    if not pictures:
        raise FinecombError(f"{param('plot')}: there is nothing to draw: no estimate has a value")
    sizes = [tuple(int(size) for size in match.groups()) for match in map(_SVG_SIZE.search, pictures) if match]
    width, height = max(wide for wide, _ in sizes), sum(tall for _, tall in sizes) + 24 * (len(sizes) - 1)
    parts, top = [], 0
    for picture, (_, tall) in zip(pictures, sizes, strict=True):
        parts.append(picture.replace("<svg ", f'<svg y="{top}" ', 1))
        top += tall + 24
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(parts)}</svg>'


def build_figures(
    findings: Sequence[Finding], looks: Mapping[str | None, LabelStyle] | None = None
) -> list[ReportFigure]:
    """One figure for each measure: panels where there are labels and systems, else rows."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if not _is_undefined(finding):
            title = ", ".join(str(finding.columns[name]) for name in _FIGURE_COLUMNS if finding.columns.get(name))
            groups.setdefault(title, []).append(finding)
    return [_build_figure(title, group, looks or {}) for title, group in groups.items()]


def _is_undefined(finding: Finding) -> bool:
    return finding.estimate.value != finding.estimate.value


def _build_figure(title: str, findings: Sequence[Finding], looks: Mapping[str | None, LabelStyle]) -> ReportFigure:
    labels = list(dict.fromkeys(str(finding.columns.get("label", ANY)) for finding in findings))
    names = row_names(findings, skipped=("label",))
    table = tuple({**finding.columns, "value": finding.estimate.value} for finding in findings)
    caption, signature = "With 95% intervals.", str(findings[0].estimate.signature)
    if len(labels) > 1 and len(set(names)) > 1:
        panels = tuple(_build_label_panel(label, findings, names, looks) for label in labels)
        scale = build_axis([row.estimate for panel in panels for row in panel.rows])
        return PanelFigure("plot", title, caption, table, signature, panels=panels, axis=scale)
    rows = tuple(map(DotRow, row_names(findings)[:_MAX_ROWS], [finding.estimate for finding in findings]))
    more = len(findings) - len(rows)
    caption += f" {more} more rows are not drawn." if more else ""
    return DotFigure(
        "plot", title, caption, table, signature, rows=rows, axis=build_axis([row.estimate for row in rows])
    )


def _build_label_panel(
    label: str, findings: Sequence[Finding], names: Sequence[str], looks: Mapping[str | None, LabelStyle]
) -> LabelPanel:
    rows = [
        DotRow(name, finding.estimate)
        for name, finding in zip(names, findings, strict=True)
        if str(finding.columns.get("label", ANY)) == label
    ]
    look = looks.get(label) or LabelStyle(label, label, UNLABELLED_SLOT, label[:2].upper(), "")
    return LabelPanel(look, tuple(rows[:_MAX_ROWS]))


def row_names(findings: Sequence[Finding], skipped: Sequence[str] = ()) -> list[str]:
    """What tells each finding from the others: its words that vary, then numbers where words are not enough."""
    columns = [name for name in dict.fromkeys(name for one in findings for name in one.columns) if name not in skipped]
    columns = [name for name in columns if name not in _FIGURE_COLUMNS]
    varying = [name for name in columns if len({str(finding.columns.get(name)) for finding in findings}) > 1]
    words = [name for name in varying if any(isinstance(finding.columns.get(name), str) for finding in findings)]
    chosen = words or [name for name in columns if isinstance(findings[0].columns.get(name), str)][:1]
    for number in [name for name in varying if name not in words and name not in _RESULT_COLUMNS]:
        if _is_unique_key(findings, [*skipped, *chosen]):
            break
        chosen.append(number)
    return [_format_row_name(finding, [name for name in columns if name in chosen]) for finding in findings]


def _is_unique_key(findings: Sequence[Finding], columns: Sequence[str]) -> bool:
    """Whether these columns tell all findings from each other."""
    return len({tuple(str(finding.columns.get(name)) for name in columns) for finding in findings}) == len(findings)


def _format_row_name(finding: Finding, columns: Sequence[str]) -> str:
    """A row in words: texts as they are, numbers with their name."""
    parts = [(name, finding.columns.get(name)) for name in columns]
    texts = [
        str(value) if isinstance(value, str) else f"{name} {value:g}" for name, value in parts if _is_nonempty(value)
    ]
    return " · ".join(texts) or str(finding.columns.get("label", ANY))


def _is_nonempty(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int | float) and value == value)
