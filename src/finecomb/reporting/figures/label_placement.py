"""Placement of the names of points in a chart, so that no name covers another name or point."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

# pixels: width of the widest letter at 11 px, line height, point radius
_LETTER_WIDTH, _LINE_HEIGHT, _DOT_RADIUS = 8.5, 13.0, 5.0


class NameBox(NamedTuple):
    """Rectangle that a name covers, in pixels; y increases downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: NameBox) -> bool:
        """Return True if two rectangles intersect."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def build_name_box(name: str, left: float, middle: float) -> NameBox:
    """Return the rectangle of a name that starts at `left` and whose vertical centre is `middle`."""
    return NameBox(left, middle - _LINE_HEIGHT / 2, left + _LETTER_WIDTH * len(name), middle + _LINE_HEIGHT / 2)


def place_point_names(
    points: Sequence[tuple[float, float]], names: Sequence[str], area: NameBox, occupied_boxes: Sequence[NameBox] = ()
) -> list[tuple[float, float]]:
    """Return the left end and vertical centre of each name, in pixels: the nearest free position inside `area`.

    `occupied_boxes` are rectangles of other text. Positions above a point precede those below it, and right precedes
    left. A name without a free position goes to the right of its point.
    """
    dots = [NameBox(x - _DOT_RADIUS, y - _DOT_RADIUS, x + _DOT_RADIUS, y + _DOT_RADIUS) for x, y in points]
    standing = [*occupied_boxes, *dots]
    chosen = []
    for (x, y), name in zip(points, names, strict=True):
        wide = _LETTER_WIDTH * len(name)
        lefts = (x + 7, x - 7 - wide, x - wide / 2, x + 11 + wide, x - 11 - 2 * wide, x + 15 + 2 * wide)
        middles = [y + side * (7 + (_LINE_HEIGHT + 0.5) * rows) for rows in range(7) for side in (-1, 1)]
        free = (
            (left, middle)
            for middle, left in itertools.product(middles, lefts)
            if (box := build_name_box(name, left, middle))
            and (box.left >= area.left and box.right <= area.right)
            and (box.top >= area.top and box.bottom <= area.bottom)
            and not any(box.overlaps(other) for other in standing)
        )
        chosen.append(next(free, (x + _DOT_RADIUS + 2, y)))
        if name:
            standing.append(build_name_box(name, *chosen[-1]))
    return chosen
