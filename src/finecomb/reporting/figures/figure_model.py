"""Figure model: panels, axes and marks of a figure, independent of how they are drawn.

A `Chart` consists of panels, and a panel of marks (dots with intervals, bars, cells, lines, texts) on two axes. The
figures of the report keep their rows, notes and links for HTML pages; `to_chart` converts them to a chart. `svg` draws
every chart, and `altair_charts` converts it for further editing in a notebook.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from finecomb.core.errors import FinecombError, param
from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, PaletteSlot
from finecomb.core.results import Estimate
from finecomb.formats.atomic_file import write_file_atomically

TableRow = Mapping[str, object]
Coordinate = float | str
"""Number on an `Axis`, or name of a `Categories` axis."""
Colour = str | PaletteSlot
"""Name of a page colour, e.g. `ink`, or palette slot of a label; both depend on the theme."""
Anchor = Literal["start", "middle", "end"]
Theme = Literal["light", "dark", "page"]
"""Colour theme of a drawing; with `page`, the HTML page around it defines the colours as CSS variables."""
IMAGE_SUFFIXES = (".svg", ".png", ".pdf")
"""File suffixes of the image formats in which a figure can be saved."""


def number_duplicates(names: Sequence[str]) -> tuple[str, ...]:
    """Make names unique by numbering repeated names, since a name is a position on an axis.

    >>> number_duplicates(["a", "b", "a"])
    ('a', 'b', 'a (2)')
    """
    unique: list[str] = []
    for name in names:
        candidates = (name, *(f"{name} ({number})" for number in range(2, len(names) + 2)))
        unique.append(next(candidate for candidate in candidates if candidate not in unique))
    return tuple(unique)


def format_count_with_noun(number: int, thing: str, plural: str = "") -> str:
    """Format a count with its noun in the singular or plural.

    >>> format_count_with_noun(1, "text"), format_count_with_noun(1200, "text")
    ('1 text', '1,200 texts')
    >>> format_count_with_noun(2, "person", "people")
    '2 people'
    """
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis of numbers: range, ticks and number format.

    `percent` is True if values are shares, shown in per cent. A dashed line marks the value `reference`. `title` is the
    quantity with its unit. `length` is the preferred length of the plot in pixels at a font size of 12, with `inset`
    pixels of room for a dot at either end. A hidden axis has neither grid nor ticks.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 1
    percent: bool = False
    reference: float | None = None
    reference_name: str = ""
    title: str = ""
    length: float = 150
    inset: float = 6
    hidden: bool = False

    def position(self, value: Coordinate, length: float) -> float:
        """Return the position of a value on a plot of `length` pixels."""
        span = (self.high - self.low) or 1.0
        inside = min(max(float(value), self.low), self.high)
        return self.inset + (inside - self.low) / span * (length - 2 * self.inset)

    def format_value(self, value: float) -> str:
        """Format a value with the decimals of the axis; a dash if it is undefined."""
        if not math.isfinite(value):
            return "–"
        shown = round(100 * value if self.percent else value, self.digits) or 0.0  # 0.0 instead of -0.0
        return f"{shown:.{self.digits}f}".replace("-", "−")

    def format_estimate(self, estimate: Estimate, separator: str = "  ") -> str:
        """Format an estimate with its interval, `2.4  2.0 to 2.9`, or return the reason if it is undefined."""
        if math.isnan(estimate.value):
            return estimate.why
        value, low, high = map(self.format_value, (estimate.value, estimate.low, estimate.high))
        return value if math.isnan(estimate.low) else f"{value}{separator}{low} to {high}"

    def format_tick(self, value: float) -> str:
        """Format a tick without trailing zeros."""
        shown = 100 * value if self.percent else value
        return f"{shown:g}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Categories:
    """Axis of names, from top to bottom or from left to right, with `step` pixels each at a font size of 12.

    The names in `bold` are in bold type. A line runs through each row of a ruled axis.
    """

    names: tuple[str, ...]
    title: str = ""
    step: float = 22
    font_size: float = 12
    bold: tuple[str, ...] = ()
    hidden: bool = False
    ruled: bool = False

    @property
    def length(self) -> float:
        """Preferred length of the plot in pixels."""
        return self.step * len(self.names)

    def position(self, name: Coordinate, length: float) -> float:
        """Return the middle of a name on a plot of `length` pixels."""
        return (self.names.index(str(name)) + 0.5) * length / len(self.names)


def build_axis(
    estimates: Sequence[Estimate | float],
    *,
    zero: bool = True,
    percent: bool = False,
    bounds: tuple[float, float] | None = None,
) -> Axis:
    """Build an axis with round ticks that covers every interval; it includes 0 unless `zero` is False.

    >>> from finecomb.core.results import Signature
    >>> build_axis([Estimate(2.4, 2.0, 4.2, Signature(()))]).ticks
    (0.0, 1.0, 2.0, 3.0, 4.0)
    """
    numbers = [(e.value, e.low, e.high) if isinstance(e, Estimate) else (e,) for e in estimates]
    ends = [end for group in numbers for end in group if math.isfinite(end)]
    low = min([*ends, 0.0]) if zero else min(ends, default=0.0)
    high = max([*ends, 0.0]) if ends else 1.0
    if bounds:
        low, high = bounds
    span = (high - low) or 1.0
    power: float = 10.0 ** math.floor(math.log10(span / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 5.01)
    first = math.floor(low / step + 1e-9) * step if low < 0 or not zero else 0.0
    count = (
        max(1, math.ceil((high - first) / step - 1e-9)) if bounds else max(1, math.ceil((high - first) / step - 0.35))
    )
    ticks = tuple(round(first + step * number, 10) for number in range(count + 1))
    shown = step * (100 if percent else 1)
    return Axis(
        first,
        max(high, ticks[-1]),
        ticks,
        digits=max(0, min(3, 1 - math.floor(math.log10(shown)))) if ends else 1,
        percent=percent,
    )


# --- marks and panels --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dot:
    """Dot with an interval for an estimate, and ticks below it for single texts.

    `y_low` and `y_high` are the ends of a vertical interval. An open dot is a comparison value. `name` is placed near
    the dot so that it covers neither dots nor other names. `description` is for screen readers and tooltips.
    """

    x: Coordinate
    y: Coordinate
    low: float = math.nan
    high: float = math.nan
    y_low: float = math.nan
    y_high: float = math.nan
    texts: tuple[float, ...] = ()
    open: bool = False
    colour: Colour = "ink"
    radius: float = 4.5
    opacity: float = 1
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar from a coordinate to `end` along the axis of numbers, at least `min_length` pixels long.

    `thickness` is its share of the step of its row or column. `words` stand in its middle if there is room. An outlined
    bar has the line style of its label.
    """

    x: Coordinate
    y: Coordinate
    end: float
    colour: Colour = "edge"
    opacity: float = 1
    thickness: float = 0.6
    min_length: float = 2
    words: str = ""
    outlined: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of a heat map with a shade from 0 to 1 (`share`); faint words are unimportant values, e.g. a count of 0."""

    x: str
    y: str
    share: float
    words: str = ""
    faint: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Line through points, or a filled area."""

    points: tuple[tuple[Coordinate, Coordinate], ...]
    colour: Colour = "ink"
    width: float = 2
    dash: str = ""
    fill: Colour = ""
    arrow: bool = False
    opacity: float = 1


@dataclass(frozen=True, slots=True)
class Text:
    """Words placed `dx` and `dy` pixels away from a point.

    A halo covers lines behind the words. Words with an `extent` in units of the x axis run along it in letters of equal
    width.
    """

    x: Coordinate
    y: Coordinate
    words: str
    anchor: Anchor = "start"
    dx: float = 0
    dy: float = 4
    colour: Colour = "ink"
    font_size: float = 12
    bold: bool = False
    halo: bool = False
    extent: float = 0


@dataclass(frozen=True, slots=True)
class Raster:
    """Image that fills a panel."""

    png: bytes


Mark = Dot | Bar | Cell | Line | Text | Raster


@dataclass(frozen=True, slots=True)
class PlotPanel:
    """Marks on two axes.

    The flag of `style` precedes the title. `band` is a reference estimate on the x axis, drawn as a grey band. `values`
    has the formatted value of each row, written at the right.
    """

    x: Axis | Categories
    y: Axis | Categories
    marks: tuple[Mark, ...]
    title: str = ""
    style: LabelStyle | None = None
    band: Estimate | None = None
    values: tuple[str, ...] = ()


# --- figures -----------------------------------------------------------------------------------------------------


class DrawingOptions(TypedDict, total=False):
    """Keyword arguments of a drawing.

    `width` is in pixels; by default, it is as large as the figure needs. `font_size` is that of most text, in pixels
    (default: 12); everything else scales with it. `heading=False` omits the title, e.g. above a caption of its own.
    """

    width: float | None
    font_size: float
    theme: Theme
    heading: bool


@dataclass(frozen=True, slots=True)
class DotRow:
    """Row of a figure: a name, an estimate and a note.

    `style` is the style of the row's label. `text_values` are the values of single texts, drawn as ticks below
    the interval. A comparison value is an open dot. The second estimate has its own axis in the next column. `short` is
    a name for narrow columns. `nothing` replaces the dot if no mark was found, because that does not prove a rate of 0.
    """

    name: str
    estimate: Estimate
    note: str = ""
    style: LabelStyle | None = None
    text_values: tuple[float, ...] = ()
    open: bool = False
    link: str = ""
    second: Estimate | None = None
    short: str = ""
    nothing: str = ""

    def with_second(self, is_open: bool) -> DotRow:
        """Return the row of the second estimate alone."""
        assert self.second
        return replace(self, estimate=self.second, text_values=(), style=None, nothing="", open=self.open or is_open)

    def to_dot(self, name: str, axis: Axis, colour: Colour | None = None) -> Dot:
        """Return the dot of the row, in `colour` or the colour of its label, with its values as description."""
        estimate = self.estimate
        words = f"{name}: {axis.format_estimate(estimate, ', from ')}"
        return Dot(
            estimate.value, name, estimate.low, estimate.high, texts=self.text_values, open=self.open,
            colour=colour or (self.style.slot if self.style else "ink"),
            description=words,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class BaseFigure:
    """Base class of figures, with caption, signature and table."""

    id: str = "figure"
    title: str = ""
    caption: str = ""
    table: tuple[TableRow, ...] = ()
    signature: str = ""
    command: str = ""
    """Command that reproduces the numbers."""
    empty: str = ""
    """Sentence shown instead of the plot if there is nothing to draw."""
    behind: str = ""
    """Link to the texts that the numbers come from."""
    options: DrawingOptions = field(default_factory=DrawingOptions, kw_only=True)
    """Default options for drawing the figure."""

    @property
    def signature_hash(self) -> str:
        """First eight hexadecimal digits of the signature's hash, for citing the figure."""
        letters = hashlib.sha256(self.signature.encode()).hexdigest()
        return f"{letters[:4]} {letters[4:8]}"

    def to_chart(self) -> Chart:
        """Return the panels and marks to draw."""
        return Chart(self.id, self.title, self.caption)

    def to_svg(self, **options: Unpack[DrawingOptions]) -> str:
        """Draw the figure as SVG."""
        from finecomb.reporting.figures.svg import figure_svg

        chosen: DrawingOptions = {**self.options, **options}
        return figure_svg(self, **chosen)

    def save(self, path: str | Path, **options: Unpack[DrawingOptions]) -> Path:
        """Write the figure as SVG, PNG or PDF, by the suffix of the path; PNG and PDF contain their fonts."""
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in IMAGE_SUFFIXES:
            raise FinecombError(f"{param('plot', path)}: unknown image format; use one of {', '.join(IMAGE_SUFFIXES)}")
        drawing = self.to_svg(**options)
        if suffix == ".svg":
            write_file_atomically(path, drawing)
            return path
        import vl_convert  # imported only when needed, since it is slow to load

        make = vl_convert.svg_to_pdf if suffix == ".pdf" else partial(vl_convert.svg_to_png, scale=2)
        write_file_atomically(path, make(drawing))
        return path

    def to_altair(self) -> Any:
        """Return the figure as an Altair chart; needs `pip install "finecomb[altair]"`."""
        from finecomb.reporting.figures.altair_charts import altair_chart

        return altair_chart(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        return f"<figure>{self.to_svg()}<figcaption>{escape(self.caption)}</figcaption></figure>"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title or self.id!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Chart(BaseFigure):
    """Figure of panels, arranged from left to right and then from top to bottom.

    `columns` is the maximum number of panels side by side, and `headers` has the title of each column. Each panel has
    its own ticks if `repeats_axes` is True, otherwise only the lowest panel of each column. `notes` are sentences below
    the panels.
    """

    panels: tuple[PlotPanel, ...] = ()
    columns: int = 1
    repeats_axes: bool = True
    headers: tuple[str, ...] = ()
    legend: tuple[LabelStyle, ...] = ()
    notes: tuple[str, ...] = ()

    def to_chart(self) -> Chart:
        """Return the chart itself."""
        return self


@dataclass(frozen=True, slots=True, repr=False)
class FigureStack(BaseFigure):
    """Several figures in one drawing, from top to bottom."""

    figures: tuple[BaseFigure, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class DotFigure(BaseFigure):
    """Figure with rows of dots and intervals on a common axis.

    `band` is a reference estimate, e.g. of human text, drawn as a grey band through all rows. With a second axis,
    `headers` has the column headers, and `second_is_open` is True if the second estimate is a comparison value, drawn
    as an open dot.
    """

    rows: tuple[DotRow, ...] = ()
    axis: Axis = field(default_factory=lambda: Axis(0, 1, (0, 0.5, 1)))
    band: Estimate | None = None
    headers: tuple[str, ...] = ()
    second_axis: Axis | None = None
    second_band: Estimate | None = None
    second_is_open: bool = False

    def to_chart(self) -> Chart:
        """Return one panel, or two next to each other if there is a second axis."""
        names = number_duplicates([row.name for row in self.rows])
        step = 48 if any(row.text_values for row in self.rows) else 28
        down = Categories(names, step=step, font_size=13, bold=names)
        columns: list[tuple[Axis, Estimate | None, str, Sequence[DotRow | None]]] = [
            (self.axis, self.band, "", self.rows)
        ]
        if self.second_axis:  # two columns need headers to tell them apart
            seconds = [row.with_second(self.second_is_open) if row.second else None for row in self.rows]
            columns = [(self.axis, self.band, self.headers[1], self.rows)]
            columns.append((self.second_axis, self.second_band, self.headers[2], seconds))
        panels = []
        for axis, band, title, rows in columns:
            across = replace(axis, length=520 if len(columns) == 1 else 320)
            marks = (row.to_dot(name, axis) for name, row in zip(names, rows, strict=True) if row and not row.nothing)
            values = (axis.format_estimate(row.estimate) if row else "" for row in rows)
            panels.append(PlotPanel(across, down, tuple(marks), title, None, band, tuple(values)))
        return Chart(self.id, self.title, self.caption, panels=tuple(panels), columns=2)


@dataclass(frozen=True, slots=True)
class LabelPanel:
    """Small multiple for one label, with one dot per system."""

    style: LabelStyle
    rows: tuple[DotRow, ...]


@dataclass(frozen=True, slots=True, repr=False)
class PanelFigure(BaseFigure):
    """Figure of small multiples with a common axis."""

    panels: tuple[LabelPanel, ...] = ()
    axis: Axis = field(default_factory=lambda: Axis(0, 1, (0, 0.5, 1)))

    def split_unused_panels(self) -> tuple[tuple[LabelPanel, ...], tuple[LabelPanel, ...]]:
        """Split panels into those to draw, and those whose label has no mark in any system.

        If no label has a mark, all panels are drawn.
        """
        unused = tuple(panel for panel in self.panels if panel.rows and all(row.nothing for row in panel.rows))
        if len(unused) == len(self.panels):
            return self.panels, ()
        return tuple(panel for panel in self.panels if panel not in unused), unused

    def to_chart(self) -> Chart:
        """Return one panel per label that is used, five panels side by side."""
        drawn, unused = self.split_unused_panels()
        panels = []
        for panel in drawn:
            names = number_duplicates([row.name for row in panel.rows])
            marks = [
                Text(self.axis.low, name, row.nothing, dx=2, colour="ink-3")
                if row.nothing
                else row.to_dot(name, self.axis, panel.style.slot if panel.style.slot != UNLABELLED_SLOT else "ink")
                for name, row in zip(names, panel.rows, strict=True)
            ]
            across, down = replace(self.axis, length=130), Categories(names, step=20)
            panels.append(PlotPanel(across, down, tuple(marks), panel.style.title, panel.style))
        notes = (describe_unused_labels(unused),) if unused else ()
        return Chart(self.id, self.title, self.caption, panels=tuple(panels), columns=5, notes=notes)


def describe_unused_labels(panels: Sequence[LabelPanel]) -> str:
    """Return a sentence that lists the labels without a mark in any system."""
    return f"Labels without a mark in any system: {', '.join(panel.style.title for panel in panels)}."


@dataclass(frozen=True, slots=True, repr=False)
class BarFigure(BaseFigure):
    """Bar chart of amounts with a total.

    A bar has a name, an amount and the formatted amount. `facts` are names and values shown next to the bars.
    """

    bars: tuple[tuple[str, float, str], ...] = ()
    total: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def to_chart(self) -> Chart:
        """Return one panel with the total in its last row."""
        names = number_duplicates([*(name for name, _, _ in self.bars), "Total"])
        marks = [
            Bar(0, name, amount, "ink", thickness=0.43) for name, (_, amount, _) in zip(names, self.bars, strict=False)
        ]
        across = Axis(0, max([amount for _, amount, _ in self.bars], default=1.0) or 1.0, (), length=412, hidden=True)
        down = Categories(names, step=28, font_size=13, bold=names[-1:])
        values = (*(words for _, _, words in self.bars), self.total)
        return Chart(self.id, self.title, self.caption, panels=(PlotPanel(across, down, tuple(marks), values=values),))


@dataclass(frozen=True, slots=True)
class TextBar:
    """Bar of one text in the chart of its system."""

    document: str
    value: float
    page: str


MAX_TEXT_BARS = 60  # per system; with more texts, each bar is the mean of several


def merge_text_bars(bars: Sequence[TextBar]) -> tuple[TextBar, ...]:
    """Merge the bars of a system so that at most 60 remain; a merged bar is the mean of neighbouring texts.

    A merged bar links to the first of its texts.
    """
    size = max(1, math.ceil(len(bars) / MAX_TEXT_BARS))
    if size == 1:
        return tuple(bars)
    return tuple(
        TextBar(
            f"{len(group)} texts, starting with {group[0].document}",
            sum(bar.value for bar in group) / len(group),
            group[0].page,
        )
        for group in (bars[start : start + size] for start in range(0, len(bars), size))
    )


@dataclass(frozen=True, slots=True, repr=False)
class TextBarFigure(BaseFigure):
    """Figure with one bar per text, grouped by system."""

    groups: tuple[tuple[str, tuple[TextBar, ...]], ...] = ()

    def merged_groups(self) -> list[tuple[str, str, tuple[TextBar, ...]]]:
        """Return the name, the number of texts and the bars of each system."""
        groups = []
        for name, texts in self.groups:
            size = max(1, math.ceil(len(texts) / MAX_TEXT_BARS))
            count = format_count_with_noun(len(texts), "text") + (f", {size} per bar" if size > 1 else "")
            groups.append((name, count, merge_text_bars(texts)))
        return groups

    def to_chart(self) -> Chart:
        """Return one panel per system, in which bars extend downwards from a line."""
        groups = self.merged_groups()
        highest = max((bar.value for _, _, bars in groups for bar in bars), default=0.0) or 1.0
        panels = []
        for name, count, bars in groups:
            numbers = tuple(map(str, range(len(bars)))) or ("",)
            across = Categories(numbers, f"{name} {count}", step=12, hidden=True)
            marks = [
                Bar(number, 0, -bar.value, "ink-2", thickness=0.67, description=f"{bar.document}: {bar.value:.1f}")
                for number, bar in zip(numbers, bars, strict=False)
            ]
            top = Line(((numbers[0], 0), (numbers[-1], 0)))
            panels.append(PlotPanel(across, Axis(-highest, 0, (), length=78, inset=1, hidden=True), (*marks, top)))
        return Chart(self.id, self.title, self.caption, panels=tuple(panels), columns=len(panels))


@dataclass(frozen=True, slots=True, repr=False)
class TableFigure(BaseFigure):
    """Figure without a plot, shown as a table."""


@dataclass(frozen=True, slots=True)
class HeadlineStatement:
    """Short statement below the headline: a heading and one or two sentences."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class ReportHeadline:
    """Main result of a report: one sentence, its numbers, and statements on its robustness."""

    sentence: str
    numbers: str
    difference: DotFigure | None = None
    statements: tuple[HeadlineStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Content of the first page of a report.

    `facts` are names and values on how the report was made, and `notes` are reasons for missing figures.
    """

    title: str
    date: str
    counts: str
    headline: ReportHeadline
    figures: tuple[BaseFigure, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
