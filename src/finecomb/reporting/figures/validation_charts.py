"""Figures of a validation: precision and recall by label with intervals, and confusion of labels.

Colour means a label and nothing else; counts are shades of ink. A label is never told by colour alone: its flag stands
beside its point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import vl_convert

from finecomb.core.estimate import Estimate
from finecomb.core.palette import SLOTS, UNLABELLED_SLOT, LabelStyle, label_styles
from finecomb.reporting.figures.label_placement import NameBox, build_name_box, place_names
from finecomb.reporting.page_shell import DARK, LIGHT
from finecomb.statistics.gold.disagreements import EXTRA, MISSED, label_confusion_rows
from finecomb.statistics.gold.scores import TYPED_ROW, Score, Scores
from finecomb.statistics.selection.view import ANY

VegaSpec = dict[str, Any]
Point = dict[str, object]
_VEGA_LITE_VERSION = alt.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]
_DARKEST_SHADES = {False: "#a3aab3", True: "#565d67"}  # ink can still be read on it
_PLOT_SIDE = 270  # pixels of the plane of precision and recall
_F1_LEVELS = (0.2, 0.4, 0.6, 0.8)
_FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif'


def recolour_for_dark(spec: VegaSpec) -> VegaSpec:
    """A chart drawn in the colours of the light page, in those of the dark one."""
    colours = {
        slot.light: slot.dark for slot in (*(slot for group in SLOTS.values() for slot in group), UNLABELLED_SLOT)
    }
    colours |= {LIGHT[name]: DARK[name] for name in LIGHT} | {
        "white": DARK["paper"],
        _DARKEST_SHADES[False]: _DARKEST_SHADES[True],
    }
    text = json.dumps(spec)
    for light, dark in colours.items():
        text = text.replace(f'"{light}"', f'"{dark}"')
    turned: VegaSpec = json.loads(text)
    return turned


def apply_theme(chart: alt.TopLevelMixin, dark: bool) -> VegaSpec:
    """The chart as data, in the colours of the page."""
    ink = DARK if dark else LIGHT
    text = {"labelColor": ink["ink-2"], "titleColor": ink["ink-3"], "labelFontSize": 12, "titleFontSize": 12}
    config = {
        "background": ink["paper"],
        "padding": {"left": 52, "right": 36, "top": 8, "bottom": 8},  # fonts of readers may be wider than ours
        "font": _FONT,
        "view": {"stroke": None},
        "axis": text | {"gridColor": ink["line"], "domainColor": ink["line-2"], "tickColor": ink["line-2"]}
        | {"titleFontWeight": "normal"},
        "header": {"labelColor": ink["ink"], "labelFontSize": 12, "labelFontWeight": 600, "title": None},
        "legend": text | {"titleFontWeight": "normal"},
        "title": {"color": ink["ink"], "fontSize": 14, "anchor": "start", "subtitleColor": ink["ink-3"]},
    }  # fmt: skip
    return {**chart.to_dict(), "config": config}


# --- precision and recall ----------------------------------------------------------------------------------------


def precision_recall(scores: Scores, dark: bool = False) -> VegaSpec:
    """A point for each label with its intervals in both directions, one panel for each judge; curves of equal F1."""
    return apply_theme(_concat_panels(_precision_recall_charts(scores, dark), 3), dark)


def precision_recall_panels(scores: Scores, dark: bool = False) -> dict[str, VegaSpec]:
    """The panels of `precision_recall` as charts of their own, by judge."""
    return {name: apply_theme(chart, dark) for name, chart in _precision_recall_charts(scores, dark).items()}


def _precision_recall_charts(scores: Scores, dark: bool) -> dict[str, alt.LayerChart]:
    ink = DARK if dark else LIGHT
    label_looks = label_styles(scores.pair.protocol)
    panels: dict[str, list[Point]] = {}
    for row in scores.rows:
        points = panels.setdefault(_panel_name(row), [])
        if not is_undefined(row):
            points.append(_point(row, label_looks))
    slots = {name: look.slot for name, look in label_looks.items() if name}
    colours = {name: slot.dark if dark else slot.light for name, slot in slots.items()}
    return {name: _precision_recall_layer(_place_point_names(points), colours, ink) for name, points in panels.items()}


def _precision_recall_layer(
    points: Sequence[Point], colours: Mapping[str, str], ink: Mapping[str, str]
) -> alt.LayerChart:
    """Recall across, precision up."""
    names = [str(point["label"]) for point in points]
    scale = alt.Scale(domain=names, range=[colours.get(name, ink["ink"]) for name in names])
    unit = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], labelFlush=False)
    base = alt.Chart().encode(
        x=alt.X("recall:Q", scale=unit, title="recall", axis=axis),
        y=alt.Y("precision:Q", scale=unit, title="precision", axis=axis),
        color=alt.Color("label:N", scale=scale, legend=None),
        tooltip=[
            alt.Tooltip(f"{name}_shown:N", title=name) for name in ("label", "recall", "precision", "f1", "counts")
        ],
    )
    words = base.mark_text(align="left", baseline="middle", fontSize=11, fontWeight=700)
    return alt.layer(
        *_f1_curves(ink),
        base.mark_rule(strokeWidth=1.5, opacity=0.45).encode(x=alt.X("recall_low:Q"), x2="recall_high:Q"),
        base.mark_rule(strokeWidth=1.5, opacity=0.45).encode(y=alt.Y("precision_low:Q"), y2="precision_high:Q"),
        base.mark_point(filled=True, size=70, opacity=1),
        words.encode(x=alt.X("name_x:Q"), y=alt.Y("name_y:Q"), text="name:N"),
        data=alt.InlineData(values=list(points)),
    ).properties(width=_PLOT_SIDE, height=_PLOT_SIDE)  # type: ignore[return-value]  # without facets a layer stays one


def _place_point_names(points: Sequence[Point]) -> list[Point]:
    """Points with their names: those of one spot side by side, and none where another name or point is."""
    names: dict[tuple[float, float], list[str]] = {}
    for point in points:
        names.setdefault(_point_position(point), []).append(str(point["name"]))
    area = NameBox(2, -14, _PLOT_SIDE + 60, _PLOT_SIDE - 2)
    spots = [(_PLOT_SIDE * recall, _PLOT_SIDE * (1 - precision)) for recall, precision in names]
    shown = [" ".join(same) for same in names.values()]
    ends = [build_name_box("0.8", _PLOT_SIDE - 26, _PLOT_SIDE * (1 - f / (2 - f)) - 6) for f in _F1_LEVELS]
    places = dict(zip(names, zip(shown, place_names(spots, shown, area, ends), strict=True), strict=True))
    gathered: list[Point] = []
    for point in points:
        name, (left, middle) = places.pop(_point_position(point), ("", (0.0, 0.0)))
        gathered.append({**point, "name": name, "name_x": left / _PLOT_SIDE, "name_y": 1 - middle / _PLOT_SIDE})
    return gathered


def _point_position(point: Point) -> tuple[float, float]:
    return float(str(point["recall"])), float(str(point["precision"]))


def _concat_panels(charts: Mapping[str, alt.LayerChart], columns: int) -> alt.TopLevelMixin:
    """One panel for each judge; a single one needs no heading."""
    if len(charts) == 1:
        return next(iter(charts.values()))
    return alt.concat(*(chart.properties(title=name) for name, chart in charts.items()), columns=columns)


def is_undefined(row: Score) -> bool:
    """Whether a row has no point."""
    return math.isnan(row.recall.value) or math.isnan(row.precision.value)


def _point(row: Score, label_looks: Mapping[str | None, LabelStyle]) -> Point:
    label = str(row.columns["label"])
    look = label_looks.get(label)
    point: Point = {"label": label, "label_shown": look.title if look else _TOTAL_TITLES.get(label, label)}
    point["name"] = look.flag if look else label
    for ratio in ("recall", "precision", "f1"):
        estimate: Estimate = getattr(row, ratio)
        point |= {ratio: estimate.value, f"{ratio}_shown": estimate.short()}
        point |= {
            f"{ratio}_low": _edge_or_value(estimate.low, estimate.value),
            f"{ratio}_high": _edge_or_value(estimate.high, estimate.value),
        }
    return point | {"counts_shown": f"gold {row.gold:g}, predicted {row.predicted:g}, matched {row.matched:g}"}


def _edge_or_value(edge: float, value: float) -> float:
    return value if math.isnan(edge) else edge


_TOTAL_TITLES = {ANY: "All marks, labels ignored", TYPED_ROW: "All marks, same label"}


def _panel_name(row: Score) -> str:
    """Judge and the other columns that rows are told apart by."""
    return ", ".join(str(value) for name, value in row.columns.items() if name not in ("label", "match"))


def _f1_curves(ink: Mapping[str, str]) -> list[alt.Chart]:
    """Curves of equal F1, each with its number at its right end."""
    points = [
        {"f": f, "r": r, "p": f * r / (2 * r - f)} for f in _F1_LEVELS for r in np.linspace(f / (2 - f), 1, 60).tolist()
    ]
    curve = alt.Chart(alt.InlineData(values=points)).mark_line(color=ink["line-2"], strokeWidth=1, clip=True)
    ends = alt.Chart(alt.InlineData(values=[point for point in points if point["r"] == 1]))
    words = ends.mark_text(color=ink["ink-3"], align="right", dy=-6, dx=-2, fontSize=10)
    place = {"x": alt.X("r:Q"), "y": alt.Y("p:Q")}
    number = alt.Text("f:Q", format=".1f")
    return [curve.encode(**place, detail="f:N", order="r:Q"), words.encode(**place, text=number)]


# --- confusion ---------------------------------------------------------------------------------------------------


def confusion_map(scores: Scores, dark: bool = False) -> VegaSpec:
    """Gold labels down, the judge's labels across; shade is the share of the row, the number is the count."""
    return apply_theme(_concat_panels(_confusion_charts(scores, dark), 2), dark)


def confusion_panels(scores: Scores, dark: bool = False) -> dict[str, VegaSpec]:
    """The panels of `confusion_map` as charts of their own, by judge."""
    return {name: apply_theme(chart, dark) for name, chart in _confusion_charts(scores, dark).items()}


def _confusion_charts(scores: Scores, dark: bool) -> dict[str, alt.LayerChart]:
    panels: dict[str, list[Mapping[str, object]]] = {}
    for row in label_confusion_rows(scores):
        panels.setdefault(str(row["judge"]), []).append(row)
    return {name: _confusion_layer(rows, dark) for name, rows in panels.items()}


def _confusion_layer(rows: Sequence[Mapping[str, object]], dark: bool) -> alt.LayerChart:
    ink = DARK if dark else LIGHT
    downs = [str(row["gold label"]) for row in rows]
    across = [name for name in rows[0] if name not in ("judge", "gold label")]
    plain = alt.Axis(domain=False, ticks=False)
    base = alt.Chart().encode(
        x=alt.X("said:N", sort=across, title="judge's label", axis=alt.Axis(labelAngle=-45, domain=False, ticks=False)),
        y=alt.Y("gold:N", sort=downs, title="gold label", axis=plain),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("gold", "said", "count", "share_shown")],
    )
    shades = alt.Scale(domain=[0, 1], range=[ink["well"], _DARKEST_SHADES[dark]])
    numbers = base.mark_text(fontSize=12, color=ink["ink"]).encode(
        text="count:Q", opacity=alt.condition("datum.count > 0", alt.value(1), alt.value(0.35))
    )
    return alt.layer(
        base.mark_rect(stroke=ink["paper"], strokeWidth=2).encode(
            color=alt.Color("share:Q", scale=shades, legend=None)
        ),
        numbers,
        data=alt.InlineData(values=[cell for row in rows for cell in _confusion_cells(row)]),
    ).properties(width=alt.Step(36), height=alt.Step(30))  # type: ignore[return-value]


def _confusion_cells(row: Mapping[str, object]) -> Sequence[dict[str, object]]:
    counts = {name: int(str(count)) for name, count in row.items() if name not in ("judge", "gold label")}
    total = sum(counts.values())
    return [
        {
            "gold": row["gold label"], "said": judge_label, "count": count,
            "share": count / total if total else 0.0, "share_shown": f"{count} of {total}",
        }
        for judge_label, count in counts.items()
        if not (row["gold label"] == EXTRA and judge_label == MISSED)
    ]  # fmt: skip


# --- files and pages ---------------------------------------------------------------------------------------------


def save_chart(spec: VegaSpec, path: Path) -> None:
    """Write a figure as SVG or PNG, by the ending of the path."""
    if path.suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE_VERSION, scale=2))
    else:
        path.write_text(vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE_VERSION), encoding="utf-8")


def vega_script() -> str:
    """All JavaScript that figures need, as a script element, so that a page fetches nothing."""
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_VEGA_LITE_VERSION)
    safe = code.replace("</script", "<\\/script")
    return f'<script type="module">{safe}</script>'


def panels_html(name: str, light: Mapping[str, VegaSpec], dark: Mapping[str, VegaSpec], words: str, width: int) -> str:
    """A figure of several panels of some width that wrap as the page gets narrow, each under its own name."""
    if len(light) == 1:
        (heading,) = light
        return chart_html(name, light[heading], dark[heading], words)
    panels = (
        f"<div><h3>{escape(heading)}</h3>"
        + chart_html(f"{name}-{number}", spec, dark[heading], f"{words}: {heading}")
        + "</div>"
        for number, (heading, spec) in enumerate(light.items())
    )
    return f'<div class="panels" style="--panel:{width}px">{"".join(panels)}</div>'


def chart_html(name: str, light: VegaSpec, dark: VegaSpec, words: str) -> str:
    """A place for a figure and the script that draws it in the reader's colours; `words` is for screen readers."""
    both = json.dumps({"light": light, "dark": dark}).replace("<", "\\u003c")
    return (
        f'<div class="figure" tabindex="0" role="group" aria-label="{escape(words)}"><div id="{name}"></div></div>'
        f'<script type="module">const both={both};const night=matchMedia("(prefers-color-scheme: dark)");'
        f'const draw=()=>vegaEmbed("#{name}",night.matches?both.dark:both.light,'
        '{actions:false,renderer:"svg"});night.addEventListener("change",draw);draw();</script>'
    )
