"""Findings as a picture: dots with intervals in the look of the report, as SVG, PNG or PDF."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Finding
from finecomb.core.palette import UNLABELLED, Look
from finecomb.measure.view import ANY
from finecomb.report.site.model import DotFigure, DotRow, LabelPanel, PanelFigure, ReportFigure, axis
from finecomb.report.site.svg import standalone

ENDINGS = (".svg", ".png", ".pdf")
_SHARED = ("measure", "level", "match", "statistic")
"""Columns that name the figure, not a row of it."""
_LONG = 40  # rows of one figure beyond which nothing can be read
_HEIGHT = re.compile(r'<svg [^>]*width="(\d+)" height="(\d+)"')


def plot(findings: Sequence[Finding], path: Path, looks: Mapping[str | None, Look] | None = None) -> None:
    """Draw findings into a file whose ending says the form; one figure for each measure, below each other."""
    if path.suffix.lower() not in ENDINGS:
        raise FinecombError(f"--plot {path}: the ending says the form; it is one of {', '.join(ENDINGS)}")
    drawing = drawn(findings, looks)
    if path.suffix.lower() == ".svg":
        path.write_text(drawing, encoding="utf-8")
        return
    import vl_convert

    make = vl_convert.svg_to_pdf(drawing) if path.suffix.lower() == ".pdf" else vl_convert.svg_to_png(drawing, scale=2)
    path.write_bytes(make)


def drawn(findings: Sequence[Finding], looks: Mapping[str | None, Look] | None = None) -> str:
    """Findings as one SVG."""
    pictures = [standalone(figure) for figure in figures(findings, looks)]
    if not pictures:
        raise FinecombError("--plot: there is nothing to draw: no estimate has a value")
    sizes = [tuple(int(size) for size in match.groups()) for match in map(_HEIGHT.search, pictures) if match]
    width, height = max(wide for wide, _ in sizes), sum(tall for _, tall in sizes) + 24 * (len(sizes) - 1)
    parts, top = [], 0
    for picture, (_, tall) in zip(pictures, sizes, strict=True):
        parts.append(picture.replace("<svg ", f'<svg y="{top}" ', 1))
        top += tall + 24
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(parts)}</svg>'


def figures(findings: Sequence[Finding], looks: Mapping[str | None, Look] | None = None) -> list[ReportFigure]:
    """One figure for each measure: panels where there are labels and systems, else rows."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if not _is_undefined(finding):
            title = ", ".join(str(finding.columns[name]) for name in _SHARED if finding.columns.get(name))
            groups.setdefault(title, []).append(finding)
    return [_figure(title, group, looks or {}) for title, group in groups.items()]


def _is_undefined(finding: Finding) -> bool:
    return finding.estimate.value != finding.estimate.value


def _figure(title: str, findings: Sequence[Finding], looks: Mapping[str | None, Look]) -> ReportFigure:
    labels = list(dict.fromkeys(str(finding.columns.get("label", ANY)) for finding in findings))
    names = list(dict.fromkeys(_name(finding, with_label=False) for finding in findings))
    table = tuple({**finding.columns, "value": finding.estimate.value} for finding in findings)
    caption, signature = "With 95% intervals.", str(findings[0].estimate.signature)
    if len(labels) > 1 and len(names) > 1:
        panels = tuple(_panel(label, findings, looks) for label in labels)
        scale = axis([row.estimate for panel in panels for row in panel.rows])
        return PanelFigure("plot", title, caption, table, signature, panels=panels, axis=scale)
    rows = tuple(DotRow(_name(finding, len(labels) > 1), finding.estimate) for finding in findings[:_LONG])
    return DotFigure("plot", title, caption, table, signature, rows=rows, axis=axis([row.estimate for row in rows]))


def _panel(label: str, findings: Sequence[Finding], looks: Mapping[str | None, Look]) -> LabelPanel:
    rows = [finding for finding in findings if str(finding.columns.get("label", ANY)) == label]
    look = looks.get(label) or Look(label, label, UNLABELLED, label[:2].upper(), "")
    return LabelPanel(look, tuple(DotRow(_name(finding, with_label=False), finding.estimate) for finding in rows))


def _name(finding: Finding, with_label: bool) -> str:
    """What a row is about, in the order of its columns."""
    skipped = {*_SHARED, *(() if with_label else ("label",))}
    parts = [
        str(value)
        for name, value in finding.columns.items()
        if name not in skipped and isinstance(value, str) and value
    ]
    return " · ".join(parts) or str(finding.columns.get("label", ANY))
