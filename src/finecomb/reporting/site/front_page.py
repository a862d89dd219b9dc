"""The first page of a report as HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from finecomb.core.estimate import Estimate
from finecomb.core.palette import DARK_INK, SLOTS, UNLABELLED_SLOT, LabelStyle
from finecomb.reporting.figures import svg
from finecomb.reporting.figures.figure_model import (
    Axis,
    BarFigure,
    DotFigure,
    DotRow,
    LabelPanel,
    PanelFigure,
    Report,
    ReportFigure,
    TableFigure,
    TextBarFigure,
)
from finecomb.reporting.page_shell import DARK, LIGHT

_MAX_TABLE_ROWS = 500  # of a table on the page; all of them are in its CSV
_MAX_TALL_ROWS = 16  # of a figure; more of them are drawn closer together
_MAX_WIDE_BARS = 18  # of a comb; more of them are drawn thinner
_MAX_SHORT_NAME_LENGTH = 10  # letters; longer ones would be cut on a phone where two panels stand side by side
SHADE_COUNT = 16
"""Shades of grey behind words, from nobody to everybody."""
BRAND_HTML = '<div class="brand">Finecomb</div>'
"""The name; its comb is in the style sheet, once for all pages."""


def read_asset(name: str) -> str:
    """A style sheet or script of the report."""
    return (resources.files("finecomb.reporting.site") / "assets" / name).read_text(encoding="utf-8")


def style_sheet(tokens: Mapping[str, str] | None = None) -> str:
    """The tokens of both themes, and the rules; `tokens` are more of them, e.g. rows of readers."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK.items())
    known = [*(slot for family in SLOTS.values() for slot in family), UNLABELLED_SLOT]
    slots = "".join(f".s-{slot.name}{{--c:{slot.light};--k:{slot.light_text}}}" for slot in known)
    dark_slots = "".join(f".s-{slot.name}{{--c:{slot.dark};--k:{DARK_INK}}}" for slot in known)
    strokes = "".join(f"--g-{slot.name}:{_stroke_gradient(slot.light, slot.line)};" for slot in known)
    dark_strokes = "".join(f"--g-{slot.name}:{_stroke_gradient(slot.dark, slot.line)};" for slot in known)
    depths = "".join(
        f"--d{depth}:linear-gradient(color-mix(in srgb,var(--ink) {depth}%,transparent) 0 0);"
        for depth in range(SHADE_COUNT + 1)
    )
    night = f":root{{color-scheme:dark;{dark}{dark_strokes}{depths}--alert:#ff9a90}}{dark_slots}"
    night = f"@media screen and (prefers-color-scheme:dark){{{night}}}"
    depths += "".join(f"--D{depth}:var(--d{depth}) 0 0/100% 29px no-repeat;" for depth in range(SHADE_COUNT + 1))
    more = "".join(f"--{name}:{value};" for name, value in (tokens or {}).items())
    return f":root{{{light}{strokes}{depths}{more}}}{slots}\n{read_asset('report.css')}\n{night}\n"


def print_footer_css(words: str) -> str:
    """A rule that prints words at the foot of each sheet of paper, left of the page's number."""
    quoted = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'@page{{@bottom-left{{content:"{quoted}";font:400 9px var(--sans);color:#666}}}}\n'


def _stroke_gradient(colour: str, line: str) -> str:
    """The line style of a label's group as a gradient, so that it wraps, prints and copies with the words."""
    lengths = {"dashed": (8, 11), "dotted": (3, 6)}.get(line)
    if lengths is None:
        return f"linear-gradient({colour} 0 0)"
    return f"repeating-linear-gradient(90deg,{colour} 0 {lengths[0]}px,transparent {lengths[0]}px {lengths[1]}px)"


def render_report_page(title: str, body: str, root: str = "") -> str:
    """A page that fetches nothing but its own style sheet and script; `root` is the way back to the report's folder."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'self' 'unsafe-inline'; "
        "script-src 'self'; img-src 'self' data:\">"
        f'<title>{escape(title)} · Finecomb</title><link rel="stylesheet" href="{root}assets/report.css">'
        f'<script src="{root}assets/report.js" defer></script></head><body>{body}</body></html>\n'
    )


def render_front_page(report: Report) -> str:
    """The entry page: the answer, then every figure."""
    contents = "".join(
        f'<li><a href="#{figure.id}">{escape(figure.title.partition(" ")[2])}<span class="faint">{number}'
        "</span></a></li>"
        for number, figure in enumerate(report.figures, 1)
    )
    toc = (
        f'<nav class="toc" aria-label="Contents">{BRAND_HTML}<p class="caption" style="margin-top:10px">Report on '
        f'{escape(report.title)}<br>{escape(report.date)}</p><ol><li class="on"><a href="#answer">Answer'
        f"</a></li>{contents}"
        '<li><a href="#made">How this was made</a></li></ol>'
        '<div class="quick-links"><a href="texts.html">All texts</a><a href="tables/index.html">All tables, CSV</a>'
        '<a href="figures/index.html">All figures, SVG</a><a href="datasheet.md">Datasheet</a>'
        '<a href="methods.txt">Paragraph for a paper</a></div>'
        f'<p class="caption foot">Works without a connection.<br>{escape(report.counts)}</p></nav>'
    )
    figures = "".join(_figure_section_html(figure) for figure in report.figures)
    body = f"{_answer_html(report)}{figures}{_provenance_html(report)}"
    return render_report_page(
        f"Report on {report.title}",
        f'<a class="skip" href="#answer">To the answer</a><div class="report-layout">{toc}'
        f'<main class="report-page">{body}</main></div>',
    )


def render_single_figure(figure: ReportFigure) -> str:
    """The body of a page with one figure."""
    return f'<main class="report-page">{BRAND_HTML}{_figure_section_html(figure)}</main>'


def _answer_html(report: Report) -> str:
    answer = report.answer
    drawn = ""
    if answer.difference:
        figure = answer.difference
        plots = "".join(
            _responsive_row_plot(
                row.estimate, figure.axis, 300, 34, name=f"{row.name}: {figure.caption}", open=row.open
            )
            for row in figure.rows
        )
        drawn = (
            f'<figure><figcaption class="caption" style="margin-bottom:4px">{escape(figure.caption)}</figcaption>'
            f"{plots}{_responsive_axis_plot(figure.axis, 300)}</figure>"
        )
    says = "".join(f"<li><b>{escape(part.head)}</b> {escape(part.text)}</li>" for part in answer.statements)
    return (
        f'<div class="answer-header" id="answer"><div><h1 class="lead">{escape(answer.sentence)}</h1>'
        f'<p class="sublead">{escape(answer.numbers)}</p></div>{drawn}</div><ul class="statements">{says}</ul>'
    )


def _figure_section_html(figure: ReportFigure) -> str:
    if figure.empty:
        plot = f'<p class="note">{escape(figure.empty)}</p>'
    else:
        match figure:
            case DotFigure():
                plot = _dot_figure_html(figure)
            case PanelFigure():
                plot = _panel_figure_html(figure)
            case BarFigure():
                plot = _bar_figure_html(figure)
            case TextBarFigure():
                plot = _text_bar_figure_html(figure)
            case TableFigure():
                plot = data_table_html(figure.table)
            case _:
                plot = ""
    return (
        f'<section class="figure-section" id="{figure.id}"><header><h2>{escape(figure.title)}</h2>'
        f'<p class="figure-caption">{escape(figure.caption)}</p></header>{plot}{_figure_footer_html(figure)}</section>'
    )


def _figure_footer_html(figure: ReportFigure) -> str:
    again = f"<dt>Again</dt><dd><code>{escape(figure.command)}</code></dd>" if figure.command else ""
    signature = (
        f'<details class="signature"><summary>signature {figure.signature_hash}</summary><dl class="facts">'
        "<dt>Signature</dt>"
        f"<dd><code>{escape(figure.signature)}</code></dd>{again}</dl></details>"
    )
    behind = (
        f'<a href="{"texts.html" if figure.behind == "#texts" else figure.behind}">texts behind this</a>'
        if figure.behind
        else ""
    )
    drawn = "" if isinstance(figure, TableFigure) else f'<a href="figures/{figure.id}.svg">SVG</a>'
    links = f'<div class="links"><a href="tables/{figure.id}.csv">CSV</a>{drawn}{behind}</div>'
    table = (
        ""
        if isinstance(figure, TableFigure)
        else f'<details class="table-details"><summary>table</summary>{data_table_html(figure.table)}</details>'
    )
    return f"<footer>{signature}{links}{table}</footer>"


def data_table_html(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a plain table; a long one is cut with a word about the rest."""
    if not rows:
        return '<p class="caption">No rows.</p>'
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {name for name in names if all(isinstance(row.get(name), int | float | None) for row in rows)}
    head = "".join(f'<th scope="col"{_numeric_class(name, numeric)}>{escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_numeric_class(name, numeric)}>{escape(format_cell(row.get(name)))}</td>" for name in names)
        + "</tr>"
        for row in rows[:_MAX_TABLE_ROWS]
    )
    more = (
        f'<p class="caption">and {len(rows) - _MAX_TABLE_ROWS:,} more rows in the CSV</p>'
        if len(rows) > _MAX_TABLE_ROWS
        else ""
    )
    return f'<div class="scroll" tabindex="0"><table class="data"><tr>{head}</tr>{body}</table></div>{more}'


def _numeric_class(name: str, numeric: set[str]) -> str:
    return ' class="n"' if name in numeric else ""


def format_cell(value: object) -> str:
    """A value as a table prints it; undefined is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def estimate_html(estimate: Estimate, axis: Axis) -> str:
    """An estimate beside its dot: value in ink, interval in grey, or why there is none."""
    if math.isnan(estimate.value):
        return f'<span class="interval">{escape(estimate.why)}</span>'
    ends = (
        ""
        if math.isnan(estimate.low)
        else f' <span class="interval">{axis.format_value(estimate.low)} to {axis.format_value(estimate.high)}</span>'
    )
    return f'<b class="value">{axis.format_value(estimate.value)}</b>{ends}'


def flag_html(look: LabelStyle) -> str:
    """A label's letters on its colour."""
    return f'<span class="flag s-{look.slot.name}">{escape(look.flag)}</span>'


def _dot_figure_html(figure: DotFigure) -> str:
    second = figure.second_axis
    width = 340 if second else 560
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in figure.heads)
    head = f"<tr>{heads and _column_headers_html(figure)}</tr>" if figure.heads else ""
    rows = "".join(_dot_row_html(row, figure, width) for row in figure.rows)
    ticks = [
        f'<td></td><td class="plot">{_responsive_axis_plot(figure.axis, width if not second else 250)}</td><td></td>'
    ]
    if second:
        ticks.append(f'<td class="plot">{_responsive_axis_plot(second, 150)}</td><td></td>')
    return (
        f'<div class="scroll" tabindex="0"><table class="plot-table{" two" if second else ""}">{head}{rows}'
        f'<tr class="axis" aria-hidden="true">{"".join(ticks)}<td></td></tr></table></div>'
    )


def _column_headers_html(figure: DotFigure) -> str:
    """Heads over the columns: a plot and its numbers share one."""
    heads = [escape(head) for head in figure.heads]
    cells = [f'<th scope="col">{heads[0]}</th>', f'<th scope="col" colspan="2">{heads[1]}</th>']
    if figure.second_axis:
        cells.append(f'<th scope="col" colspan="2">{heads[2]}</th>')
    return "".join(cells) + f'<th scope="col">{heads[-1]}</th>'


def _dot_row_html(row: DotRow, figure: DotFigure, width: int) -> str:
    height = 48 if row.teeth else 36 if len(figure.rows) <= _MAX_TALL_ROWS else 24
    colour = "var(--ink)"
    name = f"{flag_html(row.look)} {escape(row.name)}" if row.look else f'<b class="value">{escape(row.name)}</b>'
    plot = _responsive_row_plot(
        row.estimate, figure.axis, 250 if figure.second_axis else width, height, name=row.name, band=figure.band,
        teeth=row.teeth, open=row.open, colour=colour,
    )  # fmt: skip
    heads = [escape(head, quote=True) for head in figure.heads]
    first = f' data-head="{heads[1]}"' if figure.second_axis and heads else ""
    cells = [f'<td class="name">{name}</td>', f'<td class="plot"{first}>{plot}</td>']
    cells.append(f'<td class="r">{estimate_html(row.estimate, figure.axis)}</td>')
    if figure.second_axis:
        other = row.second
        look = {"name": row.name, "open": row.open or figure.second_is_open, "band": figure.second_band}
        drawn = _responsive_row_plot(other, figure.second_axis, 150, height, **look) if other else ""
        cells.append(f'<td class="plot" data-head="{heads[2]}">{drawn}</td>')
        cells.append(f'<td class="r">{estimate_html(other, figure.second_axis) if other else ""}</td>')
    return f'<tr>{"".join(cells)}<td class="r faint">{escape(row.note)}</td></tr>'


def _panel_figure_html(figure: PanelFigure) -> str:
    drawn, unused = svg.split_unused_panels(figure)
    longest = max((len(row.short or row.name) for panel in drawn for row in panel.rows), default=0)
    wide = min(150, max(48, 8 * longest + 10))
    panels = "".join(_label_panel_html(panel, figure.axis) for panel in drawn)
    kind = "label-panels long" if longest > _MAX_SHORT_NAME_LENGTH else "label-panels"
    never = f'<p class="note">{escape(svg.describe_unused_labels(unused))}</p>' if unused else ""
    return f'<div class="{kind}" style="--names-width:{wide}px">{panels}</div>{never}'


def add_line_breaks(name: str) -> str:
    """A name as HTML that breaks after `/`, `_` and `-` rather than within a word."""
    return re.sub(r"([/_-])(?=\w)", r"\1<wbr>", escape(name))


def _responsive_row_plot(estimate: Estimate, axis: Axis, width: int, height: int, **look: Any) -> str:
    """A row that shrinks with the page."""
    return svg.make_svg_responsive(svg.row_plot(estimate, axis, width, height, **look), width)


def _responsive_axis_plot(axis: Axis, width: int, unit: str = "") -> str:
    return svg.make_svg_responsive(svg.axis_plot(axis, width, unit), width)


def _label_panel_html(panel: LabelPanel, axis: Axis) -> str:
    names = "".join(
        f'<span title="{escape(row.name, quote=True)}">{escape(row.short or row.name)}</span>' for row in panel.rows
    )
    rows = "".join(
        '<div class="panel-row">'
        + _responsive_row_plot(
            row.estimate,
            axis,
            120,
            20,
            name=f"{panel.look.title}, {row.name}",
            colour="var(--c)",
            bare=bool(row.nothing),
        )
        + (f"<em>{escape(row.nothing)}</em>" if row.nothing else "")
        + "</div>"
        for row in panel.rows
    )
    return (
        f'<div class="label-panel s-{panel.look.slot.name}">'
        f"<h3>{flag_html(panel.look)} <span>{add_line_breaks(panel.look.title)}</span></h3>"
        '<div class="panel-body">'
        f'<div class="panel-names" aria-hidden="true">{names}</div>'
        f'<div class="panel-plot">{rows}{_responsive_axis_plot(axis, 120, "%" if axis.percent else "")}</div>'
        "</div></div>"
    )


def _bar_figure_html(figure: BarFigure) -> str:
    most = max((amount for _, amount, _ in figure.bars), default=1.0) or 1.0
    rows = "".join(
        f'<tr><td class="name tight">{escape(name)}</td><td style="width:60%">'
        f'<div class="bar" style="width:{100 * amount / most:.1f}%"></div></td>'
        f'<td class="r">{escape(words)}</td></tr>'
        for name, amount, words in figure.bars
    )
    total = f'<tr><td class="tight"><b>Together</b></td><td></td><td class="r"><b>{escape(figure.total)}</b></td></tr>'
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in figure.facts)
    return f'<div class="bars"><table class="plot-table">{rows}{total}</table><dl class="facts">{facts}</dl></div>'


def _text_bar_figure_html(figure: TextBarFigure) -> str:
    joined = [(name, texts, svg.merge_text_bars(texts)) for name, texts in figure.combs]
    most = max((tooth.value for _, _, teeth in joined for tooth in teeth), default=0.0)
    parts = []
    for name, texts, teeth in joined:
        drawn = "".join(
            f'<a href="{escape(tooth.page, quote=True)}" style="height:{length:.0f}px" '
            f'title="{escape(tooth.document, quote=True)}: {tooth.value:.1f}">'
            f'<span class="visually-hidden">{escape(tooth.document)}</span></a>'
            for tooth, length in zip(teeth, svg.text_bar_heights(teeth, most), strict=True)
        )
        comb = "text-bars many" if len(teeth) > _MAX_WIDE_BARS else "text-bars"
        about = f'<p class="caption"><b>{escape(name)}</b> {svg.describe_bar_group(texts)}</p>'
        parts.append(f'<div><div class="{comb}">{drawn}</div>{about}</div>')
    return f'<div class="bar-groups">{"".join(parts)}</div>'


def _provenance_html(report: Report) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.facts)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    return (
        '<section class="figure-section" id="made"><header><h2>How this was made</h2></header>'
        f'<dl class="facts">{facts}'
        f"</dl>{notes}</section>"
    )
