"""Triangles of documents between three languages, one panel per corpus (Deng et al. 2022, Figure 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from finecomb.core.palette import SLOTS_BY_FAMILY
from finecomb.reporting.figures.figure_model import Axis, Chart, Dot, Line, PlotPanel, Text

_CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.5, math.sqrt(3) / 2))
_MAX_POINTS = 3000  # per panel


def language_simplex(points: Mapping[str, NDArray[np.float64]]) -> Chart:
    """Draw one triangle per corpus of (documents, 3) language proportions; a corner is a document in one language."""
    across = Axis(0, 1, (), length=232, hidden=True)
    down = Axis(-0.09, 1, (), length=232, hidden=True)  # room for the numbers of the lower corners
    names = [
        Text(*corner, str(number), "middle", dy=-6 if corner[1] else 16, font_size=11)
        for number, corner in enumerate(_CORNERS, 1)
    ]
    panels = []
    for corpus, shares in points.items():
        sample = shares[np.linspace(0, len(shares) - 1, min(len(shares), _MAX_POINTS)).astype(int)]
        slot = SLOTS_BY_FAMILY["A"][0]
        places = (sample @ np.array(_CORNERS)).tolist()
        dots = [Dot(x, y, colour=slot, radius=2.2, opacity=0.35) for x, y in places]
        panels.append(PlotPanel(across, down, (Line((*_CORNERS, _CORNERS[0]), "line-2", 1), *dots, *names), corpus))
    return Chart("simplex", "Languages of documents", panels=tuple(panels), columns=len(panels))
