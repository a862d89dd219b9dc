"""HTML of the first page of a report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources

from finecomb.core.palette import DARK_INK, SLOTS_BY_FAMILY, UNLABELLED_SLOT, LabelStyle
from finecomb.core.results import Estimate
from finecomb.reporting.figures import svg
from finecomb.reporting.figures.figure_model import (
    Axis,
    BarFigure,
    BaseFigure,
    DotFigure,
    DotRow,
    LabelPanel,
    PanelFigure,
    Report,
    TableFigure,
    TextBarFigure,
    describe_unused_labels,
    format_count_with_noun,
)
from finecomb.reporting.page_shell import DARK_COLOURS, LIGHT_COLOURS

_MAX_TABLE_ROWS = 500  # rows per table on the page; the CSV has all rows
_MAX_TALL_ROWS = 16  # figures with more rows are drawn more densely
_MAX_BAR_HEIGHT = 76  # px
_MAX_WIDE_BARS = 18  # systems with more bars get thinner ones
_MAX_SHORT_NAME_LENGTH = 10  # characters; longer names would be cut off on a phone, where two panels are side by side
MARKED_SHARE_SHADE_COUNT = 16
"""Number of grey shades for the share of people who marked a word."""
BRAND_HTML = '<div class="brand">Finecomb</div>'
"""Product name as HTML; the style sheet adds the logo, so that pages need not contain it."""


def read_asset(name: str) -> str:
    """Read a style sheet or script of the report."""
    return (resources.files("finecomb.reporting.site") / "assets" / name).read_text(encoding="utf-8")


def report_style_sheet(tokens: Mapping[str, str] | None = None) -> str:
    """Return the style sheet with the colours of both themes; `tokens` adds CSS variables, e.g. for annotator rows."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT_COLOURS.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK_COLOURS.items())
    known = [*(slot for family in SLOTS_BY_FAMILY.values() for slot in family), UNLABELLED_SLOT]
    slots = "".join(f".s-{slot.name}{{--c:{slot.light};--k:{slot.light_text}}}" for slot in known)
    dark_slots = "".join(f".s-{slot.name}{{--c:{slot.dark};--k:{DARK_INK}}}" for slot in known)
    strokes = "".join(f"--g-{slot.name}:{_stroke_css_gradient(slot.light, slot.line)};" for slot in known)
    dark_strokes = "".join(f"--g-{slot.name}:{_stroke_css_gradient(slot.dark, slot.line)};" for slot in known)
    depths = "".join(
        f"--d{depth}:linear-gradient(color-mix(in srgb,var(--ink) {depth}%,transparent) 0 0);"
        for depth in range(MARKED_SHARE_SHADE_COUNT + 1)
    )
    night = f":root{{color-scheme:dark;{dark}{dark_strokes}{depths}--alert:#ff9a90}}{dark_slots}"
    night = f"@media screen and (prefers-color-scheme:dark){{{night}}}"
    depths += "".join(
        f"--D{depth}:var(--d{depth}) 0 0/100% 29px no-repeat;" for depth in range(MARKED_SHARE_SHADE_COUNT + 1)
    )
    more = "".join(f"--{name}:{value};" for name, value in (tokens or {}).items())
    return f":root{{{light}{strokes}{depths}{more}}}{slots}\n{read_asset('report.css')}\n{night}\n"


def printed_page_footer_css(words: str) -> str:
    """Return a CSS rule that prints a footer on each sheet of paper, left of the page number."""
    quoted = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'@page{{@bottom-left{{content:"{quoted}";font:400 9px var(--sans);color:#666}}}}\n'


def _stroke_css_gradient(colour: str, line: str) -> str:
    """Return the line style of a label group as a CSS gradient, which wraps, prints and copies with the text."""
    lengths = {"dashed": (8, 11), "dotted": (3, 6)}.get(line)
    if lengths is None:
        return f"linear-gradient({colour} 0 0)"
    return f"repeating-linear-gradient(90deg,{colour} 0 {lengths[0]}px,transparent {lengths[0]}px {lengths[1]}px)"


def render_report_page(title: str, body: str, root: str = "") -> str:
    """Render a page that loads only the style sheet and script of the report; `root` is the path to its folder."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'self' 'unsafe-inline'; "
        "script-src 'self'; img-src 'self' data:\">"
        f'<title>{escape(title)} · Finecomb</title><link rel="stylesheet" href="{root}assets/report.css">'
        f'<script src="{root}assets/report.js" defer></script></head><body>{body}</body></html>\n'
    )


def render_front_page(report: Report) -> str:
    """Render the first page: the main result, then all figures."""
    contents = "".join(
        f'<li><a href="#{figure.id}">{escape(figure.title.partition(" ")[2])}<span class="faint">{number}'
        "</span></a></li>"
        for number, figure in enumerate(report.figures, 1)
    )
    toc = (
        f'<nav class="toc" aria-label="Contents">{BRAND_HTML}<p class="caption" style="margin-top:10px">Report on '
        f'{escape(report.title)}<br>{escape(report.date)}</p><ol><li class="on"><a href="#answer">Main result'
        f"</a></li>{contents}"
        '<li><a href="#made">Methods and data</a></li></ol>'
        '<div class="quick-links"><a href="texts.html">All texts</a><a href="tables/index.html">All tables (CSV)</a>'
        '<a href="figures/index.html">All figures (SVG)</a><a href="datasheet.md">Datasheet</a>'
        '<a href="methods.txt">Methods paragraph</a></div>'
        f'<p class="caption foot">Works offline.<br>{escape(report.counts)}</p></nav>'
    )
    figures = "".join(_figure_section_html(figure) for figure in report.figures)
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.facts)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    return render_report_page(
        f"Report on {report.title}",
        f'<a class="skip" href="#answer">Skip to main result</a><div class="report-layout">{toc}'
        f'<main class="report-page">{_headline_html(report)}{figures}'
        '<section class="figure-section" id="made"><header><h2>Methods and data</h2></header>'
        f'<dl class="facts">{facts}</dl>{notes}</section></main></div>',
    )


def render_figure_page_body(figure: BaseFigure) -> str:
    """Render the body of a page with a single figure."""
    return f'<main class="report-page">{BRAND_HTML}{_figure_section_html(figure)}</main>'


def _headline_html(report: Report) -> str:
    headline = report.headline
    plot = ""
    if headline.difference:
        figure = headline.difference
        plots = "".join(_row_plot(row, figure.axis, 300, 34, f"{row.name}: {figure.caption}") for row in figure.rows)
        plot = (
            f'<figure><figcaption class="caption" style="margin-bottom:4px">{escape(figure.caption)}</figcaption>'
            f"{plots}{svg.axis_svg(figure.axis, 300)}</figure>"
        )
    statements = "".join(
        f"<li><b>{escape(statement.heading)}</b> {escape(statement.text)}</li>" for statement in headline.statements
    )
    return (
        f'<div class="answer-header" id="answer"><div><h1 class="lead">{escape(headline.sentence)}</h1>'
        f'<p class="sublead">{escape(headline.numbers)}</p></div>{plot}</div><ul class="statements">{statements}</ul>'
    )


def _figure_section_html(figure: BaseFigure) -> str:
    if figure.empty:
        plot = f'<p class="note">{escape(figure.empty)}</p>'
    else:
        match figure:
            case DotFigure():
                plot = _dot_figure_html(figure)
            case PanelFigure():
                drawn, unused = figure.split_unused_panels()
                longest = max((len(row.short or row.name) for panel in drawn for row in panel.rows), default=0)
                wide = min(150, max(48, 8 * longest + 10))
                panels = "".join(_label_panel_html(panel, figure.axis) for panel in drawn)
                kind = "label-panels long" if longest > _MAX_SHORT_NAME_LENGTH else "label-panels"
                never = f'<p class="note">{escape(describe_unused_labels(unused))}</p>' if unused else ""
                plot = f'<div class="{kind}" style="--names-width:{wide}px">{panels}</div>{never}'
            case BarFigure():
                max_amount = max((amount for _, amount, _ in figure.bars), default=1.0) or 1.0
                rows = "".join(
                    f'<tr><td class="name tight">{escape(name)}</td><td style="width:60%">'
                    f'<div class="bar" style="width:{100 * amount / max_amount:.1f}%"></div></td>'
                    f'<td class="r">{escape(words)}</td></tr>'
                    for name, amount, words in figure.bars
                )
                total = f'<td class="tight"><b>Total</b></td><td></td><td class="r"><b>{escape(figure.total)}</b></td>'
                facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in figure.facts)
                plot = (
                    f'<div class="bars"><table class="plot-table">{rows}<tr>{total}</tr></table>'
                    f'<dl class="facts">{facts}</dl></div>'
                )
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


def _figure_footer_html(figure: BaseFigure) -> str:
    command = f"<dt>Command</dt><dd><code>{escape(figure.command)}</code></dd>" if figure.command else ""
    signature = (
        f'<details class="signature"><summary>Signature {figure.signature_hash}</summary><dl class="facts">'
        "<dt>Signature</dt>"
        f"<dd><code>{escape(figure.signature)}</code></dd>{command}</dl></details>"
    )
    texts = (
        f'<a href="{"texts.html" if figure.behind == "#texts" else figure.behind}">Texts</a>' if figure.behind else ""
    )
    image = "" if isinstance(figure, TableFigure) else f'<a href="figures/{figure.id}.svg">SVG</a>'
    links = f'<div class="links"><a href="tables/{figure.id}.csv">CSV</a>{image}{texts}</div>'
    table = (
        ""
        if isinstance(figure, TableFigure)
        else f'<details class="table-details"><summary>Table</summary>{data_table_html(figure.table)}</details>'
    )
    return f"<footer>{signature}{links}{table}</footer>"


def data_table_html(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as an HTML table; rows beyond the limit are counted below it."""
    if not rows:
        return '<p class="caption">No rows.</p>'
    css_class = {
        name: ' class="n"' if all(isinstance(row.get(name), int | float | None) for row in rows) else ""
        for name in dict.fromkeys(name for row in rows for name in row)
    }
    head = "".join(f'<th scope="col"{css}>{escape(name)}</th>' for name, css in css_class.items())
    body = "".join(
        "<tr>"
        + "".join(f"<td{css}>{escape(format_cell(row.get(name)))}</td>" for name, css in css_class.items())
        + "</tr>"
        for row in rows[:_MAX_TABLE_ROWS]
    )
    more = (
        f'<p class="caption">{format_count_with_noun(len(rows) - _MAX_TABLE_ROWS, "more row")} in the CSV file</p>'
        if len(rows) > _MAX_TABLE_ROWS
        else ""
    )
    return f'<div class="scroll" tabindex="0"><table class="data"><tr>{head}</tr>{body}</table></div>{more}'


def format_cell(value: object) -> str:
    """Format a table cell; undefined values are a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def estimate_html(estimate: Estimate, axis: Axis) -> str:
    """Return an estimate with its interval in grey, or the reason why it is undefined."""
    if math.isnan(estimate.value):
        return f'<span class="interval">{escape(estimate.why)}</span>'
    ends = (
        ""
        if math.isnan(estimate.low)
        else f' <span class="interval">{axis.format_value(estimate.low)} to {axis.format_value(estimate.high)}</span>'
    )
    return f'<b class="value">{axis.format_value(estimate.value)}</b>{ends}'


def flag_html(style: LabelStyle) -> str:
    """Return the flag of a label as HTML."""
    return f'<span class="flag s-{style.slot.name}">{escape(style.flag)}</span>'


def _dot_figure_html(figure: DotFigure) -> str:
    """Return the rows of a figure as a table; a plot and its values share one column header."""
    second, heads = figure.second_axis, [escape(head) for head in figure.headers]
    width = 250 if second else 560
    rows, ticks = [], [f'<td></td><td class="plot">{svg.axis_svg(figure.axis, width)}</td><td></td>']
    if heads:
        spans = ["", ' colspan="2"', ' colspan="2"', ""] if second else ["", ' colspan="2"', ""]
        shown = heads if second else [*heads[:2], heads[-1]]
        cells = [f'<th scope="col"{span}>{head}</th>' for span, head in zip(spans, shown, strict=True)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if second:
        ticks.append(f'<td class="plot">{svg.axis_svg(second, 150)}</td><td></td>')
    for row in figure.rows:
        height = 48 if row.text_values else 36 if len(figure.rows) <= _MAX_TALL_ROWS else 24
        name = f"{flag_html(row.style)} {escape(row.name)}" if row.style else f'<b class="value">{escape(row.name)}</b>'
        plot = _row_plot(row, figure.axis, width, height, row.name, band=figure.band)
        first = f' data-head="{heads[1]}"' if second and heads else ""
        cells = [f'<td class="name">{name}</td><td class="plot"{first}>{plot}</td>']
        cells.append(f'<td class="r">{estimate_html(row.estimate, figure.axis)}</td>')
        if second:
            drawn = values = ""
            if row.second:
                other = row.with_second(figure.second_is_open)
                drawn = _row_plot(other, second, 150, height, row.name, band=figure.second_band)
                values = estimate_html(row.second, second)
            cells.append(f'<td class="plot" data-head="{heads[2]}">{drawn}</td><td class="r">{values}</td>')
        rows.append(f'<tr>{"".join(cells)}<td class="r faint">{escape(row.note)}</td></tr>')
    return (
        f'<div class="scroll" tabindex="0"><table class="plot-table{" two" if second else ""}">{"".join(rows)}'
        f'<tr class="axis" aria-hidden="true">{"".join(ticks)}<td></td></tr></table></div>'
    )


def add_line_breaks(name: str) -> str:
    """Return a name as HTML that can break after `/`, `_` and `-` instead of within a word."""
    return re.sub(r"([/_-])(?=\w)", r"\1<wbr>", escape(name))


def _row_plot(
    row: DotRow, axis: Axis, width: int, height: int, name: str, *, band: Estimate | None = None, colour: str = "ink"
) -> str:
    """Draw a row that shrinks with the page; a row without marks has no dot."""
    dot = replace(row.to_dot(row.name, axis, colour), description="")  # the row has the label
    label = f"{name} {axis.format_estimate(row.estimate, ', from ')}".strip()
    return svg.row_svg(() if row.nothing else (dot,), axis, width, height, label, band)


def _label_panel_html(panel: LabelPanel, axis: Axis) -> str:
    names = "".join(
        f'<span title="{escape(row.name, quote=True)}">{escape(row.short or row.name)}</span>' for row in panel.rows
    )
    rows = "".join(
        '<div class="panel-row">'
        + _row_plot(row, axis, 120, 20, f"{panel.style.title}, {row.name}", colour="var(--c)")
        + (f"<em>{escape(row.nothing)}</em>" if row.nothing else "")
        + "</div>"
        for row in panel.rows
    )
    return (
        f'<div class="label-panel s-{panel.style.slot.name}">'
        f"<h3>{flag_html(panel.style)} <span>{add_line_breaks(panel.style.title)}</span></h3>"
        '<div class="panel-body">'
        f'<div class="panel-names" aria-hidden="true">{names}</div>'
        f'<div class="panel-plot">{rows}{svg.axis_svg(axis, 120)}</div>'
        "</div></div>"
    )


def _text_bar_figure_html(figure: TextBarFigure) -> str:
    groups = figure.merged_groups()
    max_value = max((bar.value for _, _, bars in groups for bar in bars), default=0.0)
    parts = []
    for name, count, bars in groups:
        drawn = "".join(
            f'<a href="{escape(bar.page, quote=True)}" '
            f'style="height:{max(2.0, _MAX_BAR_HEIGHT * bar.value / (max_value or 1.0)):.0f}px" '
            f'title="{escape(bar.document, quote=True)}: {bar.value:.1f}">'
            f'<span class="visually-hidden">{escape(bar.document)}</span></a>'
            for bar in bars
        )
        css_class = "text-bars many" if len(bars) > _MAX_WIDE_BARS else "text-bars"
        about = f'<p class="caption"><b>{escape(name)}</b> {count}</p>'
        parts.append(f'<div><div class="{css_class}">{drawn}</div>{about}</div>')
    return f'<div class="bar-groups">{"".join(parts)}</div>'
