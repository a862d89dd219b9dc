"""A picture of an alignment: a text, each annotator's marks below it, and lines through those that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import polars as pl

from finecomb.core.palette import UNLABELLED_SLOT, Slot, label_styles
from finecomb.core.protocol import Protocol

_CHARACTER_WIDTH, _LANE_HEIGHT, _TOP_MARGIN, _NAMES_WIDTH = 8.4, 34, 34, 64
_STYLE = (
    "text{font:14px ui-monospace,monospace;fill:#1a1d21}.quiet{fill:#5f666f}.lane{stroke:#dcdfe2}"
    ".tie{stroke:#474d55;stroke-width:1.5;fill:none}"
)
_DASHES: Mapping[str, str] = {"solid": "none", "dashed": "7 3", "dotted": "2 3"}


def alignment_svg(text: str, rows: pl.DataFrame, protocol: Protocol | None = None) -> str:
    """One text on one line with the rows of `align`, as SVG. Every cluster has a number; a mark alone has no line.

    Marks without a place are not drawn. Bars have the colour and the outline of their label.
    """
    placed = rows.drop_nulls(["start", "end"])
    people = placed["annotator"].unique().sort().to_list()
    lanes = {person: _TOP_MARGIN + _LANE_HEIGHT * (at + 0.5) for at, person in enumerate(people)}
    slots = {name: look.slot for name, look in label_styles(protocol).items()} if protocol else {}
    long = _CHARACTER_WIDTH * len(text)
    width, height = _NAMES_WIDTH + long + 10, _TOP_MARGIN + _LANE_HEIGHT * len(people) + 6
    drawn = [
        f'<text x="{_NAMES_WIDTH}" y="18" textLength="{long:.1f}" xml:space="preserve">{escape(text)}</text>',
        *(_annotator_lane_svg(person, y, width) for person, y in lanes.items()),
        *(_cluster_line_svg(cluster, lanes) for cluster in placed.partition_by("cluster") if len(cluster) > 1),
        *(_mark_bar_svg(row, lanes, slots) for row in placed.iter_rows(named=True)),
    ]
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    title = "Marks of each annotator under a text; a line joins those that are aligned"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
            f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#ffffff"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _x_position(at: float) -> float:
    return _NAMES_WIDTH + _CHARACTER_WIDTH * at


def _mark_centre_x(row: Mapping[str, Any]) -> float:
    return _x_position((row["start"] + row["end"]) / 2)


def _annotator_lane_svg(person: str, y: float, width: float) -> str:
    name = f'<text class="quiet" x="2" y="{y + 5:.0f}">{escape(person)}</text>'
    return f'{name}<line class="lane" x1="{_NAMES_WIDTH}" x2="{width:.0f}" y1="{y:.0f}" y2="{y:.0f}"/>'


def _cluster_line_svg(cluster: pl.DataFrame, lanes: Mapping[str, float]) -> str:
    """A line from annotator to annotator through the marks of one cluster."""
    points = [(_mark_centre_x(row), lanes[row["annotator"]]) for row in cluster.sort("annotator").iter_rows(named=True)]
    return f'<polyline class="tie" points="{" ".join(f"{x:.1f},{y:.0f}" for x, y in points)}"/>'


def _mark_bar_svg(row: Mapping[str, Any], lanes: Mapping[str, float], slots: Mapping[str | None, Slot]) -> str:
    start, end, cluster, y = row["start"], row["end"], row["cluster"], lanes[row["annotator"]]
    slot = slots.get(row["label"], UNLABELLED_SLOT)
    wide, left = max(_CHARACTER_WIDTH * (end - start), 4.0), _x_position(start)
    look = f'fill="#ffffff" stroke="{slot.light}" stroke-width="2" stroke-dasharray="{_DASHES[slot.line]}"'
    tip = f"<title>{escape(row['label'] or 'no type')}</title>"
    bar = f'<rect x="{left:.1f}" y="{y - 10:.0f}" width="{wide:.1f}" height="20" rx="3" {look}>{tip}</rect>'
    return f'{bar}<text x="{left + wide / 2:.1f}" y="{y + 5:.0f}" text-anchor="middle">{cluster}</text>'
