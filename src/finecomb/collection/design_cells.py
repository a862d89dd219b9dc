"""Cells of a design: the number of accepted people in each, and the assignment of people to cells.

A person is accepted once they have submitted all texts and are not excluded. A place is held for each person who is
working. A cell stays open while it has fewer accepted and working people than it needs. Excluding a person reopens
their place, unless the design keeps it closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from finecomb.collection.assignment_rules import seeded_hash
from finecomb.core.design import DesignCell
from finecomb.core.records import Annotator, Answers

CellMemberStatus = Literal["accepted", "working", "gone", "excluded"]
"""Status of a person in their cell; `gone` means that they stopped and did not return in time."""


@dataclass(frozen=True, slots=True)
class CellMember:
    """Person assigned to a cell, with the facts from which their status is derived."""

    annotator: str
    cell: str
    excluded: bool
    held: float | None
    """Time until which the person's place is held."""
    submitted: int
    """Number of submitted texts that are not excluded."""
    is_busy: bool
    """True while the person holds a lease on a text."""


def member_status(person: CellMember, needed: int, now: float) -> CellMemberStatus:
    """Return the status of a person in a cell that requires `needed` texts."""
    if person.excluded:
        return "excluded"
    if person.submitted >= needed:
        return "accepted"
    return "working" if person.is_busy or (person.held is not None and person.held > now) else "gone"


@dataclass(frozen=True, slots=True)
class CellState:
    """Number of people in a cell by status."""

    cell: DesignCell
    accepted: int = 0
    working: int = 0
    gone: int = 0
    excluded: int = 0

    @property
    def closed_place_count(self) -> int:
        """Number of places of excluded people that stay closed."""
        return 0 if self.cell.reopen else min(self.excluded, max(0, self.cell.people - self.accepted))

    @property
    def open_place_count(self) -> int:
        """Number of people who can be assigned to the cell now."""
        return max(0, self.cell.people - self.accepted - self.working - self.closed_place_count)

    @property
    def is_full(self) -> bool:
        """True when the cell needs no more people."""
        return self.accepted + self.closed_place_count >= self.cell.people


def cell_states(
    cells: Sequence[DesignCell], people: Iterable[CellMember], needed: Mapping[str, int], now: float
) -> list[CellState]:
    """Return the state of each cell. `needed` is the number of texts that a person must submit, by cell."""
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
    """Choose the open cell with the lowest share of places taken. The seed breaks ties.

    Return None when no cell for which the person is eligible has an open place.
    """
    candidates = [state for state in states if state.open_place_count and state.cell.accepts_annotator(survey)]
    ranks = {
        state.cell.name: (
            (state.accepted + state.working) / state.cell.people,
            seeded_hash(seed, annotator, "cell", state.cell.name),
        )
        for state in candidates
    }
    return min((state.cell for state in candidates), key=lambda cell: ranks[cell.name], default=None)


def is_eligible_for_any_cell(cells: Iterable[DesignCell], survey: Answers) -> bool:
    """Return whether survey answers make a person eligible for any cell."""
    return any(cell.accepts_annotator(survey) for cell in cells)


def with_cell(annotator: Annotator, cell: DesignCell) -> Annotator:
    """Return a copy of the annotator with the name, factors and condition of a cell."""
    return annotator.model_copy(update={"cell": cell.name, "factors": dict(cell.factors), "condition": cell.condition})
