"""The cells of a study's design in the database: how each is filled, and who has a place in one. Writer jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from finecomb.collection import annotator_storage, design_cells, onboarding
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.design_cells import CellMember, CellState
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


class StudyFullError(Exception):
    """Somebody new comes when every place in the design is taken; nothing is kept about them."""


PlaceStatus = Literal["held", "later", "full", "not-eligible"]
"""Whether somebody has a place: held, given after the survey, none any more, or none for these answers."""
_A, _P = tables.annotation.c, tables.annotator.c
_IS_COUNTED_WORK = sa.and_(
    _A.study == _P.study,
    _A.annotator == _P.id,
    _A.protocol == bind_parameter("protocol"),
    _A.phase == "work",
    _A.round == 0,
    _A.excluded == 0,
)
_SELECT_MEMBERS = (
    sa.select(
        _P.id,
        _P.cell,
        _P.excluded,
        _P.held,
        sa.func.sum(sa.case((_A.status == "submitted", 1), else_=0)),
        sa.func.sum(sa.case((sa.and_(_A.status == "draft", _A.lease > bind_parameter("now")), 1), else_=0)),
    )
    .select_from(tables.annotator.outerjoin(tables.annotation, _IS_COUNTED_WORK))
    .where(_P.study == bind_parameter("study"), _P.kind == "human", _P.cell != "")
    .group_by(_P.id, _P.cell, _P.excluded, _P.held)
)
_SELECT_MEMBERS_OF_CELL = _SELECT_MEMBERS.where(_P.cell == bind_parameter("cell"))
_SELECT_MEMBER = _SELECT_MEMBERS.where(_P.id == bind_parameter("annotator"))
_SELECT_CELL = sa.select(_P.cell).where(_P.study == bind_parameter("study"), _P.id == bind_parameter("annotator"))
_UPDATE_HOLD = (
    sa.update(tables.annotator)
    .values(held=bind_parameter("until"))
    .where(_P.study == bind_parameter("of"), _P.id == bind_parameter("who"))
)


def read_cell_states(store: Store, transaction: Transaction) -> list[CellState]:
    """How each cell of the design is filled now."""
    return _build_cell_states(store, _read_cell_members(store, transaction, _SELECT_MEMBERS))


def _read_cell_members(
    store: Store, transaction: Transaction, which: sa.Select[Any], **more: object
) -> list[CellMember]:
    """Those who were assigned to a cell: everybody, those of one cell, or one person."""
    values = {"study": store.key, "protocol": store.head.protocol.id, "now": store.clock(), **more}
    return [
        CellMember(id, name, bool(excluded), held, int(submitted or 0), bool(busy))
        for id, name, excluded, held, submitted, busy in transaction.all(which, **values)
    ]


def _build_cell_states(store: Store, people: list[CellMember], cell: str = "") -> list[CellState]:
    places = [place for name, place in store.assignment_plan().cells.items() if cell in ("", name)]
    needed = {place.cell.name: place.tasks_per_person for place in places}
    return design_cells.cell_states([place.cell for place in places], people, needed, store.clock())


def has_place(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Whether somebody's place in their cell is held, or still free although it is not."""
    (cell,) = transaction.one(_SELECT_CELL, study=store.key, annotator=annotator) or ("",)
    place = store.assignment_plan().cells.get(str(cell))
    if place is None:
        return False
    people = _read_cell_members(store, transaction, _SELECT_MEMBER, annotator=annotator)
    if any(
        design_cells.member_status(person, place.tasks_per_person, store.clock()) in ("accepted", "working")
        for person in people
    ):
        return True
    in_cell = _read_cell_members(store, transaction, _SELECT_MEMBERS_OF_CELL, cell=cell)
    return any(state.open_place_count for state in _build_cell_states(store, in_cell, str(cell)))


# --- coming in ---------------------------------------------------------------------------------------------------


def has_open_place(store: Store, transaction: Transaction) -> bool:
    """Whether somebody new could be assigned to a cell; always so without a design."""
    return not store.assignment_plan().cells or any(
        state.open_place_count for state in read_cell_states(store, transaction)
    )


def hold_place(store: Store, transaction: Transaction, annotator: str) -> PlaceStatus:
    """Hold a place in a cell for somebody who is here: their own, else the one they are assigned to now."""
    person = annotator_storage.get_annotator(store, transaction, annotator)
    if person.cell in store.assignment_plan().cells:
        if not has_place(store, transaction, annotator):
            return "full"
    elif _needs_survey_first(store, person):
        return "later" if has_open_place(store, transaction) else "full"
    elif not design_cells.is_eligible_for_any_cell(
        [place.cell for place in store.assignment_plan().cells.values()], person.survey
    ):
        return "not-eligible"
    else:
        states, seed = read_cell_states(store, transaction), store.head.settings.seed
        chosen = design_cells.choose_cell(states, person.survey, seed, annotator)
        if chosen is None:
            return "full"
        annotator_storage.replace_annotator(store, transaction, design_cells.with_cell(person, chosen))
    until = store.clock() + 60 * store.head.settings.lease
    transaction.run(_UPDATE_HOLD, of=store.key, who=annotator, until=until)
    return "held"


def release_place(store: Store, transaction: Transaction, annotator: str) -> None:
    """Give somebody's place to others: they did not pass the qualification."""
    transaction.run(_UPDATE_HOLD, of=store.key, who=annotator, until=None)


def _needs_survey_first(store: Store, person: Annotator) -> bool:
    """Whether the cell depends on answers to the survey that are not there yet."""
    protocol, settings = store.head.protocol, store.head.settings
    if not any(place.cell.eligible for place in store.assignment_plan().cells.values()) or "survey" in settings.skip:
        return False
    record = onboarding.find_step_record(protocol, person, "survey")
    return record is None or record.done is None
