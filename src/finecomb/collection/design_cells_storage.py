"""Storage of design cells: the state of each cell and the places held in it. Runs on the writer thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from finecomb.collection import annotator_storage, design_cells, onboarding
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.design_cells import CellMember, CellState

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


class StudyFullError(Exception):
    """Sign-in of a new person when all places of the design are taken. No data about the person is stored."""


PlaceStatus = Literal["held", "later", "full", "not-eligible"]
"""Status of a person's place: held, assigned after the survey, no place left, or person not eligible."""
_A, _P = tables.annotation.c, tables.annotator.c
_IS_COUNTED_WORK = sa.and_(
    _A.study == _P.study,
    _A.annotator == _P.id,
    _A.protocol == named_sql_placeholder("protocol"),
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
        sa.func.sum(sa.case((sa.and_(_A.status == "draft", _A.lease > named_sql_placeholder("now")), 1), else_=0)),
    )
    .select_from(tables.annotator.outerjoin(tables.annotation, _IS_COUNTED_WORK))
    .where(_P.study == named_sql_placeholder("study"), _P.kind == "human", _P.cell != "")
    .group_by(_P.id, _P.cell, _P.excluded, _P.held)
)
_SELECT_MEMBERS_OF_CELL = _SELECT_MEMBERS.where(_P.cell == named_sql_placeholder("cell"))
_SELECT_MEMBER = _SELECT_MEMBERS.where(_P.id == named_sql_placeholder("annotator"))
_SELECT_CELL = sa.select(_P.cell).where(
    _P.study == named_sql_placeholder("study"), _P.id == named_sql_placeholder("annotator")
)
_UPDATE_HOLD = (
    sa.update(tables.annotator)
    .values(held=named_sql_placeholder("until"))
    .where(_P.study == named_sql_placeholder("of"), _P.id == named_sql_placeholder("who"))
)


def read_cell_states(store: Store, transaction: Transaction) -> list[CellState]:
    """Return the current state of each cell of the design."""
    return _build_cell_states(store, _read_cell_members(store, transaction, _SELECT_MEMBERS))


def _read_cell_members(
    store: Store, transaction: Transaction, which: sa.Select[Any], **more: object
) -> list[CellMember]:
    """Return the members of all cells, the members of one cell, or a single member."""
    values = {"study": store.key, "protocol": store.head.protocol.id, "now": store.clock(), **more}
    return [
        CellMember(id, name, bool(excluded), held, int(submitted or 0), bool(busy))
        for id, name, excluded, held, submitted, busy in transaction.fetch_all(which, **values)
    ]


def _build_cell_states(store: Store, people: list[CellMember], cell: str = "") -> list[CellState]:
    places = [place for name, place in store.assignment_plan().cells.items() if cell in ("", name)]
    needed = {place.cell.name: place.tasks_per_person for place in places}
    return design_cells.cell_states([place.cell for place in places], people, needed, store.clock())


def has_place(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Return whether an annotator's place in their cell is held for them or still free."""
    (cell,) = transaction.fetch_first(_SELECT_CELL, study=store.key, annotator=annotator) or ("",)
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


# --- sign-in -----------------------------------------------------------------------------------------------------


def has_open_place(store: Store, transaction: Transaction) -> bool:
    """Return whether a new person could be assigned to a cell. Always true without a design."""
    return not store.assignment_plan().cells or any(
        state.open_place_count for state in read_cell_states(store, transaction)
    )


def hold_place(store: Store, transaction: Transaction, annotator: str) -> PlaceStatus:
    """Hold a place in a cell for an annotator. If they have no cell, assign one."""
    person, cells = annotator_storage.get_annotator(store, transaction, annotator), store.assignment_plan().cells
    # The cell may depend on survey answers that the person has not given yet.
    survey = onboarding.find_step_record(store.head.protocol, person, "survey")
    depends_on_survey = "survey" not in store.head.settings.skip and any(
        place.cell.eligible for place in cells.values()
    )
    if person.cell in cells:
        if not has_place(store, transaction, annotator):
            return "full"
    elif depends_on_survey and (survey is None or survey.done is None):
        return "later" if has_open_place(store, transaction) else "full"
    elif not design_cells.is_eligible_for_any_cell([place.cell for place in cells.values()], person.survey):
        return "not-eligible"
    else:
        states, seed = read_cell_states(store, transaction), store.head.settings.seed
        chosen = design_cells.choose_cell(states, person.survey, seed, annotator)
        if chosen is None:
            return "full"
        annotator_storage.replace_annotator(store, transaction, design_cells.with_cell(person, chosen))
    until = store.clock() + 60 * store.head.settings.lease
    transaction.execute(_UPDATE_HOLD, of=store.key, who=annotator, until=until)
    return "held"


def release_place(store: Store, transaction: Transaction, annotator: str) -> None:
    """Release the place of an annotator who did not pass the qualification."""
    transaction.execute(_UPDATE_HOLD, of=store.key, who=annotator, until=None)
