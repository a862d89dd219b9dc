"""Filling the cells of a design with accepted people: how each cell stands, and who is assigned to which.

A person is accepted who handed in all texts and was not excluded. A place is held for somebody who is at work. So a
cell is given out as long as those accepted and those at work are fewer than it needs, and excluding somebody reopens a
place, unless the design says that it stays closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from finecomb.collection.assignment_rules import seeded_hash
from finecomb.core.design import DesignCell
from finecomb.core.records import Annotator, Answers

CellMemberStatus = Literal["accepted", "working", "gone", "excluded"]
"""How somebody who was assigned to a cell counts in it; `gone` stopped and did not come back in time."""


@dataclass(frozen=True, slots=True)
class CellMember:
    """Somebody who was assigned to a cell, as far as filling it goes."""

    annotator: str
    cell: str
    excluded: bool
    held: float | None
    """Until when the place is held."""
    submitted: int
    """Texts handed in and not set aside."""
    is_busy: bool
    """Whether a text is kept for them at the moment."""


def member_status(person: CellMember, needed: int, now: float) -> CellMemberStatus:
    """How a person counts in a cell where everybody hands in `needed` texts."""
    if person.excluded:
        return "excluded"
    if person.submitted >= needed:
        return "accepted"
    return "working" if person.is_busy or (person.held is not None and person.held > now) else "gone"


@dataclass(frozen=True, slots=True)
class CellState:
    """How a cell is filled at a moment."""

    cell: DesignCell
    accepted: int = 0
    working: int = 0
    gone: int = 0
    excluded: int = 0

    @property
    def closed_place_count(self) -> int:
        """Places of people who were excluded that are not given to anybody else."""
        return 0 if self.cell.reopen else min(self.excluded, max(0, self.cell.people - self.accepted))

    @property
    def open_place_count(self) -> int:
        """How many more people can be assigned to it now."""
        return max(0, self.cell.people - self.accepted - self.working - self.closed_place_count)

    @property
    def is_full(self) -> bool:
        """Whether it waits for nobody any more."""
        return self.accepted + self.closed_place_count >= self.cell.people


def cell_states(
    cells: Sequence[DesignCell], people: Iterable[CellMember], needed: Mapping[str, int], now: float
) -> list[CellState]:
    """How each cell is filled; `needed` are the texts that a person hands in there, by cell."""
    counts: dict[tuple[str, CellMemberStatus], int] = {}
    for person in people:
        if person.cell in needed:
            key = person.cell, member_status(person, needed[person.cell], now)
            counts[key] = counts.get(key, 0) + 1
    return [
        CellState(
            cell,
            accepted=counts.get((cell.name, "accepted"), 0),
            working=counts.get((cell.name, "working"), 0),
            gone=counts.get((cell.name, "gone"), 0),
            excluded=counts.get((cell.name, "excluded"), 0),
        )
        for cell in cells
    ]


def choose_cell(states: Iterable[CellState], survey: Answers, seed: int, annotator: str) -> DesignCell | None:
    """The cell that somebody new is assigned to: the one furthest from full; among equals, the seed decides.

    None when every cell that they are eligible for is full or given out.
    """
    candidates = [state for state in states if state.open_place_count and state.cell.admits(survey)]
    chosen = min(candidates, key=lambda state: _cell_fill_rank(state, seed, annotator), default=None)
    return chosen.cell if chosen else None


def _cell_fill_rank(state: CellState, seed: int, annotator: str) -> tuple[float, int]:
    share = (state.accepted + state.working) / state.cell.people
    return share, seeded_hash(seed, annotator, "cell", state.cell.name)


def is_eligible_for_any_cell(cells: Iterable[DesignCell], survey: Answers) -> bool:
    """Whether somebody with these answers to the survey may take part in any cell."""
    return any(cell.admits(survey) for cell in cells)


def with_cell(annotator: Annotator, cell: DesignCell) -> Annotator:
    """The annotator in a cell: its name, its factors and its condition are stored with them."""
    return annotator.model_copy(update={"cell": cell.name, "factors": dict(cell.factors), "condition": cell.condition})
