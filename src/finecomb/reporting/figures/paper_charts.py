"""Charts of reproduced tables and figures: dots with intervals, stacked bars, heat maps, lines and bars.

Each mark of a chart has a description that ends in its number, so that a screen reader can read it and a test can
compare it with the table. Labels are identified by flag and name, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from finecomb.core.palette import LabelStyle
from finecomb.reporting.figures.figure_model import (
    Bar,
    Categories,
    Cell,
    Chart,
    Dot,
    Line,
    Mark,
    PlotPanel,
    Text,
    build_axis,
)

Points = Sequence[Mapping[str, object]]
HUMAN_SYSTEM = "human"


def rank_names_by_mean(points: Points, name: str) -> list[str]:
    """Return the values of a column ranked by mean, highest first and human text last."""
    values: dict[str, list[float]] = {}
    for point in points:
        values.setdefault(str(point[name]), []).append(_number(point["value"]))
    means = {key: sum(numbers) / len(numbers) for key, numbers in values.items()}
    return sorted(means, key=lambda key: (key == HUMAN_SYSTEM, -means[key]))


def _number(value: object) -> float:
    return math.nan if value is None else float(str(value))


def _describe(point: Mapping[str, object], *names: str, value: str = "value") -> str:
    """Return the names and the number of a point, for screen readers and tooltips."""
    words = ", ".join(str(point[name]) for name in names if name and point.get(name) is not None)
    return f"{words}: {_number(point[value]):.6g}"


def _unique(points: Points, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(point[name]) for point in points))


def _chart(points: Points, panel: str, columns: int, draw: Callable[[Points], PlotPanel]) -> Chart:
    """Return a chart with one panel per value of the column `panel`, or a single untitled panel with all points."""
    if not panel:
        return Chart(panels=(draw(points),))
    panels = tuple(
        replace(draw([point for point in points if str(point[panel]) == head]), title=head)
        for head in _unique(points, panel)
    )
    return Chart(panels=panels, columns=columns, repeats_axes=columns > 1)


def dot_chart(
    points: Points, down: str, title: str, *, panel: str = "", names: Sequence[str] = (),
    columns: int = 5, width: int = 0, zero: bool = True,
) -> Chart:  # fmt: skip
    """Draw estimates as dots with interval lines, one panel per value of `panel`."""
    rows = Categories(tuple(names or rank_names_by_mean(points, down)))
    ends = [_number(point.get(name)) for point in points for name in ("value", "low", "high")]
    axis = replace(build_axis(ends, zero=zero), title=title, length=width or (150 if panel else 420))

    def draw(own: Points) -> PlotPanel:
        marks = tuple(
            Dot(
                _number(point["value"]), str(point[down]), _number(point.get("low")), _number(point.get("high")),
                description=_describe(point, panel, down),
            )
            for point in own
        )  # fmt: skip
        return PlotPanel(axis, rows, marks)

    return _chart(points, panel, columns, draw)


def ranked_dot_chart(points: Points, down: str, title: str, *, panel: str, columns: int = 3) -> Chart:
    """Draw dots without intervals, ranked within each panel; each panel has its own names."""
    axis = replace(build_axis([_number(point["value"]) for point in points]), title=title)

    def draw(own: Points) -> PlotPanel:
        ranked = sorted(own, key=lambda point: -_number(point["value"]))
        marks = (Dot(_number(p["value"]), str(p[down]), description=_describe(p, panel, down)) for p in ranked)
        return PlotPanel(axis, Categories(_unique(ranked, down)), tuple(marks))

    return _chart(points, panel, columns, draw)


def stacked_bar_chart(
    points: Points, down: str, part: str, title: str, styles: Mapping[str | None, LabelStyle]
) -> Chart:
    """Draw one stacked bar per row; each part has the colour and the flag of its label."""
    ends: dict[str, float] = {}
    marks = []
    for point in points:
        name, style = str(point[down]), styles.get(str(point[part]))
        start = ends.get(name, 0.0)
        ends[name] = start + _number(point["value"])
        bar = Bar(start, name, ends[name], style.slot if style else "edge", words=style.flag if style else "")
        marks.append(replace(bar, min_length=0, description=_describe(point, down, part)))
    rows = Categories(tuple(sorted(ends, key=lambda key: (key == HUMAN_SYSTEM, -ends[key]))), step=28)
    axis = replace(build_axis(list(ends.values())), title=title, length=460)
    return Chart(panels=(PlotPanel(axis, rows, tuple(marks)),), legend=_legend(points, part, styles))


def _legend(points: Points, part: str, styles: Mapping[str | None, LabelStyle]) -> tuple[LabelStyle, ...]:
    return tuple(styles[name] for name in _unique(points, part) if name in styles)


def heat_map(
    points: Points, across: str, down: str, *, panel: str = "", digits: int = 2, columns: int = 2,
    shared: bool = True, step: int = 46,
) -> Chart:  # fmt: skip
    """Draw a heat map with the number in each cell; panels share one scale of shades unless `shared` is False."""
    x = Categories(_unique(points, across), across.replace("_", " "), step=step)
    y = Categories(_unique(points, down), step=26)

    def draw(own: Points) -> PlotPanel:
        darkest = max([abs(_number(point["value"])) for point in (points if shared else own)], default=0.0) or 1.0
        cells = tuple(
            Cell(
                str(point[across]), str(point[down]), abs(_number(point["value"])) / darkest,
                f"{_number(point['value']):.{digits}f}".replace("-", "−"),
                description=_describe(point, panel, down, across),
            )
            for point in own
        )  # fmt: skip
        return PlotPanel(x, y, cells)

    return _chart(points, panel, columns, draw)


def line_chart(points: Points, across: str, title: str, *, panel: str, columns: int = 4) -> Chart:
    """Draw lines with dots and an interval band, one panel per value of `panel`."""
    x = replace(build_axis([_number(point[across]) for point in points]), title=across)
    ends = [_number(point.get(name)) for point in points for name in ("value", "low", "high")]
    y = replace(build_axis(ends), title=title, length=110)

    def draw(own: Points) -> PlotPanel:
        ranked = sorted(own, key=lambda point: _number(point[across]))
        line, upper, lower = (
            tuple((_number(p[across]), _number(p["value"] if p.get(name) is None else p[name])) for p in ranked)
            for name in ("value", "high", "low")
        )
        marks: list[Mark] = [Line((*upper, *lower[::-1]), fill="wash"), Line(line)]
        marks += [
            Dot(*place, radius=3.5, description=_describe(point, panel, across))
            for place, point in zip(line, ranked, strict=True)
        ]
        return PlotPanel(x, y, tuple(marks))

    return _chart(points, panel, columns, draw)


def share_bar_chart(points: Points, down: str, title: str) -> Chart:
    """Draw horizontal bars of shares with their values in per cent, in the order of the points."""
    axis = replace(build_axis([_number(point["value"]) for point in points], percent=True), title=title, length=360)
    bars = (Bar(0, str(p[down]), _number(p["value"]), description=_describe(p, down)) for p in points)
    words = (Text(_number(p["value"]), str(p[down]), f"{_number(p['value']):.1%}", dx=4) for p in points)
    return Chart(panels=(PlotPanel(axis, Categories(_unique(points, down)), (*bars, *words)),))


def histogram(points: Points, across: str, title: str, *, panel: str, columns: int = 3) -> Chart:
    """Draw vertical bars of counts, one panel per value of `panel`."""
    places = Categories(tuple(sorted(_unique(points, across), key=float)), across, step=22)
    places = replace(places, step=max(22, 180 / len(places.names)))
    axis = replace(build_axis([_number(point["value"]) for point in points]), title=title, length=120, inset=0)

    def draw(own: Points) -> PlotPanel:
        bars = (
            Bar(
                str(p[across]),
                0,
                _number(p["value"]),
                thickness=0.85,
                min_length=0,
                description=_describe(p, panel, across),
            )
            for p in own
        )
        return PlotPanel(places, axis, tuple(bars))

    return _chart(points, panel, columns, draw)


def span_strip_chart(
    points: Points, down: str, part: str, title: str, styles: Mapping[str | None, LabelStyle]
) -> Chart:
    """Draw the spans along a text, one row per annotator; colour and flag identify the label."""
    marks = []
    for point in points:
        style = styles.get(str(point[part]))
        bar = Bar(_number(point["start"]), str(point[down]), _number(point["end"]), style.slot if style else "edge")
        described = _describe(point, down, part, value="start")
        marks.append(replace(bar, opacity=0.6, thickness=0.64, description=described))
    axis = replace(build_axis([_number(point["end"]) for point in points]), title=title, length=560)
    panel = PlotPanel(axis, Categories(_unique(points, down)), tuple(marks))
    return Chart(panels=(panel,), legend=_legend(points, part, styles))


def join_columns(charts: Mapping[str, Chart]) -> Chart:
    """Join charts as columns below their titles; panels with the same title share a line."""
    charts = {title: chart for title, chart in charts.items() if chart.panels}
    titles = dict.fromkeys(panel.title for chart in charts.values() for panel in chart.panels)
    columns = [{panel.title: panel for panel in chart.panels} for chart in charts.values()]
    empty = [replace(chart.panels[0], marks=()) for chart in charts.values()]
    panels = (own.get(title, blank) for title in titles for own, blank in zip(columns, empty, strict=True))
    return Chart(panels=tuple(panels), columns=len(charts), repeats_axes=False, headers=tuple(charts))
