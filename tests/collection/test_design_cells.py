from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from finecomb.collection.design_cells import (
    CellMember,
    CellState,
    cell_states,
    choose_cell,
    is_eligible_for_any_cell,
    member_status,
    with_cell,
)
from finecomb.core.design import DesignCell, design_cells
from finecomb.core.records import Annotator, Design

CELLS = design_cells(
    Design.model_validate({"cross": {"condition": ["none", "examples"], "domain": ["news", "stories"]}, "people": 3})
)
TEXTS_NEEDED_BY_CELL = {cell.name: 5 for cell in CELLS}


def make_member(number: int, cell: DesignCell, **facts: object) -> CellMember:
    usual: dict[str, object] = {"excluded": False, "held": None, "submitted": 0, "is_busy": False}
    return CellMember(f"reader-{number}", cell.name, **(usual | facts))  # type: ignore[arg-type]


def test_how_somebody_counts() -> None:
    cell = CELLS[0]
    assert member_status(make_member(1, cell, submitted=5), 5, now=10) == "accepted"
    assert member_status(make_member(1, cell, submitted=5, excluded=True), 5, now=10) == "excluded"
    assert member_status(make_member(1, cell, submitted=4), 5, now=10) == "gone"
    assert member_status(make_member(1, cell, submitted=4, is_busy=True), 5, now=10) == "working"
    assert member_status(make_member(1, cell, held=11.0), 5, now=10) == "working"
    assert member_status(make_member(1, cell, held=10.0), 5, now=10) == "gone"


def test_somebody_excluded_reopens_a_place_and_a_full_cell_is_not_given_out() -> None:
    only = CELLS[:1]
    people = [make_member(number, only[0], submitted=5) for number in range(3)]
    (full,) = cell_states(only, people, TEXTS_NEEDED_BY_CELL, now=0)
    assert full.is_full
    assert choose_cell([full], {}, 0, "reader-9") is None
    (reopened,) = cell_states(
        only, [*people[:2], make_member(3, only[0], submitted=5, excluded=True)], TEXTS_NEEDED_BY_CELL, now=0
    )
    assert (reopened.open_place_count, reopened.excluded) == (1, 1)
    assert choose_cell([reopened], {}, 0, "reader-9") is only[0]


def test_the_place_of_somebody_excluded_stays_closed_where_the_design_says_so() -> None:
    closed = [replace(cell, reopen=False) for cell in CELLS[:1]]
    people = [make_member(0, closed[0], submitted=5), make_member(1, closed[0], submitted=5, excluded=True)]
    (state,) = cell_states(closed, people, TEXTS_NEEDED_BY_CELL, now=0)
    assert (state.closed_place_count, state.open_place_count, state.is_full) == (1, 1, False)
    (full,) = cell_states(closed, [*people, make_member(2, closed[0], submitted=5)], TEXTS_NEEDED_BY_CELL, now=0)
    assert (full.closed_place_count, full.open_place_count, full.is_full) == (1, 0, True)
    more = [make_member(number, closed[0], submitted=5) for number in range(2, 5)]
    assert (
        cell_states(closed, [*people, *more], TEXTS_NEEDED_BY_CELL, now=0)[0].closed_place_count == 0
    )  # no place is lacking


def test_people_at_work_take_a_place_until_it_is_no_longer_held() -> None:
    people = [make_member(number, CELLS[0], held=100.0) for number in range(3)]
    assert cell_states(CELLS[:1], people, TEXTS_NEEDED_BY_CELL, now=99)[0].open_place_count == 0
    assert cell_states(CELLS[:1], people, TEXTS_NEEDED_BY_CELL, now=101)[0].open_place_count == 3


def test_the_cell_furthest_from_full_comes_first() -> None:
    states = [CellState(CELLS[0], accepted=2), CellState(CELLS[1], accepted=1), CellState(CELLS[2], working=2)]
    assert choose_cell(states, {}, 0, "reader-1") is CELLS[1]


def test_only_cells_that_somebody_is_eligible_for() -> None:
    adults = design_cells(
        Design.model_validate({"cross": {"domain": ["news"]}, "people": 1, "eligible": {"adult": True}})
    )
    states = [CellState(cell) for cell in adults]
    assert choose_cell(states, {"adult": False}, 0, "reader-1") is None
    assert choose_cell(states, {"adult": True}, 0, "reader-1") is adults[0]
    assert not is_eligible_for_any_cell(adults, {})


def test_the_cell_is_stored_with_its_factors_and_condition() -> None:
    one = with_cell(Annotator(id="reader-1", kind="human"), CELLS[3])
    assert (one.cell, one.condition) == ("examples/stories", "examples")
    assert one.factors == {"condition": "examples", "domain": "stories"}


@given(st.integers(0, 10_000), st.floats(0, 0.6), st.floats(0, 0.5))
def test_cells_fill_exactly_whoever_is_rejected_or_leaves(seed: int, rejected: float, gone: float) -> None:
    """When people come until no cell is open, each cell has exactly its number of accepted people."""
    chance, number = random.Random(seed), 0
    people: list[CellMember] = []
    while (
        cell := choose_cell(cell_states(CELLS, people, TEXTS_NEEDED_BY_CELL, 0), {}, seed, f"reader-{number}")
    ) is not None:
        number += 1
        submitted = 3 if chance.random() < gone else 5
        people.append(make_member(number, cell, submitted=submitted, excluded=chance.random() < rejected))
        assert number < 2000
    states = cell_states(CELLS, people, TEXTS_NEEDED_BY_CELL, 0)
    assert [state.accepted for state in states] == [3, 3, 3, 3]
    assert Counter(one.cell for one in people).total() == number
