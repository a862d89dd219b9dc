"""SVG drawer of all figures: standalone drawings, and single rows for HTML pages."""

from __future__ import annotations

import base64
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from finecomb.core.palette import DARK_INK, SLOTS_BY_FAMILY, UNLABELLED_SLOT, LabelStyle, PaletteSlot
from finecomb.core.results import Estimate
from finecomb.reporting.figures.figure_model import (
    Axis,
    Bar,
    BaseFigure,
    Categories,
    Cell,
    Chart,
    Colour,
    Coordinate,
    Dot,
    FigureStack,
    Line,
    Mark,
    PlotPanel,
    Raster,
    Text,
    Theme,
)
from finecomb.reporting.figures.label_placement import NameBox, place_point_names
from finecomb.reporting.page_shell import DARK_COLOURS, LIGHT_COLOURS

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Fonts of drawings. Liberation Sans is bundled with vl-convert and has the letter widths of Arial."""
_MARGIN, _GAP = 12, 16  # px around a figure and between panels
_MIN_PLOT_WIDTH = 90  # px; panels that would be narrower move to the next line
_DASHES = {"solid": "", "dashed": "7 3", "dotted": "2 3"}


def _theme_colours(dark: bool) -> dict[str, str]:
    """Return the colours of a theme by name; `shade` is the darkest cell colour on which text is legible."""
    slots = (*(slot for family in SLOTS_BY_FAMILY.values() for slot in family), UNLABELLED_SLOT)
    return {
        **(DARK_COLOURS if dark else LIGHT_COLOURS),
        "shade": "#565d67" if dark else "#a3aab3",
        "alert": "#ff9a90" if dark else "#c62828",
        **{f"slot-{slot.name}": slot.dark if dark else slot.light for slot in slots},
        **{f"text-{slot.name}": DARK_INK if dark else slot.light_text for slot in slots},
    }


def figure_svg(
    figure: BaseFigure,
    *,
    width: float | None = None,
    font_size: float = 12,
    theme: Theme = "light",
    heading: bool = True,
) -> str:
    """Draw a figure as standalone SVG for a width in pixels and a font size, with its values as tooltips."""
    scale = font_size / 12  # the layout is computed at 12 px
    inner = None if width is None else width / scale - 2 * _MARGIN
    body, wide, high = "", 0.0, -24.0
    for part in figure.figures if isinstance(figure, FigureStack) else (figure,):
        drawn, part_width, part_height = _headed_chart_svg(part.to_chart(), inner, heading)
        body += _translate_svg(_MARGIN, _MARGIN + high + 24, drawn)
        wide, high = max(wide, part_width), high + 24 + part_height
    wide, high = wide + 2 * _MARGIN, high + 2 * _MARGIN
    name = f"<title>{escape(figure.title)}</title>" if figure.title else ""
    about = f"<desc>{escape(figure.caption)}</desc>" if figure.caption else ""
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide * scale:.0f}" height="{high * scale:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" font-family="{_FONT}" role="graphics-document">{name}{about}'
        f'<rect width="100%" height="100%" fill="var(--paper)"/>{body}</svg>'
    )
    if theme == "page":
        return drawing
    colours = _theme_colours(theme == "dark")
    return re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], drawing)


def figure_html(figure: BaseFigure, words: str) -> str:
    """Return a figure for an HTML page, in the theme of the screen; `words` describes it to screen readers."""
    drawing = figure_svg(figure, theme="page", heading=False)
    used = sorted(set(re.findall(r"var\(--([\w-]+)\)", drawing)))
    light, dark = ("".join(f"--{name}:{_theme_colours(night)[name]};" for name in used) for night in (False, True))
    style = f".drawn{{{light}}}@media screen and (prefers-color-scheme:dark){{.drawn{{{dark}}}}}"
    return (
        f'<div class="figure" tabindex="0" role="group" aria-label="{escape(words, quote=True)}">'
        f'<style>{style}</style><div class="drawn" id="{figure.id}">{drawing}</div></div>'
    )


# --- rows on HTML pages ------------------------------------------------------------------------------------------


def row_svg(
    marks: Sequence[Mark], axis: Axis, width: int, height: int, label: str = "", band: Estimate | None = None,
    responsive: bool = True,
) -> str:  # fmt: skip
    """Draw the dots of one line of an HTML table, in the colours of the page.

    A responsive plot has its x positions in per cent, so that it shrinks with the page but its text does not.
    """
    dots = [mark for mark in marks if isinstance(mark, Dot)]
    down = Categories(tuple(dict.fromkeys(str(dot.y) for dot in dots)) or ("",))
    plot = _plot_svg(PlotPanel(axis, down, tuple(marks), band=band), width, height)
    role = f'role="img" aria-label="{escape(label, quote=True)}"' if label else 'aria-hidden="true"'
    plot = _x_in_per_cent(plot, width) if responsive else plot
    return f'<svg width="{width}" height="{height}" {role}>{plot}</svg>'


def axis_svg(axis: Axis, width: int) -> str:
    """Draw the tick labels below the rows of an HTML table."""
    labels = _x_in_per_cent("".join(_tick_labels_svg(axis, width)), width)
    return f'<svg width="{width}" height="18" aria-hidden="true" style="overflow:visible">{labels}</svg>'


def _x_in_per_cent(svg: str, width: float) -> str:
    x_attributes = re.compile(r'\b(x1|x2|cx|x|width)="([0-9.]+)"')
    return x_attributes.sub(lambda match: f'{match[1]}="{100 * float(match[2]) / width:.2f}%"', svg)


# --- layout ------------------------------------------------------------------------------------------------------


def text_width(words: str, size: float = 12, bold: bool = False) -> float:
    """Estimate the width of a text in pixels; the estimate is generous, since other machines may have wider fonts."""
    return len(words) * size * (0.65 if bold else 0.59)


def _headed_chart_svg(chart: Chart, width: float | None, heading: bool) -> tuple[str, float, float]:
    """Draw the title, the legend, the panels and the notes of a chart; return SVG, width and height."""
    body, wide, high = _grid_svg(chart, width) if chart.panels else ("", 376.0, 0.0)
    parts, top = [], 0.0
    lines = _wrap(chart.title, width or math.inf, 16, bold=True) if heading and chart.title else []
    for line in lines:
        parts.append(_text_svg(0, top + 14, line, size=16, bold=True))
        top += 22
    top += 8 if lines else 0
    x = 0.0
    for style in chart.legend:
        entry, length = _flagged_title_svg(style, style.title)
        if x and x + length > (width or max(wide, 460)):
            x, top = 0.0, top + 22
        parts.append(_translate_svg(x, top, entry))
        x += length + 18
    top += 30 if chart.legend else 0
    parts.append(_translate_svg(0, top, body))
    top += high
    notes = [line for note in chart.notes for line in _wrap(note, width or max(wide, 460), 12)]
    for line in notes:
        top += 16
        parts.append(_text_svg(0, top, line, colour="ink-3"))
    widest = max([wide, *(text_width(line, 16, bold=True) for line in lines), *map(text_width, notes)])
    return "".join(parts), max(widest, 460 if chart.legend and not width else 0), top + (4 if chart.notes else 0)


def _wrap(words: str, width: float, size: float, bold: bool = False) -> list[str]:
    letters = width / text_width("n", size, bold)
    return textwrap.wrap(words, max(8, int(letters))) if math.isfinite(letters) else [words]


@dataclass(slots=True)
class _PanelSpace:
    """Space around the plot of a panel in pixels, and the text written there."""

    title_lines: list[str] = field(default_factory=list)
    x_title_lines: list[str] = field(default_factory=list)
    left: float = 0
    names: float = 0
    """Part of `left` for the names of rows."""
    right: float = 0
    above: float = 0
    below: float = 0
    has_names: bool = False
    has_ticks: bool = False
    is_lowest: bool = False


def _grid_svg(chart: Chart, width: float | None) -> tuple[str, float, float]:
    """Draw the panels of a chart in columns; return SVG, width and height."""
    panels = chart.panels
    columns, spaces, plots, starts, x = _fit_columns(chart, width)
    rooms = [math.inf if width is None else end - start for start, end in zip(starts, [*starts[1:], x], strict=True)]
    headers = [_wrap(words, room, 14, bold=True) for words, room in zip(chart.headers, rooms, strict=False)]
    parts = [
        _text_svg(start, 14 + 18 * at, line, 14, bold=True)
        for start, lines in zip(starts, headers, strict=False)
        for at, line in enumerate(lines)
    ]
    top = 8.0 + 18 * max(map(len, headers)) if headers else 0.0
    for first in range(0, len(panels), columns):
        line = range(first, min(first + columns, len(panels)))
        above = max(spaces[number].above for number in line)
        for number in line:
            drawn = _panel_svg(panels[number], plots[number - first], spaces[number])
            parts.append(_translate_svg(starts[number - first], top + above, drawn))
        top += above + max(panels[number].y.length + spaces[number].below for number in line)
        top += 0 if first + columns >= len(panels) else _GAP / 2
    return "".join(parts), x, top


def _fit_columns(chart: Chart, width: float | None) -> tuple[int, list[_PanelSpace], list[float], list[float], float]:
    """Lay panels out in as many columns as `width` allows.

    Returns the number of columns, the space around each panel, the width and the left end of the plots of each column,
    and the right end of all.
    """
    panels, columns, stretch = chart.panels, max(1, min(chart.columns, len(chart.panels))), 1.0
    while True:
        spaces = [_panel_space(chart, number, columns) for number in range(len(panels))]
        sizes = [(space.left, space.right, panel.x.length) for space, panel in zip(spaces, panels, strict=True)]
        left, right, plots = (
            [max(size[part] for size in sizes[column::columns]) for column in range(columns)] for part in range(3)
        )
        if width is not None:
            stretch = max(0.1, (width - sum(left) - sum(right) - _GAP * (columns - 1)) / sum(plots))
        if width is None or columns == 1 or not chart.repeats_axes or stretch * min(plots) >= _MIN_PLOT_WIDTH:
            break
        columns -= 1
    plots = [length * stretch for length in plots]
    starts, x = [], 0.0
    for column in range(columns):
        room = used = plots[column] + right[column]
        if width is None:  # long titles widen a column instead of wrapping
            own = panels[column::columns]
            titles = [text_width(panel.title, 12, bold=True) + (26 if panel.style else 0) for panel in own]
            titles += [text_width(panel.x.title) for panel in own if panel.x.hidden]
            titles += [text_width(words, 14, bold=True) for words in chart.headers[column : column + 1]]
            room, used = math.inf, max([used, *titles])
        for number in range(column, len(panels), columns):
            spaces[number] = _panel_space(chart, number, columns, stretch, room + _GAP / 2)
        starts.append(x + left[column])
        x += left[column] + used + _GAP
    return columns, spaces, plots, starts, x - _GAP


def _panel_space(chart: Chart, number: int, columns: int, stretch: float = 1.0, room: float = math.inf) -> _PanelSpace:
    """Return the space around a panel whose plot is `stretch` times as wide as preferred; titles wrap to `room`."""
    panel, panels = chart.panels[number], chart.panels
    length = panel.x.length * stretch
    title = _wrap(panel.title, room - (26 if panel.style else 0), 12, bold=True)
    space = _PanelSpace(title_lines=title, is_lowest=number + columns >= len(panels))
    space.above = 7 + 15 * len(title) if panel.title else 0
    space.has_names = number % columns == 0 or panels[number - 1].y != panel.y
    space.has_ticks = chart.repeats_axes or space.is_lowest
    match panel.y:
        case Categories(names=names, hidden=False, bold=bold, font_size=size) if space.has_names:
            space.names = max((text_width(name, size, name in bold) for name in names), default=0) + 10
            space.left = space.names + (18 if panel.y.title else 0)
        case Axis(hidden=False) if space.has_names:
            space.left = max(text_width(panel.y.format_tick(tick)) for tick in panel.y.ticks) + 8
            space.left += 18 if panel.y.title else 0
    match panel.x:
        case Categories(names=names, hidden=False):
            turned = _turns_names(panel.x)
            overhang = [0.75 * text_width(name) - length / len(names) * (at + 0.5) for at, name in enumerate(names)]
            space.left = max(space.left, *overhang) if turned else space.left
            space.below = 0.72 * max(map(text_width, names)) + 18 if turned else 18
        case Axis(hidden=False) if space.has_ticks:
            space.below = 20
            space.right = 8
    if panel.x.title and (space.is_lowest or panel.x.hidden):
        space.x_title_lines = [panel.x.title] if panel.x.hidden else _wrap(panel.x.title, length + space.right + 20, 12)
        space.below += 18 * len(space.x_title_lines)
    texts = [mark for mark in panel.marks if isinstance(mark, Text) and mark.anchor == "start" and not mark.extent]
    ends = [panel.x.position(text.x, length) + text.dx + text_width(text.words) for text in texts]
    space.right = max([space.right, *(end - length for end in ends)])
    space.right = max([space.right, *(text_width(words, 13) + 12 for words in panel.values)])
    if any(isinstance(mark, Dot) and mark.name for mark in panel.marks):  # names may lie outside the plot
        space.right += 52
        space.above += 14
    return space


def _turns_names(axis: Categories) -> bool:
    return max(map(text_width, axis.names)) > axis.step


# --- panels ------------------------------------------------------------------------------------------------------


def _panel_svg(panel: PlotPanel, width: float, space: _PanelSpace) -> str:
    """Draw the title, the plot, the names of rows and columns, and the values of a panel."""
    height, x_axis, y_axis = panel.y.length, panel.x, panel.y
    title = _flagged_title_svg(panel.style, *space.title_lines)[0] if panel.title else ""
    parts = [_plot_svg(panel, width, height), _translate_svg(0, -space.above, title)]
    if isinstance(y_axis, Categories):
        middles = [y_axis.position(name, height) + 4 for name in y_axis.names]
        if space.names:
            parts += [
                _text_svg(-space.names, y, name, y_axis.font_size, bold=name in y_axis.bold)
                for y, name in zip(middles, y_axis.names, strict=True)
            ]
        parts += [_text_svg(width + 12, y, words, 13) for y, words in zip(middles, panel.values, strict=False)]
    elif space.has_names and not y_axis.hidden:
        parts += [
            _text_svg(-6, height - y_axis.position(tick, height) + 4, y_axis.format_tick(tick), 12, "ink-3", "end")
            for tick in y_axis.ticks
        ]
    if y_axis.title and space.has_names:
        place = f'transform="translate({10 - space.left:.1f} {height / 2:.1f}) rotate(-90)"'
        parts.append(_text_svg(0, 0, y_axis.title, 12, "ink-3", "middle", more=place))
    if isinstance(x_axis, Categories) and not x_axis.hidden:
        for x, name in ((x_axis.position(name, width), name) for name in x_axis.names):
            place = f'transform="translate({x + 4:.1f} {height + 12:.1f}) rotate(-45)"'
            turned = _text_svg(0, 0, name, 12, "ink-2", "end", more=place)
            straight = _text_svg(x, height + 14, name, 12, "ink-2", "middle")
            parts.append(turned if _turns_names(x_axis) else straight)
    elif isinstance(x_axis, Axis) and space.has_ticks and not x_axis.hidden:
        parts.append(_translate_svg(0, height + 3, "".join(_tick_labels_svg(x_axis, width))))
    ink, anchor, x = ("ink", "start", 0.0) if x_axis.hidden else ("ink-3", "middle", width / 2)
    first = height + space.below - 18 * len(space.x_title_lines) + 14
    parts += [_text_svg(x, first + 16 * at, line, 12, ink, anchor) for at, line in enumerate(space.x_title_lines)]
    return "".join(parts)


def _plot_svg(panel: PlotPanel, width: float, height: float) -> str:
    """Draw the band, the grid and the marks of a panel."""
    parts = []
    if panel.band is not None and not math.isnan(panel.band.low):
        left, right = (panel.x.position(end, width) for end in (panel.band.low, panel.band.high))
        parts.append(_rect_svg(left, 0, max(1.0, right - left), height, 'fill="var(--wash)"'))
    if isinstance(panel.x, Axis) and not panel.x.hidden:
        lines = [(tick, 'stroke="var(--line)"') for tick in panel.x.ticks]
        if panel.x.reference is not None:
            lines.append((panel.x.reference, 'stroke="var(--edge)" stroke-dasharray="3 3"'))
        for tick, style in lines:
            x = panel.x.position(tick, width)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height:g}" {style}/>')
    levels = [height - panel.y.position(tick, height) for tick in getattr(panel.y, "ticks", ()) if not panel.y.hidden]
    if isinstance(panel.y, Categories) and panel.y.ruled:
        levels += [panel.y.position(name, height) for name in panel.y.names if name]
    parts += [f'<line x1="0" x2="{width:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>' for y in levels]
    dots = [mark for mark in panel.marks if isinstance(mark, Dot) and not math.isnan(float(mark.x))]
    parts += [_mark_svg(mark, panel, width, height) for mark in panel.marks if not isinstance(mark, Dot)]
    parts += [_interval_svg(dot, panel, width, height) for dot in dots]  # below the dots, so that no line covers one
    parts += [_mark_svg(dot, panel, width, height) for dot in dots]
    parts += _dot_names_svg(panel, width, height)
    return "".join(parts)


def _point(panel: PlotPanel, x: Coordinate, y: Coordinate, width: float, height: float) -> tuple[float, float]:
    """Return the pixels of a point; numbers on a vertical axis increase upwards, names are listed downwards."""
    down = panel.y.position(y, height)
    return panel.x.position(x, width), down if isinstance(panel.y, Categories) else height - down


def _mark_svg(mark: Mark, panel: PlotPanel, width: float, height: float) -> str:
    match mark:
        case Raster():
            data = base64.b64encode(mark.png).decode()
            size = f'width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none"'
            return f'<image {size} style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        case Line():
            return _line_svg(mark, [_point(panel, x, y, width, height) for x, y in mark.points])
    x, y = _point(panel, mark.x, mark.y, width, height)
    match mark:
        case Text():
            more = 'stroke="var(--paper)" stroke-width="3" paint-order="stroke"' if mark.halo else ""
            if mark.extent:
                length = panel.x.position(mark.extent, width) - panel.x.position(0, width)
                more += f' font-family="Liberation Mono, monospace" textLength="{length:.1f}" xml:space="preserve"'
            place = (x + mark.dx, y + mark.dy)
            return _text_svg(*place, mark.words, mark.font_size, mark.colour, mark.anchor, mark.bold, more)
        case Cell():
            assert isinstance(panel.x, Categories)
            assert isinstance(panel.y, Categories)
            wide, high = width / len(panel.x.names), height / len(panel.y.names)
            box = (x - wide / 2, y - high / 2, wide, high)
            shade = f'fill="var(--shade)" fill-opacity="{min(max(mark.share, 0.0), 1.0):.3f}"'
            shade += ' stroke="var(--paper)" stroke-width="2"'
            words = _text_svg(x, y + 4, mark.words, anchor="middle", more='opacity="0.55"' if mark.faint else "")
            return _rect_svg(*box, 'fill="var(--well)"') + _rect_svg(*box, shade, mark.description) + words
        case Bar():
            return _bar_svg(mark, panel, x, y, width, height)
    x, y = _dot_centre(mark, panel, width, height)
    colour = _paint(mark.colour)
    fill, edge = ("var(--paper)", f' stroke="{colour}" stroke-width="2"') if mark.open else (colour, "")
    shape = f'cx="{x:.1f}" cy="{y:.1f}" r="{mark.radius:g}" fill="{fill}" fill-opacity="{mark.opacity:g}"'
    return f"<circle {shape}{edge}>{_title_svg(mark.description)}</circle>"


def _line_svg(line: Line, points: Sequence[tuple[float, float]]) -> str:
    shape = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    if line.fill:
        return f'<polygon points="{shape}" fill="{_paint(line.fill)}" fill-opacity="{line.opacity:g}"/>'
    dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
    stroke = f'stroke="{_paint(line.colour)}" stroke-width="{line.width:g}" stroke-opacity="{line.opacity:g}"{dash}'
    head = ""
    if line.arrow and len(points) > 1:
        (x0, y0), (x, y) = points[-2:]
        turn = math.degrees(math.atan2(y - y0, x - x0))
        head = f'<path d="M0 0L-9 4.5V-4.5z" transform="translate({x:.1f} {y:.1f}) rotate({turn:.0f})"'
        head += f' fill="{_paint(line.colour)}"/>'
    return f'<polyline points="{shape}" fill="none" {stroke}/>{head}'


def _bar_svg(bar: Bar, panel: PlotPanel, x: float, y: float, width: float, height: float) -> str:
    """Draw a bar along the axis of numbers, with its words in the middle."""
    if isinstance(panel.y, Categories):
        end, thick = panel.x.position(bar.end, width), bar.thickness * height / len(panel.y.names)
        box = (min(x, end), y - thick / 2, max(bar.min_length, abs(end - x)), thick)
    else:
        assert isinstance(panel.x, Categories)
        end, thick = height - panel.y.position(bar.end, height), bar.thickness * width / len(panel.x.names)
        box = (x - thick / 2, min(y, end), thick, max(bar.min_length, abs(end - y)))
    style = f'rx="2" fill="{_paint(bar.colour)}" fill-opacity="{bar.opacity:g}"'
    ink: Colour = "ink"
    if bar.outlined:
        dash = _DASHES[bar.colour.line] if isinstance(bar.colour, PaletteSlot) else ""
        style = f'rx="3" fill="var(--paper)" stroke="{_paint(bar.colour)}" stroke-width="2" stroke-dasharray="{dash}"'
    elif isinstance(bar.colour, PaletteSlot):
        ink = f"text-{bar.colour.name}"
    middle = (box[0] + box[2] / 2, box[1] + box[3] / 2 + 4)
    fits = bar.outlined or box[2] >= 10 * len(bar.words)
    words = _text_svg(*middle, bar.words, 11, ink, "middle", not bar.outlined) if bar.words and fits else ""
    return _rect_svg(*box, style, bar.description) + words


def _interval_svg(dot: Dot, panel: PlotPanel, width: float, height: float) -> str:
    """Draw the intervals of a dot and the ticks of its texts."""
    x, y = _dot_centre(dot, panel, width, height)
    parts = []
    if dot.texts:
        places = [panel.x.position(value, width) for value in dot.texts]
        line = f'x1="{min(places):.1f}" x2="{max(places) + 2:.1f}" y1="{y + 13:g}" y2="{y + 13:g}"'
        parts.append(f'<line {line} stroke="var(--edge)"/>')
        parts += [_rect_svg(place, y + 13, 2, 9, 'rx="1" fill="var(--edge)"') for place in places]
    style = f'stroke="{_paint(dot.colour)}" stroke-width="{0.44 * dot.radius:.3g}" stroke-linecap="round"'
    if not math.isnan(dot.y_low):  # faint, because many crossing intervals would be too dark
        style += ' stroke-opacity="0.45"'
        ends = [height - panel.y.position(end, height) for end in (dot.y_low, dot.y_high)]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" {style}/>')
    if not math.isnan(dot.low):
        ends = [panel.x.position(end, width) for end in (dot.low, dot.high)]
        parts.append(f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}" {style}/>')
    return "".join(parts)


def _dot_centre(dot: Dot, panel: PlotPanel, width: float, height: float) -> tuple[float, float]:
    """Return the centre of a dot; the ticks of texts take the lower half of the row."""
    x, y = _point(panel, dot.x, dot.y, width, height)
    return x, y - 6 if dot.texts else y


def _dot_names_svg(panel: PlotPanel, width: float, height: float) -> Iterator[str]:
    """Draw the names of dots where they cover nothing; dots at one point share a line."""
    groups: dict[tuple[float, float], list[Dot]] = {}
    for dot in (mark for mark in panel.marks if isinstance(mark, Dot) and mark.name):
        groups.setdefault(_point(panel, dot.x, dot.y, width, height), []).append(dot)
    boxes = []
    for text in (mark for mark in panel.marks if isinstance(mark, Text)):
        x, y = _point(panel, text.x, text.y, width, height)
        left = x + text.dx - text_width(text.words) * {"start": 0, "middle": 0.5, "end": 1}[text.anchor]
        boxes.append(NameBox(left, y + text.dy - 12, left + text_width(text.words), y + text.dy + 2))
    area = NameBox(2, -14, width + 60, height - 2)
    names = [" ".join(dot.name for dot in dots) for dots in groups.values()]
    for (left, middle), name, dots in zip(
        place_point_names(list(groups), names, area, boxes), names, groups.values(), strict=True
    ):
        yield _text_svg(left, middle + 4, name, 11, dots[0].colour, bold=True)


# --- shapes ------------------------------------------------------------------------------------------------------


def _paint(colour: Colour) -> str:
    """Return a colour as a CSS variable, which `figure_svg` replaces with the colour of its theme."""
    if isinstance(colour, PaletteSlot):
        return f"var(--slot-{colour.name})"
    return colour if "(" in colour or colour == "currentColor" else f"var(--{colour})"


def _title_svg(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""


def _rect_svg(x: float, y: float, width: float, height: float, style: str, title: str = "") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f"<rect {size} {style}>{_title_svg(title)}</rect>" if title else f"<rect {size} {style}/>"


def _text_svg(
    x: float, y: float, words: str, size: float = 12, colour: Colour = "ink", anchor: str = "start",
    bold: bool = False, more: str = "",
) -> str:  # fmt: skip
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}"' + (f" {more}" if more else "")
    style = f'font-size="{size:g}" fill="{_paint(colour)}" text-anchor="{anchor}"{weight}'
    return f"<text {place} {style}>{escape(words)}</text>"


def _translate_svg(x: float, y: float, inner: str) -> str:
    return f'<g transform="translate({x:.1f} {y:.1f})">{inner}</g>'


def _flagged_title_svg(style: LabelStyle | None, *lines: str) -> tuple[str, float]:
    """Draw the lines of a title after the flag of its label, if any; return its width as well."""
    flag, left = "", 0.0
    if style is not None and style.slot != UNLABELLED_SLOT:
        left = 8.0 * len(style.flag) + 10  # capital letters are wider than average
        flag = _rect_svg(0, 3, left - 4, 14, f'rx="3" fill="{_paint(style.slot)}"')
        flag += _text_svg(3, 14, style.flag, size=10, colour=f"text-{style.slot.name}", bold=True)
    words = "".join(_text_svg(left, 14 + 15 * at, line, bold=True) for at, line in enumerate(lines))
    return flag + words, left + max((text_width(line, 12, bold=True) for line in lines), default=0)


def _tick_labels_svg(axis: Axis, width: float) -> list[str]:
    """Draw the labels of ticks and of the reference line; drop those that would overlap a later one."""
    places = [(axis.position(tick, width), axis.format_tick(tick)) for tick in axis.ticks if tick != axis.reference]
    if axis.reference is not None:
        place = axis.position(axis.reference, width)
        places.append((place, axis.reference_name or axis.format_tick(axis.reference)))
    elif places:
        places[-1] = places[-1][0], places[-1][1] + ("%" if axis.percent else "")
    kept: list[tuple[float, float]] = []
    labels: list[str] = []
    for x, words in reversed(places):
        half = 0.275 * 12 * len(words)  # digits are narrow
        # a long label that would cross the left edge starts there
        left, right, anchor = (
            (0.0, 2 * half, "start") if len(words) > 6 and half > x else (x - half, x + half, "middle")
        )
        if all(right + 4 <= first or last + 4 <= left for first, last in kept):
            kept.append((left, right))
            labels.append(_text_svg(left if anchor == "start" else x, 12, words, colour="ink-3", anchor=anchor))
    return labels[::-1]  # from left to right, since narrow pages hide every other label
