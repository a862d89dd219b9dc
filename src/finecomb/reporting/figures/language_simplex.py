"""Documents in the triangle of three languages, one panel a corpus (Deng et al. 2022, Figure 7), as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

_TRIANGLE_SIDE, _PANEL_GAP, _TOP_MARGIN = 220, 40, 48
_TRIANGLE_HEIGHT = _TRIANGLE_SIDE * np.sqrt(3) / 2
_CORNERS = np.array([[0, _TRIANGLE_HEIGHT], [_TRIANGLE_SIDE, _TRIANGLE_HEIGHT], [_TRIANGLE_SIDE / 2, 0]])
_MAX_POINTS = 3000  # points drawn in a panel


def simplex_figure(points: Mapping[str, NDArray[np.float64]]) -> str:
    """One triangle for each named (documents, 3) array of proportions; corners are documents of one language."""
    panels = [
        _panel(20 + at * (_TRIANGLE_SIDE + _PANEL_GAP), name, shares)
        for at, (name, shares) in enumerate(points.items())
    ]
    width, height = len(panels) * (_TRIANGLE_SIDE + _PANEL_GAP) + 20, _TOP_MARGIN + _TRIANGLE_HEIGHT + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
        f'font-family="sans-serif" font-size="13" fill="#14161a">{"".join(panels)}</svg>'
    )


def _panel(left: float, name: str, shares: NDArray[np.float64]) -> str:
    sample = shares[np.linspace(0, len(shares) - 1, min(len(shares), _MAX_POINTS)).astype(int)]
    places = sample @ _CORNERS
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, y in places)
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in _CORNERS)
    corners = "".join(
        f'<text x="{x:.0f}" y="{y + (16 if y else -6):.0f}" text-anchor="middle" font-size="11">{number}</text>'
        for number, (x, y) in enumerate(_CORNERS, 1)
    )
    return (
        f'<text x="{left}" y="18">{escape(name)}</text><g transform="translate({left},{_TOP_MARGIN})">'
        f'<polygon points="{outline}" fill="none" stroke="#b3b9c1"/>'
        f'<g fill="#204b7f" fill-opacity="0.35">{dots}</g>{corners}</g>'
    )
