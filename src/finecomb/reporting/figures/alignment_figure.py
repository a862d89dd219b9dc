"""Figure of an alignment: a text, the marks of each annotator below it, and lines between aligned marks."""

from __future__ import annotations

import polars as pl

from finecomb.core.palette import UNLABELLED_SLOT, label_styles
from finecomb.core.protocol import Protocol
from finecomb.reporting.figures.figure_model import Axis, Bar, Categories, Chart, Line, PlotPanel, Text

_CHARACTER_WIDTH, _LANE_HEIGHT = 8.4, 34  # px


def alignment_chart(text: str, rows: pl.DataFrame, protocol: Protocol | None = None) -> Chart:
    """Draw a text on one line above the marks of `align`.

    Each cluster has a number, and a line joins its marks if there are several. Marks without a position are not drawn.
    Bars have the colour and outline of their label.
    """
    placed = rows.drop_nulls(["start", "end"])
    people = placed["annotator"].unique().sort().to_list()
    slots = {name: style.slot for name, style in label_styles(protocol).items()} if protocol else {}
    points: dict[int, list[tuple[float, str]]] = {}
    bars = []
    for row in placed.sort("annotator").iter_rows(named=True):
        start, end, name = row["start"], row["end"], row["annotator"]
        points.setdefault(row["cluster"], []).append(((start + end) / 2, name))
        slot = slots.get(row["label"], UNLABELLED_SLOT)
        words, label = str(row["cluster"]), row["label"] or "no type"
        bars.append(Bar(start, name, max(end, start + 0.5), slot, words=words, outlined=True, description=label))
    ties = [Line(tuple(cluster), "ink-2", 1.5) for cluster in points.values() if len(cluster) > 1]
    across = Axis(0, len(text), (), length=_CHARACTER_WIDTH * len(text) + 2, inset=1, hidden=True)
    down = Categories(("", *people), step=_LANE_HEIGHT, font_size=13, ruled=True)
    line = Text(0, "", text, font_size=14, extent=len(text))
    title = "Marks of each annotator under a text; lines join aligned marks"
    return Chart("alignment", title, panels=(PlotPanel(across, down, (line, *ties, *bars)),))
