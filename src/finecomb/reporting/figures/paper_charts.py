"""Charts of exhibits in one look: dots with intervals, stacks, heat maps, lines and bars, as Altair draws them.

Every mark has a description that ends in its number, so that a screen reader can say it and a test can compare it with
the table. Labels are told by flag and name, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from finecomb.core.palette import LabelStyle
from finecomb.reporting.page_shell import LIGHT

Points = Sequence[Mapping[str, object]]
HUMAN = "human"
_INK = LIGHT["ink"]
_ROW_HEIGHT = 22
_DARKEST_SHADE = "#a3aab3"  # ink can still be read on it


def rank_by_mean(points: Points, name: str) -> list[str]:
    """Values of a column, most first by their mean, human last."""
    values: dict[str, list[float]] = {}
    for point in points:
        values.setdefault(str(point[name]), []).append(float(str(point["value"])))
    means = {key: sum(numbers) / len(numbers) for key, numbers in values.items()}
    return sorted(means, key=lambda key: (key == HUMAN, -means[key]))


def add_descriptions(points: Points, *names: str, value: str = "value") -> list[dict[str, object]]:
    """Points with `said`, what a mark is in words and its number, and both ends of an interval of no width."""
    rows = []
    for point in points:
        words = ", ".join(str(point[name]) for name in names if point.get(name) is not None)
        ends = {edge: point[value] for edge in ("low", "high") if edge in point and point[edge] is None}
        rows.append({**point, **ends, "said": f"{words}: {float(str(point[value])):.6g}"})
    return rows


def _inline_data(rows: Points) -> alt.InlineData:
    return alt.InlineData(values=[dict(row) for row in rows])


def _attach_data(chart: Any, rows: Points) -> alt.TopLevelMixin:
    whole: alt.TopLevelMixin = chart.properties(data=_inline_data(rows))
    return whole


def _name_axis(name: str, names: Sequence[str] | None) -> alt.Y:
    return alt.Y(
        f"{name}:N", sort=list(names) if names else None, title=None,
        axis=alt.Axis(labelLimit=400, labelPadding=8, domain=False, ticks=False),
    )  # fmt: skip


def dot_chart(
    points: Points, down: str, title: str, *, panel: str = "", panels: Sequence[str] = (), names: Sequence[str] = (),
    columns: int = 5, width: int = 0, zero: bool = True,
) -> alt.TopLevelMixin:  # fmt: skip
    """A dot for each estimate with its interval as a line; one panel for each value of `panel`."""
    rows = add_descriptions(points, *([panel] if panel else []), down)
    down_names = list(names) or rank_by_mean(points, down)
    wide = width or (150 if panel else 420)
    scale = alt.Scale(zero=zero)
    base = alt.Chart().encode(y=_name_axis(down, down_names))
    axis = alt.Axis(tickCount=4 if panel else 6, labelFlush=False, labelOverlap="greedy")
    lines = base.mark_rule(strokeWidth=2, strokeCap="round", color=_INK, aria=False).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=axis), x2="high:Q"
    )
    circles = base.mark_point(filled=True, size=70, color=_INK, opacity=1).encode(
        x=alt.X("value:Q", scale=scale), description="said:N"
    )
    chart = alt.layer(lines, circles).properties(width=wide, height=alt.Step(_ROW_HEIGHT))
    if not panel:
        return _attach_data(chart, rows)
    heads = list(panels) or list(dict.fromkeys(str(row[panel]) for row in rows))
    facet = alt.Facet(f"{panel}:N", sort=heads, title=None, header=alt.Header(labelAnchor="start", labelLimit=wide))
    return alt.FacetChart(data=_inline_data(rows), spec=chart, facet=facet, columns=columns)


def stacked_bar_chart(
    points: Points, down: str, part: str, title: str, looks: Mapping[str | None, LabelStyle]
) -> alt.TopLevelMixin:
    """A bar for each row, cut into parts that add up; each part has its colour and, where there is room, its flag."""
    rows = _stack_rows(points, down, part, looks)
    parts = list(dict.fromkeys(str(point[part]) for point in points))
    colours = [_colour(looks, name) for name in parts]
    base = alt.Chart(_inline_data(rows)).encode(y=_name_axis(down, _rank_by_total(points, down)))
    colour = alt.Color(f"{part}:N", scale=alt.Scale(domain=parts, range=colours), legend=_legend(parts, looks))
    bars = base.mark_bar(stroke="white", strokeWidth=1, height=16).encode(
        x=alt.X("start:Q", title=title), x2="end:Q", color=colour, description="said:N"
    )
    flags = base.mark_text(fontSize=10, fontWeight=700, aria=False).encode(
        x="middle:Q", text="flag:N", color=alt.Color("ink:N", scale=None)
    )
    sized = alt.layer(bars, flags).properties(width=460, height=alt.Step(28))
    stack: alt.TopLevelMixin = sized.resolve_scale(color="independent")
    return stack


def _rank_by_total(points: Points, down: str) -> list[str]:
    sums: dict[str, float] = {}
    for point in points:
        sums[str(point[down])] = sums.get(str(point[down]), 0.0) + float(str(point["value"]))
    return sorted(sums, key=lambda key: (key == HUMAN, -sums[key]))


def _stack_rows(
    points: Points, down: str, part: str, looks: Mapping[str | None, LabelStyle]
) -> list[dict[str, object]]:
    """Where each part begins and ends, and its flag where it is wide enough for one."""
    ends: dict[str, float] = {}
    rows = add_descriptions(points, down, part)
    for row in rows:
        start = ends.get(str(row[down]), 0.0)
        ends[str(row[down])] = start + float(str(row["value"]))
        row |= {"start": start, "end": ends[str(row[down])], "middle": start + float(str(row["value"])) / 2}
    widest = max(ends.values(), default=1.0) or 1.0
    for row in rows:
        look = looks.get(str(row[part]))
        is_wide = float(str(row["value"])) > 0.045 * widest
        row |= {"flag": look.flag if look and is_wide else "", "ink": look.slot.light_text if look else _INK}
    return rows


def _colour(looks: Mapping[str | None, LabelStyle], name: str) -> str:
    look = looks.get(name)
    return look.slot.light if look else LIGHT["edge"]


def _legend(parts: Iterable[str], looks: Mapping[str | None, LabelStyle]) -> alt.Legend:
    """Names with their flags."""
    said = {name: f"{looks[name].flag}  {looks[name].title}" if name in looks else name for name in parts}
    expression = " : ".join(f"datum.label == '{name}' ? '{words}'" for name, words in said.items())
    return alt.Legend(title=None, labelExpr=f"{expression} : datum.label", symbolType="square", labelLimit=220)


def heat_map(
    points: Points, across: str, down: str, title: str, *, panel: str = "", digits: int = 2, columns: int = 2,
    shared: bool = True, step: int = 46,
) -> alt.TopLevelMixin:  # fmt: skip
    """A number in each cell on a shade of ink that says how much; panels side by side."""
    rows = add_descriptions(points, *([panel] if panel else []), down, across)
    across_names, down_names = (list(dict.fromkeys(str(row[name]) for row in rows)) for name in (across, down))
    angle = -45 if max(map(len, across_names)) > 7 else 0
    base = alt.Chart().encode(
        x=alt.X(f"{across}:N", sort=across_names, title=across.replace("_", " "),
                axis=alt.Axis(labelAngle=angle, domain=False, ticks=False, labelLimit=160)),
        y=alt.Y(f"{down}:N", sort=down_names, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=200)),
    )  # fmt: skip
    shades = [abs(float(str(row["value"]))) for row in rows]
    rows = [{**row, "shade": shade} for row, shade in zip(rows, shades, strict=True)]
    domain = [0.0, max([*shades, 1e-9])] if shared else alt.Undefined
    colour = alt.Color("shade:Q", scale=alt.Scale(domain=domain, range=[LIGHT["well"], _DARKEST_SHADE]), legend=None)
    cells = base.mark_rect(stroke="white", strokeWidth=2).encode(color=colour, description="said:N")
    words = base.mark_text(fontSize=11, color=_INK, aria=False).encode(text=alt.Text("value:Q", format=f".{digits}f"))
    chart = alt.layer(cells, words).properties(width=alt.Step(step), height=alt.Step(26))
    if not panel:
        return chart.properties(data=_inline_data(rows), title=title)
    names = list(dict.fromkeys(str(row[panel]) for row in rows))
    facet = alt.Facet(f"{panel}:N", sort=names, title=title, header=alt.Header(labelAnchor="start"))
    room = 8 * max(map(len, names)) - step * len(across_names)  # what a head needs beyond its cells
    faceted = alt.FacetChart(
        data=_inline_data(rows), spec=chart, facet=facet, columns=columns, spacing=max(20, room + 12)
    )
    return faceted if shared else faceted.resolve_scale(color="independent")


def line_chart(points: Points, across: str, title: str, *, panel: str, columns: int = 4) -> alt.TopLevelMixin:
    """A line through dots with a band for the interval, one panel for each value of `panel`."""
    rows = add_descriptions(points, panel, across)
    names = list(dict.fromkeys(str(row[panel]) for row in rows))
    base = alt.Chart().encode(x=alt.X(f"{across}:Q", axis=alt.Axis(tickCount=4, labelOverlap="greedy")))
    value = alt.Y("value:Q", title=title, axis=alt.Axis(tickCount=4, labelOverlap="greedy"))
    layers = (
        base.mark_area(color=LIGHT["wash"], aria=False).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(color=_INK, strokeWidth=2, aria=False).encode(y=value),
        base.mark_point(filled=True, size=40, color=_INK, opacity=1).encode(y=value, description="said:N"),
    )
    chart = alt.layer(*layers).properties(width=150, height=110)
    facet = alt.Facet(f"{panel}:N", sort=names, title=None, header=alt.Header(labelAnchor="start"))
    return alt.FacetChart(data=_inline_data(rows), spec=chart, facet=facet, columns=columns)


def bar_chart(
    points: Points, down: str, title: str, *, names: Sequence[str] = (), panel: str = "", columns: int = 3,
    digits: int = 0, percent: bool = False,
) -> alt.TopLevelMixin:  # fmt: skip
    """Bars for things that add up, each with its number."""
    rows = add_descriptions(points, *([panel] if panel else []), down)
    down_names = list(names) or rank_by_mean(points, down)
    base = alt.Chart().encode(y=_name_axis(down, down_names))
    axis = alt.Axis(tickCount=4, format="%" if percent else alt.Undefined, labelOverlap="greedy")
    value = alt.X("value:Q", title=title, axis=axis)
    rectangles = base.mark_bar(color=LIGHT["edge"], height=13).encode(x=value, description="said:N")
    form = f".{digits}%" if percent else f",.{digits}f"
    words = base.mark_text(align="left", dx=4, fontSize=12, color=_INK, aria=False).encode(
        x="value:Q", text=alt.Text("value:Q", format=form)
    )
    chart = alt.layer(rectangles, words).properties(width=220 if panel else 360, height=alt.Step(_ROW_HEIGHT))
    if not panel:
        return _attach_data(chart, rows)
    heads = list(dict.fromkeys(str(row[panel]) for row in rows))
    facet = alt.Facet(f"{panel}:N", sort=heads, title=None, header=alt.Header(labelAnchor="start"))
    return alt.FacetChart(data=_inline_data(rows), spec=chart, facet=facet, columns=columns)


def ranked_dot_chart(points: Points, down: str, title: str, *, panel: str, columns: int = 3) -> alt.TopLevelMixin:
    """Dots without intervals, most first within each panel, each panel with names of its own."""
    rows = add_descriptions(points, panel, down)
    base = alt.Chart().encode(y=alt.Y(f"{down}:N", sort="-x", title=None, axis=alt.Axis(domain=False, ticks=False)))
    value = alt.X("value:Q", title=title, axis=alt.Axis(tickCount=4))
    chart = base.mark_point(filled=True, size=70, color=_INK, opacity=1).encode(x=value, description="said:N")
    names = list(dict.fromkeys(str(row[panel]) for row in rows))
    facet = alt.Facet(f"{panel}:N", sort=names, title=None, header=alt.Header(labelAnchor="start"))
    spec = chart.properties(width=150, height=alt.Step(_ROW_HEIGHT))
    faceted = alt.FacetChart(data=_inline_data(rows), spec=spec, facet=facet, columns=columns)
    apart: alt.TopLevelMixin = faceted.resolve_scale(y="independent")
    return apart


def histogram(points: Points, across: str, title: str, *, panel: str, columns: int = 3) -> alt.TopLevelMixin:
    """Upright bars of counts, one panel for each value of `panel`."""
    rows = add_descriptions(points, panel, across)
    names = list(dict.fromkeys(str(row[panel]) for row in rows))
    places = alt.X(f"{across}:O", axis=alt.Axis(labelAngle=0, labelOverlap="greedy", domain=False, ticks=False))
    chart = (
        alt.Chart().mark_bar(color=LIGHT["edge"])
        .encode(x=places, y=alt.Y("value:Q", title=title, axis=alt.Axis(tickCount=4)), description="said:N")
        .properties(width=180, height=120)
    )  # fmt: skip
    facet = alt.Facet(f"{panel}:N", sort=names, title=None, header=alt.Header(labelAnchor="start"))
    return alt.FacetChart(data=_inline_data(rows), spec=chart, facet=facet, columns=columns)


def span_strip_chart(
    points: Points, down: str, part: str, title: str, looks: Mapping[str | None, LabelStyle]
) -> alt.TopLevelMixin:
    """Places along a text, one row for each reader; colour and flag say the label."""
    rows = add_descriptions(points, down, part, value="start")
    parts = list(dict.fromkeys(str(point[part]) for point in points))
    colour = alt.Color(
        f"{part}:N", scale=alt.Scale(domain=parts, range=[_colour(looks, name) for name in parts]),
        legend=_legend(parts, looks),
    )  # fmt: skip
    names = list(dict.fromkeys(str(point[down]) for point in points))
    place = alt.X("start:Q", title=title)
    chart = alt.Chart(_inline_data(rows)).mark_rect(height=14, opacity=0.6)
    marks = chart.encode(y=_name_axis(down, names), x=place, x2="end:Q", color=colour, description="said:N")
    strip: alt.TopLevelMixin = marks.properties(width=560, height=alt.Step(_ROW_HEIGHT))
    return strip


def concat_charts(charts: Mapping[str, Any]) -> alt.TopLevelMixin:
    """Several charts with a head each."""
    return alt.hconcat(*(chart.properties(title=head) for head, chart in charts.items()))
