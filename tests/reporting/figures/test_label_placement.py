"""Placement of the names of points: close, and never on another name or point."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from finecomb.reporting.figures.label_placement import NameBox, build_name_box, place_point_names

AREA = NameBox(0, -14, 330, 268)
spots = st.tuples(st.floats(0, 270), st.floats(0, 260))


def test_a_name_stands_above_and_to_the_right_of_its_point() -> None:
    assert place_point_names([(100, 100)], ["GU"], AREA) == [(107, 93)]


@given(st.lists(spots, max_size=7))
def test_no_name_stands_on_another_name_or_point(points: list[tuple[float, float]]) -> None:
    names = ["GU"] * len(points)
    boxes = [build_name_box("GU", *place) for place in place_point_names(points, names, AREA)]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_words_that_stand_there_already_are_left_free() -> None:
    taken = [build_name_box("0.8", 107, 93)]
    (place,) = place_point_names([(100, 100)], ["GU"], AREA, taken)
    assert not build_name_box("GU", *place).overlaps(taken[0])
