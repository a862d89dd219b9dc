"""Figures drawn as SVG: rows for a page, and whole figures that stand alone."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape

from finecomb.core.estimate import Estimate
from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle
from finecomb.reporting.figures.figure_model import (
    Axis,
    BarFigure,
    DotFigure,
    DotRow,
    LabelPanel,
    PanelFigure,
    ReportFigure,
    TextBar,
    TextBarFigure,
)
from finecomb.reporting.page_shell import LIGHT

_MAX_BAR_HEIGHT = 76  # px of the longest tooth


def row_plot(
    estimate: Estimate, axis: Axis, width: int, height: int = 24, *, name: str = "", band: Estimate | None = None,
    teeth: Sequence[float] = (), open: bool = False, colour: str = "var(--ink)", units: str = "",
    bare: bool = False,
) -> str:  # fmt: skip
    """One row: grid lines, the band, the interval with its dot, and teeth below it; `bare` has no dot."""
    middle = 18 if teeth else height / 2
    parts = [_band(band, axis, width, height), _grid(axis, width, height), _text_ticks(teeth, axis, width)]
    if not bare:
        parts.append(_dot(estimate, axis, width, middle, open, colour))
    label = escape(f"{name} {screen_reader_text(estimate, axis)}{units}".strip(), quote=True)
    return f'<svg width="{width}" height="{height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def make_svg_responsive(drawn: str, width: int) -> str:
    """A row or axis whose places are shares of its width, so that it shrinks with the page and its words do not."""
    places = re.compile(r'\b(x1|x2|cx|x|width)="([0-9.]+)"')
    head, inner = drawn.split(">", 1)
    return f"{head}>" + places.sub(lambda found: f'{found[1]}="{100 * float(found[2]) / width:.2f}%"', inner)


def screen_reader_text(estimate: Estimate, axis: Axis) -> str:
    """An estimate as a screen reader says it: `2.4, from 2.0 to 2.9`."""
    if math.isnan(estimate.value):
        return estimate.why
    if math.isnan(estimate.low):
        return axis.format_value(estimate.value)
    return (
        f"{axis.format_value(estimate.value)}, from {axis.format_value(estimate.low)} to "
        f"{axis.format_value(estimate.high)}"
    )


def _band(band: Estimate | None, axis: Axis, width: int, height: float) -> str:
    if band is None or math.isnan(band.low):
        return ""
    left, right = axis.position(band.low, width), axis.position(band.high, width)
    return f'<rect x="{left:.1f}" width="{max(1.0, right - left):.1f}" y="0" height="{height}" fill="var(--wash)"/>'


def _grid(axis: Axis, width: int, height: float) -> str:
    lines = [_line(axis.position(tick, width), height, "var(--line)") for tick in axis.ticks]
    if axis.reference is not None:
        lines.append(_line(axis.position(axis.reference, width), height, "var(--edge)", ' stroke-dasharray="3 3"'))
    return "".join(lines)


def _line(x: float, height: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" stroke="{colour}"{more}/>'


def _text_ticks(values: Sequence[float], axis: Axis, width: int) -> str:
    if not values:
        return ""
    places = [axis.position(value, width) for value in values]
    spine = f'<line x1="{min(places):.1f}" x2="{max(places) + 2:.1f}" y1="31" y2="31" stroke="var(--edge)"/>'
    teeth = "".join(f'<rect x="{x:.1f}" y="31" width="2" height="9" rx="1" fill="var(--edge)"/>' for x in places)
    return spine + teeth


def _dot(estimate: Estimate, axis: Axis, width: int, y: float, open: bool, colour: str) -> str:
    if math.isnan(estimate.value):
        return ""
    line = ""
    if not math.isnan(estimate.low):
        left, right = axis.position(estimate.low, width), axis.position(estimate.high, width)
        line = (
            f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2" '
            'stroke-linecap="round"/>'
        )
    x = axis.position(estimate.value, width)
    fill, edge = ("var(--paper)", 2) if open else (colour, 0)
    return f'{line}<circle cx="{x:.1f}" cy="{y}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="{edge}"/>'


def axis_plot(axis: Axis, width: int, unit: str = "") -> str:
    """The numbers below a figure."""
    places = [(axis.position(tick, width), axis.format_tick(tick)) for tick in axis.ticks if tick != axis.reference]
    if axis.reference is not None:
        places.append((axis.position(axis.reference, width), axis.reference_name or axis.format_tick(axis.reference)))
    elif places:
        places[-1] = places[-1][0], places[-1][1] + unit
    texts = [
        _tick(words, ends)
        for words, ends in _drop_overlapping_ticks([(words, _tick_label_extent(x, words)) for x, words in places])
    ]
    return f'<svg width="{width}" height="18" aria-hidden="true" style="overflow:visible">{"".join(texts)}</svg>'


def text_width(words: str, size: float = 12, bold: bool = False) -> float:
    """About how wide words are when drawn, in px; rather too wide than too narrow."""
    return len(words) * size * (0.58 if bold else 0.55)


def _tick_label_extent(x: float, words: str) -> tuple[float, float]:
    """From where to where words below an axis reach: around their place, or from its left end where that is near."""
    half = text_width(words) / 2
    return (0.0, 2 * half) if len(words) > 6 and half > x else (x - half, x + half)


def _drop_overlapping_ticks(places: Sequence[tuple[str, tuple[float, float]]]) -> list[tuple[str, tuple[float, float]]]:
    """Words on the axis that do not touch each other, the last ones first."""
    chosen: list[tuple[str, tuple[float, float]]] = []
    for words, (left, right) in reversed(places):
        if all(right + 4 <= first or last + 4 <= left for _, (first, last) in chosen):
            chosen.append((words, (left, right)))
    return chosen[::-1]


def _tick(text: str, ends: tuple[float, float]) -> str:
    x, anchor = (sum(ends) / 2, "middle") if ends[0] else (0.0, "start")
    return f'<text x="{x:.1f}" y="12" text-anchor="{anchor}" font-size="12" fill="var(--ink-3)">{escape(text)}</text>'


# --- whole figures -----------------------------------------------------------------------------------------------

_NAMES_WIDTH, _PLOT_WIDTH, _NUMBERS_WIDTH = 170, 520, 150
_MARGIN = 12


def standalone_svg(figure: ReportFigure, tokens: dict[str, str] | None = None) -> str:
    """A whole figure as one SVG with colours in place of tokens, for papers and slides."""
    match figure:
        case DotFigure():
            body, width, height = _dot_figure(figure)
        case PanelFigure():
            body, width, height = _panel_figure(figure)
        case BarFigure():
            body, width, height = _bar_figure(figure)
        case TextBarFigure():
            body, width, height = _text_bar_figure(figure)
        case _:
            body, width, height = "", 400, 40
    title = _text(_MARGIN, 24, figure.title, size=16, bold=True)
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * _MARGIN}" height="{height + 40 + _MARGIN}" '
        'font-family="Arial, sans-serif">'
        f'<rect width="100%" height="100%" fill="var(--paper)"/>{title}{_translate_svg(_MARGIN, 40, body)}</svg>'
    )
    for name, colour in {**LIGHT, "ink": "#1a1d21", **(tokens or {})}.items():
        drawn = drawn.replace(f"var(--{name})", colour)
    return drawn


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    colour: str = "var(--ink)",
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
        f"{weight}>{escape(words)}"
        "</text>"
    )


def _translate_svg(x: float, y: float, inner: str) -> str:
    return f'<g transform="translate({x:.1f} {y:.1f})">{inner}</g>'


def _row_parts(row: DotRow, axis: Axis, width: int, height: int, band: Estimate | None) -> str:
    colour = row.look.slot.light if row.look else "var(--ink)"
    middle = 18 if row.teeth else height / 2
    parts = (_band(band, axis, width, height), _grid(axis, width, height), _text_ticks(row.teeth, axis, width))
    return "".join(parts) + ("" if row.nothing else _dot(row.estimate, axis, width, middle, row.open, colour))


def _dot_figure(figure: DotFigure) -> tuple[str, int, int]:
    height = 48 if any(row.teeth for row in figure.rows) else 28
    names = _name_column_width([row.name for row in figure.rows], 13)
    top = 20 if figure.second_axis else 0  # two columns have heads, so that they can be told apart
    wide = 320 if figure.second_axis else _PLOT_WIDTH
    columns = [_dot_column(figure, figure.rows, figure.axis, figure.band, names, wide, height, top, 1)]
    width = names + wide + _NUMBERS_WIDTH
    if figure.second_axis:
        seconds = [
            replace(row, estimate=row.second, open=row.open or figure.second_is_open) if row.second else None
            for row in figure.rows
        ]
        columns.append(
            _dot_column(figure, seconds, figure.second_axis, figure.second_band, width, wide, height, top, 2)
        )
        width += wide + _NUMBERS_WIDTH
    titles = (
        _text(0, top + number * height + height / 2 + 4, row.name, size=13, bold=True)
        for number, row in enumerate(figure.rows)
    )
    return "".join([*titles, *columns]), width, top + len(figure.rows) * height + 24


def _dot_column(
    figure: DotFigure, rows: Sequence[DotRow | None], axis: Axis, band: Estimate | None, x: float, wide: int,
    height: int, top: int, head: int,
) -> str:  # fmt: skip
    """One plot with the numbers beside it, its head above and its axis below."""
    parts = [_text(x, 12, figure.heads[head], colour="var(--ink-3)")] if top else []
    for number, row in enumerate(rows):
        if row is None:
            continue
        y = top + number * height
        parts.append(_translate_svg(x, y, _row_parts(row, axis, wide, height, band)))
        parts.append(_text(x + wide + 12, y + height / 2 + 4, format_estimate(row.estimate, axis), size=13))
    return "".join(parts) + _translate_svg(x, top + len(rows) * height, axis_plot(axis, wide))


def _name_column_width(names: Sequence[str], size: int, bold: bool = True) -> int:
    """How wide a column of names is."""
    return max([_NAMES_WIDTH if bold else 80, *(int(text_width(name, size, bold)) + 12 for name in names)])


def format_estimate(estimate: Estimate, axis: Axis) -> str:
    """An estimate beside its dot: `2.4 (2.0 to 2.9)`, or why there is none."""
    if math.isnan(estimate.value):
        return estimate.why
    if math.isnan(estimate.low):
        return axis.format_value(estimate.value)
    return (
        f"{axis.format_value(estimate.value)}  {axis.format_value(estimate.low)} to {axis.format_value(estimate.high)}"
    )


def split_unused_panels(figure: PanelFigure) -> tuple[tuple[LabelPanel, ...], tuple[LabelPanel, ...]]:
    """The panels to draw, and those of labels that nobody used in any system; all are drawn where all are unused."""
    unused = tuple(panel for panel in figure.panels if panel.rows and all(row.nothing for row in panel.rows))
    if len(unused) == len(figure.panels):
        return figure.panels, ()
    return tuple(panel for panel in figure.panels if panel not in unused), unused


def describe_unused_labels(panels: Sequence[LabelPanel]) -> str:
    """The names of labels without a mark in any system, as one sentence."""
    return f"Never used, in any system: {', '.join(panel.look.title for panel in panels)}."


def _panel_figure(figure: PanelFigure) -> tuple[str, int, int]:
    across, width, gap = 5, 130, 16
    panels, unused = split_unused_panels(figure)
    names = _name_column_width([row.name for panel in panels for row in panel.rows], 12, bold=False)
    parts = []
    tall = 28 + 20 * max((len(panel.rows) for panel in panels), default=0) + 28
    for number, panel in enumerate(panels):
        column, line = number % across, number // across
        x, y = names + column * (width + gap), line * tall
        parts.append(_panel_title(x, y, panel.look))
        for place, row in enumerate(panel.rows):
            top = y + 24 + 20 * place
            if column == 0:
                parts.append(_text(0, top + 14, row.name))
            parts.append(_translate_svg(x, top, _row_parts(row, figure.axis, width, 20, None)))
            if row.nothing:
                parts.append(_text(x + 8, top + 14, row.nothing, colour="var(--ink-3)"))
        parts.append(
            _translate_svg(
                x, y + 24 + 20 * len(panel.rows), axis_plot(figure.axis, width, "%" if figure.axis.percent else "")
            )
        )
    lines = math.ceil(len(panels) / across)
    wide = names + across * (width + gap)
    notes = textwrap.wrap(describe_unused_labels(unused), int(wide / text_width("n"))) if unused else []
    parts += [_text(0, lines * tall + 14 + 16 * at, words, colour="var(--ink-3)") for at, words in enumerate(notes)]
    return "".join(parts), wide, lines * tall + 16 * len(notes)


def _panel_title(x: float, y: float, look: LabelStyle) -> str:
    """The flag and the name of a label; what is no label has no flag."""
    if look.slot == UNLABELLED_SLOT:
        return _text(x, y + 14, look.title, bold=True)
    wide = text_width(look.flag, 10, bold=True) + 6
    box = f'<rect x="{x:.1f}" y="{y + 3:.1f}" width="{wide:.1f}" height="14" rx="3" fill="{look.slot.light}"/>'
    letters = _text(x + 3, y + 14, look.flag, size=10, colour=look.slot.light_text, bold=True)
    return box + letters + _text(x + wide + 4, y + 14, look.title, bold=True)


def _bar_figure(figure: BarFigure) -> tuple[str, int, int]:
    most = max((amount for _, amount, _ in figure.bars), default=1.0) or 1.0
    parts = []
    for number, (name, amount, words) in enumerate(figure.bars):
        y = number * 28
        length = 400 * amount / most
        parts.append(_text(0, y + 18, name, size=13))
        parts.append(
            f'<rect x="{_NAMES_WIDTH}" y="{y + 8}" width="{max(2.0, length):.1f}" height="12" rx="2" '
            'fill="var(--ink)"/>'
        )
        parts.append(_text(_NAMES_WIDTH + 412 + 80, y + 18, words, size=13, anchor="end"))
    end = len(figure.bars) * 28
    parts.append(_text(0, end + 18, "Together", size=13, bold=True))
    parts.append(_text(_NAMES_WIDTH + 412 + 80, end + 18, figure.total, size=13, anchor="end", bold=True))
    return "".join(parts), _NAMES_WIDTH + 500, end + 28


_MAX_TEXT_BARS = 60  # of one comb; a tooth of more texts than that stands for several


def merge_text_bars(teeth: Sequence[TextBar]) -> tuple[TextBar, ...]:
    """The teeth of one comb, at most 60: with more texts than that, each stands for several neighbours and their mean.

    It opens the first text that it stands for.
    """
    size = _texts_per_bar(teeth)
    if size == 1:
        return tuple(teeth)
    groups = [teeth[start : start + size] for start in range(0, len(teeth), size)]
    return tuple(
        TextBar(f"{len(group)} texts from {group[0].document}", sum(t.value for t in group) / len(group), group[0].page)
        for group in groups
    )


def describe_bar_group(teeth: Sequence[TextBar]) -> str:
    """How many texts a comb has, and how many one tooth stands for where that is more than one."""
    size = _texts_per_bar(teeth)
    return f"{len(teeth):,} texts" + (f", {size} to a tooth" if size > 1 else "")


def _texts_per_bar(teeth: Sequence[TextBar]) -> int:
    return max(1, math.ceil(len(teeth) / _MAX_TEXT_BARS))


def text_bar_heights(teeth: Iterable[TextBar], max_value: float) -> list[float]:
    """How long each tooth of a comb is, in px."""
    return [max(2.0, _MAX_BAR_HEIGHT * tooth.value / max_value) if max_value > 0 else 2.0 for tooth in teeth]


def _text_bar_figure(figure: TextBarFigure) -> tuple[str, int, int]:
    joined = [(name, texts, merge_text_bars(texts)) for name, texts in figure.combs]
    most = max((tooth.value for _, _, teeth in joined for tooth in teeth), default=0.0)
    parts, x = [], 0.0
    for name, texts, teeth in joined:
        words = f"{name} {describe_bar_group(texts)}"
        wide = max(60, 12 * len(teeth), int(text_width(words)))
        parts.append(f'<rect x="{x:.1f}" y="0" width="{wide}" height="2" fill="var(--ink)"/>')
        for number, length in enumerate(text_bar_heights(teeth, most)):
            parts.append(
                f'<rect x="{x + 12 * number:.1f}" y="2" width="8" height="{length:.1f}" rx="2" fill="var(--ink-2)"/>'
            )
        parts.append(_text(x, _MAX_BAR_HEIGHT + 22, words))
        x += wide + 24
    return "".join(parts), int(x) + 40, _MAX_BAR_HEIGHT + 30
