"""Figure 4 of Deng et al. (2022) as SVG: where a system moves between section types otherwise than real text does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

UNLIKELY = 0.05
"""A transition less probable than this under the critic is drawn in red."""
Change = tuple[str, str, float, float]
"""From, to, P generated - P real, P of the critic."""

_SIZE, _RADIUS, _EDGES, _VISIBLE = 720, 250, 40, 0.01


def transition_graph(system: str, changes: Sequence[Change]) -> str:
    """The largest differences between P(z_m | z_{m-1}) of a system and of real documents, largest first.

    An edge's width is its difference; red edges are unlikely under the critic, dashed ones are rarer than in real text.
    """
    edges = [row for row in changes[:_EDGES] if abs(row[2]) >= _VISIBLE]
    nodes = list(dict.fromkeys(state for first, second, _, _ in edges for state in (first, second)))
    place = {state: _on_circle(at, len(nodes)) for at, state in enumerate(nodes)}
    drawn = "".join(_edge(place[first], place[second], change, p) for first, second, change, p in reversed(edges))
    labels = "".join(_label(state, at, total=len(nodes)) for at, state in enumerate(nodes))
    title = f"Section transitions of {escape(system)}, against real documents"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" height="{_SIZE}" '
        'font-family="sans-serif" font-size="12">'
        f"<title>{title}</title>{_MARKERS}"
        f'<rect width="{_SIZE}" height="{_SIZE}" fill="white"/>'
        f'<text x="16" y="24" font-size="14" font-weight="bold">{title}</text>'
        f'<text x="16" y="42" fill="#555">edge: P generated - P real; red: P &lt; {UNLIKELY} under the critic; '
        f"dashed: rarer than in real text</text>{drawn}{labels}</svg>\n"
    )


def _marker(id: str, colour: str) -> str:
    return (
        f'<marker id="{id}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" '
        f'markerHeight="9" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


_GREY, _RED = "#767676", "#c62828"
_MARKERS = f"<defs>{_marker('grey', _GREY)}{_marker('red', _RED)}</defs>"


def _on_circle(at: int, total: int, radius: float = _RADIUS) -> tuple[float, float]:
    angle = 2 * math.pi * at / total - math.pi / 2
    return _SIZE / 2 + radius * math.cos(angle), _SIZE / 2 + 24 + radius * math.sin(angle)


def _edge(start: tuple[float, float], end: tuple[float, float], change: float, p: float) -> str:
    """A curve from state to state, a loop where they are one, with the difference beside it."""
    colour, id = (_RED, "red") if p < UNLIKELY else (_GREY, "grey")
    middle = _SIZE / 2, _SIZE / 2 + 24
    if start == end:
        out = [(each - centre) / _RADIUS for each, centre in zip(start, middle, strict=True)]
        a, b = (_outwards(start, out, 46, side) for side in (-22, 22))
        path, at = f"M{_xy(start)}C{_xy(a)} {_xy(b)} {_xy(start)}", _outwards(start, out, -16, 0)
    else:
        bend = _weighed((0.325, start), (0.325, end), (0.35, middle))
        path, at = f"M{_xy(start)}Q{_xy(bend)} {_xy(end)}", _weighed((0.3, start), (0.42, bend), (0.28, end))
    dash = ' stroke-dasharray="4 3"' if change < 0 else ""
    line = f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.75" stroke-width="{_width(change)}"{dash}'
    words = f'<text x="{at[0]:.0f}" y="{at[1]:.0f}" fill="{colour}" font-size="10" text-anchor="middle">'
    return f'{line} marker-end="url(#{id})"/>{words}{change:+.2f}</text>'


def _width(change: float) -> str:
    return f"{max(0.8, 14 * abs(change)):.1f}"


def _weighed(*points: tuple[float, tuple[float, float]]) -> tuple[float, float]:
    return sum(weight * x for weight, (x, _) in points), sum(weight * y for weight, (_, y) in points)


def _xy(point: Sequence[float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _outwards(point: Sequence[float], out: Sequence[float], far: float, side: float) -> tuple[float, float]:
    return point[0] + far * out[0] - side * out[1], point[1] + far * out[1] + side * out[0]


def _label(state: str, at: int, total: int) -> str:
    """A state's name outside the circle, and its dot."""
    x, y = _on_circle(at, total)
    far = _on_circle(at, total, _RADIUS + 14)
    side = "middle" if abs(far[0] - _SIZE / 2) < 20 else "start" if far[0] > _SIZE / 2 else "end"
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#222"/>'
    return f'{dot}<text x="{far[0]:.0f}" y="{far[1] + 4:.0f}" text-anchor="{side}">{escape(state)}</text>'
