"""Conversion of figures to Altair charts, for further editing in a notebook."""

from __future__ import annotations

import base64
import math
from dataclasses import fields
from typing import Any

from finecomb.core.optional_packages import import_optional_package
from finecomb.core.palette import PaletteSlot
from finecomb.reporting.figures.figure_model import (
    Axis,
    BaseFigure,
    Categories,
    Dot,
    FigureStack,
    Line,
    Mark,
    PlotPanel,
    Raster,
)
from finecomb.reporting.page_shell import LIGHT_COLOURS


def altair_chart(figure: BaseFigure) -> Any:
    """Convert a figure to an Altair chart in the light theme: one layered chart per panel, side by side as drawn."""
    alt = import_optional_package("to_altair() needs", "altair")
    if isinstance(figure, FigureStack):
        return alt.vconcat(*(altair_chart(part) for part in figure.figures))
    chart = figure.to_chart()
    panels = [_layer_panel(alt, panel) for panel in chart.panels]
    joined = alt.concat(*panels, columns=max(1, chart.columns)) if len(panels) > 1 else panels[0]
    return joined.properties(title=chart.title) if chart.title else joined


def _layer_panel(alt: Any, panel: PlotPanel) -> Any:
    """Convert a panel to layers, one or two per kind of mark, which share one table of data."""

    def place(channel: Any, axis: Axis | Categories, field: str) -> Any:
        scale: Any = alt.Undefined
        shown = alt.Axis(domain=False, ticks=False, labelLimit=400)
        if isinstance(axis, Axis):
            scale = alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False)
            shown = alt.Axis(values=list(axis.ticks), format="%" if axis.percent else alt.Undefined, labelFlush=False)
        order: Any = alt.Undefined if isinstance(axis, Axis) else list(axis.names)
        kind, shown = "Q" if isinstance(axis, Axis) else "N", None if axis.hidden else shown
        return channel(f"{field}:{kind}", scale=scale, sort=order, title=axis.title or None, axis=shown)

    x, y = place(alt.X, panel.x, "x"), place(alt.Y, panel.y, "y")
    rows = [row for number, mark in enumerate(panel.marks) for row in _mark_rows(mark, number)]
    if panel.band is not None:
        rows.append({"kind": "band", "x": panel.band.low, "end": panel.band.high})
    if isinstance(panel.x, Axis) and panel.x.reference is not None:
        rows.append({"kind": "reference", "x": panel.x.reference})
    plain = alt.Chart(alt.InlineData(values=rows))
    base = plain.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), tooltip="description:N")
    opacity = alt.Opacity("opacity:Q", scale=None)
    greys = alt.Color("share:Q", scale=alt.Scale(domain=[0, 1], range=[LIGHT_COLOURS["well"], "#a3aab3"]), legend=None)
    centre = {"x": alt.value(panel.x.length / 2), "y": alt.value(panel.y.length / 2)}
    picture = plain.mark_image(width=panel.x.length, height=panel.y.length, aspect=False).encode(url="url:N", **centre)
    across, width = isinstance(panel.y, Categories), alt.StrokeWidth("width:Q", scale=None)
    layers = {
        "band": [plain.mark_rect(color=LIGHT_COLOURS["wash"]).encode(x=x, x2="end:Q")],
        "reference": [plain.mark_rule(color=LIGHT_COLOURS["edge"], strokeDash=[3, 3]).encode(x=x)],
        "Raster": [picture],
        "Cell": [
            base.mark_rect(stroke="white").encode(color=greys),
            plain.mark_text().encode(x=x, y=y, text="words:N"),
        ],
        "Bar": [base.mark_bar().encode(opacity=opacity, **{"x2" if across else "y2": "end:Q"})],
        "Area": [base.mark_line(filled=True, strokeWidth=0).encode(detail="number:N", order="order:Q")],
        "Line": [base.mark_line().encode(detail="number:N", order="order:Q", strokeWidth=width)],
        "Dot": [
            base.mark_rule(strokeWidth=2).encode(x=place(alt.X, panel.x, "low"), x2="high:Q"),
            base.mark_point(strokeWidth=2, size=70).encode(fill=alt.Fill("fill:N", scale=None), opacity=opacity),
            base.mark_text(align="left", dx=7, dy=-7, fontWeight=700).encode(text="name:N"),
        ],
        "Text": [base.mark_text(align="left", dx=4).encode(text="words:N")],
    }
    if not across:
        layers["Dot"].insert(0, base.mark_rule(strokeWidth=2).encode(y=place(alt.Y, panel.y, "y_low"), y2="y_high:Q"))
    used = {row["kind"] for row in rows}
    chosen = [
        layer.transform_filter(f"datum.kind == '{kind}'")
        for kind, own in layers.items()
        if kind in used
        for layer in own
    ]
    return alt.layer(*chosen, title=panel.title).properties(width=panel.x.length, height=panel.y.length)


def _mark_rows(mark: Mark, number: int) -> list[dict[str, Any]]:
    """Return the fields of a mark as rows of data, one per point of a line; undefined numbers are None."""
    if isinstance(mark, Raster):
        return [{"kind": "Raster", "url": f"data:image/png;base64,{base64.b64encode(mark.png).decode()}"}]
    row = {field.name: getattr(mark, field.name) for field in fields(mark)}
    colour = row.get("fill") or row.get("colour", "ink")
    row["colour"] = colour.light if isinstance(colour, PaletteSlot) else LIGHT_COLOURS.get(colour, "#1a1d21")
    row |= {"kind": type(mark).__name__, "number": number}
    if isinstance(mark, Line):
        points = row.pop("points")
        row["kind"] = "Area" if mark.fill else "Line"
        return [{**row, "fill": "", "order": order, "x": x, "y": y} for order, (x, y) in enumerate(points)]
    if isinstance(mark, Dot):
        row["fill"] = "white" if mark.open else row["colour"]
    return [{name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}]
