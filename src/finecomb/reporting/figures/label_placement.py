"""Where the names of points stand in a drawing: beside their points, and none on another name or point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LETTER_WIDTH, _LINE_HEIGHT, _DOT_RADIUS = (
    8.5,
    13.0,
    5.0,
)  # pixels: the widest letter of 11 px, the height of a line, the radius of a point


class NameBox(NamedTuple):
    """The area that some words cover, in pixels; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: NameBox) -> bool:
        """Whether some of the area is the other's, too."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def build_name_box(name: str, left: float, middle: float) -> NameBox:
    """The area of a name that begins at `left` and whose line has its middle at `middle`."""
    return NameBox(left, middle - _LINE_HEIGHT / 2, left + _LETTER_WIDTH * len(name), middle + _LINE_HEIGHT / 2)


def place_names(
    points: Sequence[tuple[float, float]], names: Sequence[str], area: NameBox, occupied_boxes: Sequence[NameBox] = ()
) -> list[tuple[float, float]]:
    """Left end and middle of each name, in pixels: the nearest place in `area` where nothing stands yet.

    `taken` is where other words stand. A name for which there is no room anywhere stands to the right of its point.
    """
    dots = [NameBox(x - _DOT_RADIUS, y - _DOT_RADIUS, x + _DOT_RADIUS, y + _DOT_RADIUS) for x, y in points]
    standing = [*occupied_boxes, *dots]
    chosen = []
    for (x, y), name in zip(points, names, strict=True):
        options = (
            (left, middle) for left, middle in _candidate_positions(x, y, name) if _is_inside(name, left, middle, area)
        )
        free = (
            place for place in options if not any(build_name_box(name, *place).overlaps(other) for other in standing)
        )
        place = next(free, (x + _DOT_RADIUS + 2, y))
        chosen.append(place)
        if name:
            standing.append(build_name_box(name, *place))
    return chosen


def _candidate_positions(x: float, y: float, name: str) -> Iterator[tuple[float, float]]:
    """Places around a point, near ones first: above before below, right before left."""
    wide = _LETTER_WIDTH * len(name)
    beside = (x + 7, x - 7 - wide, x - wide / 2, x + 11 + wide, x - 11 - 2 * wide, x + 15 + 2 * wide)
    for rows, side in itertools.product(range(7), (-1, 1)):
        yield from ((left, y + side * (7 + (_LINE_HEIGHT + 0.5) * rows)) for left in beside)


def _is_inside(name: str, left: float, middle: float, area: NameBox) -> bool:
    box = build_name_box(name, left, middle)
    return box.left >= area.left and box.right <= area.right and box.top >= area.top and box.bottom <= area.bottom
