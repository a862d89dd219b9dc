"""Graph of section transitions that differ between a system and real documents (Deng et al. 2022, Figure 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from finecomb.corpora.critics.sections_tables import TransitionChange
from finecomb.reporting.figures.figure_model import Anchor, Axis, Chart, Dot, Line, Mark, PlotPanel, Text

MAX_UNLIKELY_PROBABILITY = 0.05
"""Probability under the critic below which a transition is drawn in red."""
_SIDE, _RADIUS, _MAX_EDGES, _MIN_CHANGE = 540, 240, 30, 0.02
_NAME_GAP = 14  # px from the circle to a name
_LETTER_WIDTH = 7.4  # maximum, in px
_CURVE_STEPS = np.linspace(0, 1, 25)[:, None]


def transition_graph(system: str, changes: Sequence[TransitionChange], order: Sequence[str]) -> Chart:
    """Draw the largest differences in P(z_m | z_{m-1}) between a system and real documents.

    States are on a circle, clockwise in `order`. Edge width is the size of the difference. Red edges are unlikely under
    the critic; dashed edges are less frequent than in real text.
    """
    edges = [row for row in changes[:_MAX_EDGES] if abs(row[2]) >= _MIN_CHANGE]
    drawn_states = {state for first, second, _, _ in edges for state in (first, second)}
    nodes = [state for state in order if state in drawn_states]
    angles = {state: math.pi / 2 - 2 * math.pi * at / len(nodes) for at, state in enumerate(nodes)}
    place = {state: _RADIUS * np.array([math.cos(angle), math.sin(angle)]) for state, angle in angles.items()}
    marks: list[Mark] = []
    for first, second, change, p in reversed(edges):
        # Points from one state to another, bent so that opposite edges do not overlap, or a loop. Shape (25, 2): a
        # quadratic Bezier curve, or a cubic one for a loop.
        t, s = _CURVE_STEPS, 1 - _CURVE_STEPS
        if np.array_equal(place[first], place[second]):
            inwards = -place[first] / _RADIUS
            sideways = np.array([-inwards[1], inwards[0]])
            left, right = place[first] + 60 * inwards + 26 * sideways, place[first] + 60 * inwards - 26 * sideways
            curve = np.asarray(s**3 * place[first] + 3 * s**2 * t * left + 3 * s * t**2 * right + t**3 * place[first])
        else:
            along = (place[second] - place[first]) / _RADIUS
            bend = 0.375 * (place[first] + place[second]) + 24 * np.array([-along[1], along[0]])
            curve = np.asarray(s**2 * place[first] + 2 * s * t * bend + t**2 * place[second])
        colour = "alert" if p < MAX_UNLIKELY_PROBABILITY else "edge"
        width, dash = round(max(0.8, 14 * abs(change)), 1), "4 3" if change < 0 else ""
        marks.append(Line(tuple(map(tuple, curve.tolist())), colour, width, dash, arrow=True, opacity=0.75))
        x, y = curve[12 if first == second else 10].tolist()
        ink = "alert" if colour == "alert" else "ink-3"
        marks.append(Text(x, y, f"{change:+.2f}".replace("-", "−"), "middle", colour=ink, font_size=10, halo=True))
    for state, (x, y) in place.items():
        far, high = (x * (1 + _NAME_GAP / _RADIUS), y * (1 + _NAME_GAP / _RADIUS))
        side: Anchor = "middle" if abs(far) < 20 else "start" if far > 0 else "end"
        marks += [Dot(x, y, radius=4), Text(far, high, state, side)]
    margin = max(0, math.ceil(_LETTER_WIDTH * max(map(len, nodes), default=0) - (_SIDE / 2 - _RADIUS - _NAME_GAP)))
    half = _SIDE / 2 + margin
    across = Axis(-half, half, (), length=2 * half, inset=0, hidden=True)
    down = Axis(-_SIDE / 2, _SIDE / 2, (), length=_SIDE, inset=0, hidden=True)
    note = (
        f"Edge: P(generated) − P(real). Red: P < {MAX_UNLIKELY_PROBABILITY} under the critic. "
        "Dashed: less frequent than in real text."
    )
    title = f"Section transitions of {system} compared with real documents"
    return Chart("transitions", title, panels=(PlotPanel(across, down, tuple(marks)),), notes=(note,))
