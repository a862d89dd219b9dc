"""Giving texts out: how far an annotator is, and what comes next. A job for the writer."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection import (
    allocation_storage,
    annotator_storage,
    assignment_rules,
    design_cells_storage,
    judged_work_storage,
    second_pass_storage,
)
from finecomb.collection.allocation_storage import DrawnText
from finecomb.collection.annotator_meta import AnnotatorMeta, with_assigned_setting
from finecomb.collection.assignment_rules import (
    AnnotatorAssignmentState,
    AssignedTask,
    AssignmentCounts,
    AssignmentPlan,
    Setting,
    TextEligibilityRules,
)
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.rows import dump_json, iso_timestamp
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.practice_rounds import is_practice_chosen_by_setting, practised_condition
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


# --- what there is, and who has what -----------------------------------------------------------------------------

_A, _P = tables.annotation.c, tables.annotator.c
_CURRENT_WORK_CONDITIONS = (
    _A.study == bind_parameter("study"),
    _A.protocol == bind_parameter("protocol"),
    _A.phase == "work",
    _A.round == 0,
)
_IS_ASSIGNED = sa.and_(
    *_CURRENT_WORK_CONDITIONS,
    _A.excluded == 0,
    _P.kind == "human",
    _P.excluded == 0,
    sa.or_(_A.status == "submitted", sa.and_(_A.status == "draft", _A.lease > bind_parameter("now"))),
)
ANNOTATOR_JOIN = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_SELECT_COUNTS = (
    sa.select(_A.document, _A.about, _A.status, sa.func.count())
    .select_from(ANNOTATOR_JOIN)
    .where(_IS_ASSIGNED)
    .group_by(_A.document, _A.about, _A.status)
)
_SELECT_CELL_COUNTS = _SELECT_COUNTS.where(_P.cell == bind_parameter("cell"))
_COUNT_OTHER_ANNOTATORS = (
    sa.select(sa.func.count())
    .select_from(ANNOTATOR_JOIN)
    .where(
        _IS_ASSIGNED,
        _A.document == bind_parameter("document"),
        _A.about == bind_parameter("about"),
        _A.annotator != bind_parameter("annotator"),
    )
)
_COUNT_IN_CONDITION = (
    sa.select(sa.func.count())
    .select_from(ANNOTATOR_JOIN)
    .where(_IS_ASSIGNED, _P.condition == bind_parameter("condition"))
)
_SELECT_TASKS = (
    sa.select(_A.id, _A.document, _A.about, _A.number, _A.status, _A.lease, _A.excluded)
    .where(
        *_CURRENT_WORK_CONDITIONS[:-1], _A.round == bind_parameter("round"), _A.annotator == bind_parameter("annotator")
    )
    .order_by(_A.number)
)
_SELECT_ANNOTATOR = sa.select(_P.condition, _P.excluded, _P.cell, _P.body).where(
    _P.study == bind_parameter("study"), _P.id == bind_parameter("annotator")
)


def assignment_state(store: Store, transaction: Transaction, annotator: str) -> AnnotatorAssignmentState:
    """How far an annotator is; reads only."""
    head, round = store.head, store.head.settings.round
    rows = transaction.all(_SELECT_TASKS, study=store.key, protocol=head.protocol.id, annotator=annotator, round=round)
    tasks = tuple(AssignedTask(*row) for row in rows if row[3] is not None)
    mine = frozenset(row[2] or row[1] for row in rows)
    arm, excluded, cell, body = transaction.one(_SELECT_ANNOTATOR, study=store.key, annotator=annotator) or (
        "",
        1,
        "",
        "{}",
    )
    if excluded:
        return assignment_rules.excluded_annotator_state(
            store.assignment_plan(), texts_per_person(store, str(cell)), tasks, mine
        )
    if round:
        return _second_pass_state(store, transaction, annotator, tasks, mine)
    if head.settings.design is not None:
        return _cell_assignment_state(store, transaction, annotator, tasks, mine, str(cell))
    return _first_pass_state(store, transaction, annotator, tasks, mine, arm, _parse_assigned_setting(store, body))


def _first_pass_state(
    store: Store,
    transaction: Transaction,
    annotator: str,
    tasks: Sequence[AssignedTask],
    mine: frozenset[str],
    arm: str,
    setting: Setting | None,
) -> AnnotatorAssignmentState:
    plan = (
        judged_work_storage.judged_work_plan(store, transaction)
        if judged_work_storage.is_judging_protocol(store.head.protocol)
        else store.assignment_plan()
    )
    counts = _read_assignment_counts(store, transaction)
    left = _max_remaining_texts(store, transaction, plan, arm, sum(task.item_id not in plan.checks for task in tasks))
    rules = TextEligibilityRules(
        plan,
        _assignable_documents(store, plan, counts),
        store.head.annotators_per_document,
        store.head.settings.quotas,
        frozenset(id for id, item in plan.judged.items() if item.annotator == annotator),
        setting,
    )
    return assignment_rules.first_pass_state(rules, counts, tasks, mine, left)


def _cell_assignment_state(
    store: Store,
    transaction: Transaction,
    annotator: str,
    tasks: Sequence[AssignedTask],
    mine: frozenset[str],
    cell: str,
) -> AnnotatorAssignmentState:
    """The state of somebody who reads the texts of a cell of the design."""
    plan = store.assignment_plan()
    place = plan.cells.get(cell)
    had = sum(task.item_id not in plan.checks for task in tasks)
    if place is None:
        return assignment_rules.waiting_annotator_state(
            plan, texts_per_person(store, cell) or 1, tasks, mine, later=not cell
        )
    if had < place.texts_per_person and not design_cells_storage.has_place(store, transaction, annotator):
        return assignment_rules.waiting_annotator_state(plan, 0, tasks, mine, later=False)
    pilot = store.head.settings.pilot if store.head.state == "pilot" else len(place.documents)
    rules = TextEligibilityRules(plan, place.documents[: max(pilot, place.texts_per_person)], None, {})
    counts = _read_assignment_counts(store, transaction, cell)
    return assignment_rules.first_pass_state(rules, counts, tasks, mine, max(0, place.texts_per_person - had))


def texts_per_person(store: Store, cell: str) -> int | None:
    """How many texts somebody in that cell reads, attention checks aside; None where it is all of them."""
    plan = store.assignment_plan()
    if not plan.cells:
        return store.head.protocol.work.texts
    return (
        plan.cells[cell].texts_per_person
        if cell in plan.cells
        else max(place.texts_per_person for place in plan.cells.values())
    )


def _second_pass_state(
    store: Store, transaction: Transaction, annotator: str, tasks: Sequence[AssignedTask], mine: frozenset[str]
) -> AnnotatorAssignmentState:
    """Every text of one's own that others have read too, in the same order as before."""
    plan = store.assignment_plan()
    pool = set(_assignable_documents(store, plan)) - mine
    due = [
        document
        for document in second_pass_storage.documents_due_in_second_pass(store, transaction, annotator)
        if document in pool
    ]
    return assignment_rules.second_pass_state(plan, due, tasks, mine)


def _assignable_documents(store: Store, plan: AssignmentPlan, counts: AssignmentCounts | None = None) -> Sequence[str]:
    """What is given out at the moment; where texts are drawn, a pilot draws so many of all of them."""
    if store.head.state != "pilot":
        return plan.documents
    if store.head.settings.allocation is not None and counts is not None:
        return allocation_storage.assignable_pilot_texts(plan.documents, counts, store.head.settings.pilot)
    return plan.documents[: store.head.settings.pilot]


def _read_assignment_counts(store: Store, transaction: Transaction, cell: str = "") -> AssignmentCounts:
    """How the work stands, in one cell of the design where one is named."""
    values = {"study": store.key, "protocol": store.head.protocol.id, "now": store.clock()}
    rows = (
        transaction.all(_SELECT_CELL_COUNTS, cell=cell, **values) if cell else transaction.all(_SELECT_COUNTS, **values)
    )
    return AssignmentCounts(
        {about or document: count for document, about, status, count in rows if status == "submitted"},
        {about or document: count for document, about, status, count in rows if status == "draft"},
    )


def _max_remaining_texts(store: Store, transaction: Transaction, plan: AssignmentPlan, arm: str, had: int) -> int:
    """How many more texts somebody in that arm who had so many may get, attention checks aside."""
    head = store.head
    texts = head.protocol.work.texts
    left = len(plan.documents) if texts is None else max(0, texts - had)
    if arm in head.settings.quotas:
        values = {"study": store.key, "protocol": head.protocol.id, "now": store.clock()}
        (taken,) = transaction.one(_COUNT_IN_CONDITION, condition=arm, **values) or (0,)
        left = min(left, max(0, head.settings.quotas[arm] - taken))
    return left


# --- one setting for each person ---------------------------------------------------------------------------------

_SELECT_PEERS = sa.select(_P.body).where(
    _P.study == bind_parameter("study"),
    _P.condition == bind_parameter("condition"),
    _P.excluded == 0,
    _P.kind == "human",
)


def _parse_assigned_setting(store: Store, body: str) -> Setting | None:
    """Which texts an annotator keeps to, if that was decided and is still asked."""
    within = store.head.protocol.work.within
    setting = AnnotatorMeta.from_meta(from_json(body).get("meta", {})).setting if within else {}
    return tuple(setting[name] for name in within) if within and set(setting) == set(within) else None


def _assign_setting(
    store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState
) -> AnnotatorAssignmentState:
    """The state of somebody who is put into the setting with fewest people of their condition, and kept there."""
    work, seed = store.head.protocol.work, store.head.settings.seed
    if not work.within or state.plan.cells or state.setting is not None or not state.free:
        return state
    person = annotator_storage.get_annotator(store, transaction, annotator)
    peers = transaction.all(_SELECT_PEERS, study=store.key, condition=person.condition)
    people = Counter(setting for (body,) in peers if (setting := _parse_assigned_setting(store, body)) is not None)
    chosen = assignment_rules.choose_setting(state.free, state.plan, people, work.texts or 1, seed, annotator)
    assert chosen is not None
    annotator_storage.replace_annotator(
        store, transaction, with_assigned_setting(person, dict(zip(work.within, chosen, strict=True)))
    )
    return assignment_rules.narrow_state_to_setting(state, chosen)


def assign_setting_for_practice(store: Store, transaction: Transaction, person: Annotator) -> bool:
    """Decide which texts somebody keeps to before they practise, where practice goes by it; says whether it did."""
    protocol, settings = store.head.protocol, store.head.settings
    if not protocol.work.within or AnnotatorMeta.from_annotator(person).setting or settings.design is not None:
        return False
    if not is_practice_chosen_by_setting(practised_condition(protocol, settings, person)):
        return False
    state = assignment_state(store, transaction, person.id)
    return _assign_setting(store, transaction, person.id, state).setting is not None


# --- the next text -----------------------------------------------------------------------------------------------

_UPDATE_LEASE = (
    sa.update(tables.annotation)
    .values(lease=bind_parameter("lease"))
    .where(_A.study == bind_parameter("of"), _A.id == bind_parameter("task"))
)
_INSERT_TASK = (
    sa.insert(tables.annotation)
    .values(
        {
            column.name: bind_parameter(column.name)
            for column in tables.annotation.columns
            if column.name not in ("key", "submitted", "active")
        }
    )
    .returning(_A.key)
)
_SELECT_MACHINE_MARKS = (
    sa.select(tables.entry.c.id)
    .select_from(tables.entry.join(tables.annotation, tables.entry.c.annotation == _A.key))
    .where(
        *_CURRENT_WORK_CONDITIONS,
        _A.about == "",
        _A.annotator == bind_parameter("annotator"),
        _A.document == bind_parameter("document"),
        _A.status == "submitted",
        tables.entry.c.kind == "mark",
        tables.entry.c.body.is_not(None),
    )
    .order_by(tables.entry.c.key)
)


@dataclass(frozen=True, slots=True)
class NextTask:
    """What an annotator is to do now, or why there is nothing."""

    id: str = ""
    why: Literal["", "all-done", "none-now", "paused", "closed"] = ""


def assign_next_task(store: Store, transaction: Transaction, annotator: str) -> NextTask:
    """An open draft, else a new text. Being in the writer, it never gives a text to more people than it should."""
    if store.head.state == "paused" or store.head.state == "closed":
        return NextTask(why=store.head.state)
    state = assignment_state(store, transaction, annotator)
    for task in state.given:
        if _can_continue_task(store, transaction, annotator, state, task):
            _renew_lease(store, transaction, task)
            return NextTask(task.id)
    state = _assign_setting(store, transaction, annotator, state)
    if drawn := _draw_allocated_text(store, transaction, state, annotator):
        return NextTask(_create_task(store, transaction, state, annotator, drawn.document, drawn))
    item = _choose_next_item(store, state, annotator)
    return NextTask(_create_task(store, transaction, state, annotator, item)) if item else NextTask(why=state.why)


def _draw_allocated_text(
    store: Store, transaction: Transaction, state: AnnotatorAssignmentState, annotator: str
) -> DrawnText | None:
    """The text that is drawn for somebody, where texts are drawn and no attention check is due."""
    settings = store.head.settings
    if settings.allocation is None or settings.round:
        return None
    if assignment_rules.next_attention_check(state, store.head.protocol.work.texts, settings.seed, annotator):
        return None
    return allocation_storage.reuse_or_draw_text(store, transaction, settings.allocation, state, annotator)


def _can_continue_task(
    store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState, task: AssignedTask
) -> bool:
    """Whether a task is a draft that its annotator can work on."""
    if state.excluded or task.excluded or task.status != "draft":
        return False
    if store.head.settings.round:
        return True
    protocol = store.head.protocol.id
    return is_lease_valid(store, transaction, annotator, task.document, task.about, protocol, task.lease)


def has_finished_work(store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState) -> bool:
    """Whether somebody handed in all that there is for them: none is due, and none is open that they can go on with."""
    if state.why != "all-done" or not any(task.status == "submitted" for task in state.given):
        return False
    return not has_open_task(store, transaction, annotator, state)


def has_open_task(store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState) -> bool:
    """Whether somebody has a text that they can go on with."""
    return any(_can_continue_task(store, transaction, annotator, state, task) for task in state.given)


def new_lease_expiry(store: Store, is_begun: bool = True) -> float | None:
    """Until when a text is kept for somebody who does something now; a second pass takes nobody's place.

    One in which nothing was done yet is kept for a quarter of that, so that who only comes takes little from others.
    """
    if store.head.settings.round:
        return None
    return store.clock() + 60 * store.head.settings.lease * (1 if is_begun else UNTOUCHED_LEASE_SHARE)


UNTOUCHED_LEASE_SHARE = 0.25
"""The share of the lease for which a text is kept in which nothing was done."""
_SELECT_ACTIVE_SECONDS = sa.select(_A.active).where(
    _A.study == bind_parameter("study"), _A.id == bind_parameter("task"), _A.active.is_not(None)
)


def _renew_lease(store: Store, transaction: Transaction, task: AssignedTask) -> None:
    """Keep a text for who comes back to it; one in which nothing was done is not kept longer by looking at it."""
    is_begun = transaction.one(_SELECT_ACTIVE_SECONDS, study=store.key, task=task.id) is not None
    if is_begun or task.lease is None or task.lease <= store.clock():
        transaction.run(_UPDATE_LEASE, of=store.key, task=task.id, lease=new_lease_expiry(store, is_begun))


def is_lease_valid(
    store: Store,
    transaction: Transaction,
    annotator: str,
    document: str,
    about: str,
    protocol: str,
    lease: float | None,
) -> bool:
    """Whether a place is kept for its annotator, or still free although it is not."""
    plan = store.assignment_plan()
    if (lease is not None and lease > store.clock()) or document in plan.checks:
        return True
    if plan.cells:
        return design_cells_storage.has_place(store, transaction, annotator)
    values = {"study": store.key, "protocol": protocol, "now": store.clock()}
    (others,) = transaction.one(
        _COUNT_OTHER_ANNOTATORS, document=document, about=about, annotator=annotator, **values
    ) or (0,)
    return bool(others < plan.target_annotator_count(document, store.head.annotators_per_document))


def _choose_next_item(store: Store, state: AnnotatorAssignmentState, annotator: str) -> str | None:
    settings = store.head.settings
    if settings.round:
        return next(iter(state.free), None)
    texts = len(state.given) + state.left if state.plan.cells else store.head.protocol.work.texts
    return assignment_rules.next_first_pass_item(state, texts, settings.seed, annotator)


def _create_task(
    store: Store,
    transaction: Transaction,
    state: AnnotatorAssignmentState,
    annotator: str,
    item: str,
    drawn: DrawnText | None = None,
) -> str:
    id, number, round = secrets.token_hex(12), len(state.given) + 1, store.head.settings.round
    judged = state.plan.judged.get(item)
    document, about = (judged.document, item) if judged else (item, "")
    circumstances = _build_task_meta(store, transaction, annotator, document, number)
    if drawn:
        circumstances = replace(circumstances, stratum=drawn.stratum, chance=drawn.chance, inclusion=drawn.inclusion)
    before = second_pass_storage.read_previous_pass(store, transaction, annotator, document) if round else None
    if before:
        circumstances = replace(circumstances, offered=tuple(before.offered), copies=before.copies)
    made_from = {"made_from": [before.id]} if before else {}
    values = {"document": document, "about": about, "annotator": annotator, "number": number}
    rest = {**made_from, "meta": circumstances.to_meta()}
    lease = new_lease_expiry(store, is_begun=False)
    key = insert_task(store, transaction, id=id, phase="work", round=round, lease=lease, rest=rest, **values)
    if before:
        second_pass_storage.copy_previous_pass(store, transaction, key, before)
    return id


def insert_task(store: Store, transaction: Transaction, *, rest: Mapping[str, object], **values: object) -> int:
    """A new task: an annotation that begins now. Returns its key."""
    row = transaction.one(
        _INSERT_TASK,
        study=store.key,
        protocol=store.head.protocol.id,
        status="draft",
        excluded=0,
        started=iso_timestamp(store.clock()),
        rest=dump_json(rest),
        **values,
    )
    assert row is not None
    return int(row[0])


def _build_task_meta(store: Store, transaction: Transaction, annotator: str, document: str, number: int) -> TaskMeta:
    """What statistics want to know about how a text was given out."""
    head, seed = store.head, store.head.settings.seed
    pair = head.protocol.work.unit == "pair"
    circumstances = TaskMeta(
        order=number,
        pilot=head.state == "pilot",
        shown_first=assignment_rules.first_shown_text_of_pair(seed, annotator, document) if pair else "",
    )
    if document in store.assignment_plan().checks:
        return replace(circumstances, attention_check=True)
    if head.settings.offer is None or head.settings.round or judged_work_storage.is_judging_protocol(head.protocol):
        return circumstances
    if assignment_rules.is_shown_without_machine_marks(seed, document, head.settings.offer.blind):
        return replace(circumstances, blind=True)
    who = {"study": store.key, "protocol": head.protocol.id, "annotator": head.settings.offer.annotator}
    machine_marks = transaction.all(_SELECT_MACHINE_MARKS, document=document, **who)
    return replace(circumstances, offered=tuple(id for (id,) in machine_marks))
