"""Figure 4 of Deng et al. (2022) as SVG: where a system moves between section types otherwise than real text does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from finecomb.corpora.critics.sections_tables import TransitionChange

UNLIKELY_PROBABILITY = 0.05
"""A transition less probable than this under the critic is drawn in red."""
Point = tuple[float, float]

_SIZE, _RADIUS, _MAX_EDGES, _MIN_CHANGE = 720, 240, 30, 0.02
_NAME_GAP, _LETTER_WIDTH = 14, 7.4  # from the circle to a name; most that one letter of it takes
_CENTRE_Y = _SIZE / 2 + 24  # of the circle, below the title


def transition_graph(system: str, changes: Sequence[TransitionChange], order: Sequence[str]) -> str:
    """The largest differences between P(z_m | z_{m-1}) of a system and of real documents, largest first.

    States stand clockwise in `order`. An edge's width is its difference; red edges are unlikely under the critic,
    dashed ones are rarer than in real text.
    """
    edges = [row for row in changes[:_MAX_EDGES] if abs(row[2]) >= _MIN_CHANGE]
    drawn_states = {state for first, second, _, _ in edges for state in (first, second)}
    nodes = [state for state in order if state in drawn_states]
    place = {state: _circle_point(at, len(nodes)) for at, state in enumerate(nodes)}
    drawn = "".join(_edge(place[first], place[second], change, p) for first, second, change, p in reversed(edges))
    labels = "".join(_state_label(state, at, total=len(nodes)) for at, state in enumerate(nodes))
    beside = _side_margin(nodes)
    title = f"Section transitions of {escape(system)}, against real documents"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-beside} 0 {_SIZE + 2 * beside} {_SIZE}" '
        f'width="{_SIZE + 2 * beside}" height="{_SIZE}" '
        'font-family="sans-serif" font-size="12">'
        f"<title>{title}</title>{_MARKERS}"
        f'<rect x="{-beside}" width="{_SIZE + 2 * beside}" height="{_SIZE}" fill="white"/>'
        f'<text x="16" y="24" font-size="14" font-weight="bold">{title}</text>'
        f'<text x="16" y="42" fill="#555">edge: P generated - P real; red: P &lt; {UNLIKELY_PROBABILITY} under '
        "the critic; "
        f"dashed: rarer than in real text</text>{drawn}{labels}</svg>\n"
    )


def _side_margin(nodes: Sequence[str]) -> int:
    """How much wider than the circle's square the picture is on each side, so that no name beside it is cut."""
    longest = max((len(node) for node in nodes), default=0)
    return max(0, math.ceil(_LETTER_WIDTH * longest - (_SIZE / 2 - _RADIUS - _NAME_GAP)))


def _marker(id: str, colour: str) -> str:
    return (
        f'<marker id="{id}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" '
        f'markerHeight="9" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


_GREY, _RED = "#767676", "#c62828"
_HALO = 'stroke="white" stroke-width="3" paint-order="stroke"'
_MARKERS = f"<defs>{_marker('grey', _GREY)}{_marker('red', _RED)}</defs>"


def _circle_point(at: int, total: int, radius: float = _RADIUS) -> Point:
    angle = 2 * math.pi * at / total - math.pi / 2
    return _SIZE / 2 + radius * math.cos(angle), _CENTRE_Y + radius * math.sin(angle)


def _edge(start: Point, end: Point, change: float, p: float) -> str:
    """A curve from state to state, bent to its left so that both directions can be seen; a loop where they are one."""
    colour, id = (_RED, "red") if p < UNLIKELY_PROBABILITY else (_GREY, "grey")
    centre = _SIZE / 2, _CENTRE_Y
    if start == end:
        inwards = (centre[0] - start[0]) / _RADIUS, (centre[1] - start[1]) / _RADIUS
        path = (
            f"M{_format_point(start)}C{_format_point(_offset_point(start, inwards, 60, -26))} "
            f"{_format_point(_offset_point(start, inwards, 60, 26))} {_format_point(start)}"
        )
        at = _offset_point(start, inwards, 56, 0)
    else:
        along = (end[0] - start[0]) / _RADIUS, (end[1] - start[1]) / _RADIUS
        bend = _offset_point(_weighted_sum((0.375, start), (0.375, end), (0.25, centre)), along, 0, -24)
        path, at = (
            f"M{_format_point(start)}Q{_format_point(bend)} {_format_point(end)}",
            _weighted_sum((0.36, start), (0.48, bend), (0.16, end)),
        )
    dash = ' stroke-dasharray="4 3"' if change < 0 else ""
    line = (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.75" '
        f'stroke-width="{_edge_width(change)}"{dash}'
    )
    words = f'<text x="{at[0]:.0f}" y="{at[1]:.0f}" fill="{colour}" font-size="10" text-anchor="middle" {_HALO}>'
    return f'{line} marker-end="url(#{id})"/>{words}{change:+.2f}</text>'


def _edge_width(change: float) -> str:
    return f"{max(0.8, 14 * abs(change)):.1f}"


def _weighted_sum(*points: tuple[float, Point]) -> Point:
    return sum(weight * x for weight, (x, _) in points), sum(weight * y for weight, (_, y) in points)


def _format_point(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _offset_point(point: Point, direction: Point, far: float, side: float) -> Point:
    """A point `far` along a direction, and `side` to the right of it."""
    return point[0] + far * direction[0] - side * direction[1], point[1] + far * direction[1] + side * direction[0]


def _state_label(state: str, at: int, total: int) -> str:
    """A state's name outside the circle, and its dot."""
    x, y = _circle_point(at, total)
    far = _circle_point(at, total, _RADIUS + _NAME_GAP)
    side = "middle" if abs(far[0] - _SIZE / 2) < 20 else "start" if far[0] > _SIZE / 2 else "end"
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#222"/>'
    return f'{dot}<text x="{far[0]:.0f}" y="{far[1] + 4:.0f}" text-anchor="{side}">{escape(state)}</text>'
