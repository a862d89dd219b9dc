"""Bounding boxes of the text elements of an SVG, for tests that none overlaps another."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SVG = "{http://www.w3.org/2000/svg}"
_TRANSFORM = re.compile(r"(translate|rotate|scale|matrix)\(([^)]*)\)")


class Box(NamedTuple):
    """Corners of a text, which may be rotated."""

    words: str
    corners: np.ndarray
    """Array of shape (4, 2)."""


def transform_matrix(transform: str) -> np.ndarray:
    """Convert a transform attribute to a 3 x 3 matrix."""
    result = np.eye(3)
    for name, inside in _TRANSFORM.findall(transform):
        numbers = [float(number) for number in re.split(r"[\s,]+", inside.strip())]
        step = np.eye(3)
        if name == "translate":
            step[:2, 2] = [numbers[0], numbers[1] if len(numbers) > 1 else 0]
        elif name == "scale":
            step[0, 0], step[1, 1] = numbers[0], numbers[-1]
        elif name == "matrix":
            step[:2, :] = np.array(numbers).reshape(3, 2).T
        else:
            angle = math.radians(numbers[0])
            step[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        result = result @ step
    return result


def text_boxes(svg: str, em: float = 0.46) -> list[Box]:
    """Return the boxes of all texts of an SVG, slightly too small, so that every reported overlap is real.

    `em` is the width of a letter relative to the font size: 0.46 in a narrow font, 0.58 in a wide one.
    """
    return list(_iter_text_boxes(ET.fromstring(svg), np.eye(3), 11.0, em))


def cut_words(svg: str, em: float = 0.58) -> list[str]:
    """Return the texts that cross the left or right edge of an SVG in a wide font."""
    wide = float(ET.fromstring(svg).get("width", "0").removesuffix("px"))
    return [box.words for box in text_boxes(svg, em) if box.corners[:, 0].min() < 0 or box.corners[:, 0].max() > wide]


def _iter_text_boxes(element: ET.Element, outer: np.ndarray, size: float, em: float) -> Iterator[Box]:
    place = outer @ transform_matrix(element.get("transform", ""))
    if element.tag == f"{SVG}svg" or element.tag == f"{SVG}text":
        x, y = (float(element.get(name, "0").removesuffix("px") or 0) for name in ("x", "y"))
        shift = np.eye(3)
        shift[:2, 2] = [x, y]
        place = place @ shift
    size = float((element.get("font-size") or str(size)).removesuffix("px"))
    words = "".join(element.itertext()).strip() if element.tag == f"{SVG}text" else ""
    if words and float(element.get("opacity", "1")) > 0:
        wide, anchor = em * size * len(words), element.get("text-anchor", "start")
        left = {"start": 0.0, "middle": -wide / 2, "end": -wide}[anchor]
        corners = [[left, -0.7 * size], [left + wide, -0.7 * size], [left + wide, 0], [left, 0]]
        yield Box(words, (place @ np.array([[*corner, 1] for corner in corners]).T).T[:, :2])
    for child in element:
        yield from _iter_text_boxes(child, place, size, em)


def collisions(svg: str) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap."""
    return [
        (a.words, b.words)
        for a, b in itertools.combinations(text_boxes(svg), 2)
        if _is_overlapping(a.corners, b.corners)
    ]


def _is_overlapping(a: np.ndarray, b: np.ndarray) -> bool:
    """Return True if two convex shapes overlap, i.e. no line separates them."""
    for shape in (a, b):
        for start, end in zip(shape, np.roll(shape, -1, axis=0), strict=True):
            normal = np.array([start[1] - end[1], end[0] - start[0]])
            if (a @ normal).max() <= (b @ normal).min() + 1e-6 or (b @ normal).max() <= (a @ normal).min() + 1e-6:
                return False
    return True
