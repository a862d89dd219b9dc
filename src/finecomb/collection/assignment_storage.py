"""Task assignment: an annotator's progress and the next task. Runs on the writer thread."""

from __future__ import annotations

import itertools
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
from finecomb.collection.annotator_meta import AnnotatorMeta, with_assigned_text_group
from finecomb.collection.assignment_rules import (
    AnnotatorAssignmentState,
    AssignedTask,
    AssignmentCounts,
    AssignmentPlan,
    TextEligibilityRules,
    TextGroup,
)
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.rows import dump_json, iso_timestamp
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.practice_rounds import practised_condition
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


# --- progress ----------------------------------------------------------------------------------------------------

_A, _P = tables.annotation.c, tables.annotator.c
_CURRENT_WORK_CONDITIONS = (
    _A.study == named_sql_placeholder("study"),
    _A.protocol == named_sql_placeholder("protocol"),
    _A.phase == "work",
    _A.round == 0,
)
_IS_ASSIGNED = sa.and_(
    *_CURRENT_WORK_CONDITIONS,
    _A.excluded == 0,
    _P.kind == "human",
    _P.excluded == 0,
    sa.or_(_A.status == "submitted", sa.and_(_A.status == "draft", _A.lease > named_sql_placeholder("now"))),
)
ANNOTATOR_JOIN = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_SELECT_COUNTS = (
    sa.select(_A.document, _A.about, _A.status, sa.func.count())
    .select_from(ANNOTATOR_JOIN)
    .where(_IS_ASSIGNED)
    .group_by(_A.document, _A.about, _A.status)
)
_SELECT_CELL_COUNTS = _SELECT_COUNTS.where(_P.cell == named_sql_placeholder("cell"))
_COUNT_OTHER_ANNOTATORS = (
    sa.select(sa.func.count())
    .select_from(ANNOTATOR_JOIN)
    .where(
        _IS_ASSIGNED,
        _A.document == named_sql_placeholder("document"),
        _A.about == named_sql_placeholder("about"),
        _A.annotator != named_sql_placeholder("annotator"),
    )
)
_COUNT_IN_CONDITION = (
    sa.select(sa.func.count())
    .select_from(ANNOTATOR_JOIN)
    .where(_IS_ASSIGNED, _P.condition == named_sql_placeholder("condition"))
)
_SELECT_TASKS = (
    sa.select(_A.id, _A.document, _A.about, _A.number, _A.status, _A.lease, _A.excluded)
    .where(
        *_CURRENT_WORK_CONDITIONS[:-1],
        _A.round == named_sql_placeholder("round"),
        _A.annotator == named_sql_placeholder("annotator"),
    )
    .order_by(_A.number)
)
_SELECT_ANNOTATOR = sa.select(_P.condition, _P.excluded, _P.cell, _P.body).where(
    _P.study == named_sql_placeholder("study"), _P.id == named_sql_placeholder("annotator")
)


def read_assignment_state(store: Store, transaction: Transaction, annotator: str) -> AnnotatorAssignmentState:
    """Return the progress of an annotator and the texts they could get next, without changing anything."""
    head, round = store.head, store.head.settings.round
    rows = transaction.fetch_all(
        _SELECT_TASKS, study=store.key, protocol=head.protocol.id, annotator=annotator, round=round
    )
    tasks = tuple(AssignedTask(*row) for row in rows if row[3] is not None)
    mine = frozenset(row[2] or row[1] for row in rows)
    arm, excluded, cell, body = transaction.fetch_first(_SELECT_ANNOTATOR, study=store.key, annotator=annotator) or (
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
        # Second-pass state: the annotator's texts that others also annotated, in first-pass order
        plan = store.assignment_plan()
        pool = set(_assignment_pool(store, plan)) - mine
        due = [
            document
            for document in second_pass_storage.documents_due_in_second_pass(store, transaction, annotator)
            if document in pool
        ]
        return assignment_rules.second_pass_state(plan, due, tasks, mine)
    if head.settings.design is not None:
        return _cell_assignment_state(store, transaction, annotator, tasks, mine, str(cell))
    return _first_pass_state(store, transaction, annotator, tasks, mine, arm, _parse_assigned_text_group(store, body))


def _first_pass_state(
    store: Store,
    transaction: Transaction,
    annotator: str,
    tasks: Sequence[AssignedTask],
    mine: frozenset[str],
    arm: str,
    setting: TextGroup | None,
) -> AnnotatorAssignmentState:
    plan = (
        judged_work_storage.read_judged_work_plan(store, transaction)
        if judged_work_storage.is_judging_protocol(store.head.protocol)
        else store.assignment_plan()
    )
    counts = _read_assignment_counts(store, transaction)
    # Maximum number of further texts, without attention checks
    head = store.head
    texts = head.protocol.work.texts
    left = (
        len(plan.documents) if texts is None else max(0, texts - sum(task.item_id not in plan.checks for task in tasks))
    )
    if arm in head.settings.quotas:
        values = {"study": store.key, "protocol": head.protocol.id, "now": store.clock()}
        (taken,) = transaction.fetch_first(_COUNT_IN_CONDITION, condition=arm, **values) or (0,)
        left = min(left, max(0, head.settings.quotas[arm] - taken))
    rules = TextEligibilityRules(
        plan,
        _assignment_pool(store, plan, counts),
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
    """Return the assignment state of an annotator in a cell of the design."""
    plan = store.assignment_plan()
    place = plan.cells.get(cell)
    had = sum(task.item_id not in plan.checks for task in tasks)
    if place is None:
        return assignment_rules.unplaced_annotator_state(
            plan, texts_per_person(store, cell) or 1, tasks, mine, later=not cell
        )
    if had < place.texts_per_person and not design_cells_storage.has_place(store, transaction, annotator):
        return assignment_rules.unplaced_annotator_state(plan, 0, tasks, mine, later=False)
    pilot = store.head.settings.pilot if store.head.state == "pilot" else len(place.documents)
    rules = TextEligibilityRules(plan, place.documents[: max(pilot, place.texts_per_person)], None, {})
    counts = _read_assignment_counts(store, transaction, cell)
    return assignment_rules.first_pass_state(rules, counts, tasks, mine, max(0, place.texts_per_person - had))


def texts_per_person(store: Store, cell: str) -> int | None:
    """Return the number of texts per person in a cell, without attention checks, or None when it is not limited."""
    plan = store.assignment_plan()
    if not plan.cells:
        return store.head.protocol.work.texts
    return (
        plan.cells[cell].texts_per_person
        if cell in plan.cells
        else max(place.texts_per_person for place in plan.cells.values())
    )


def _assignment_pool(store: Store, plan: AssignmentPlan, counts: AssignmentCounts | None = None) -> Sequence[str]:
    """Return the documents that are assigned now. In a pilot, these are the first ones, or the first ones drawn."""
    if store.head.state != "pilot":
        return plan.documents
    if store.head.settings.allocation is not None and counts is not None:
        # Any text may be drawn until the pilot has its number of texts; then only texts already drawn.
        drawn = [document for document in plan.documents if counts.taken_place_count(document)]
        return plan.documents if len(drawn) < store.head.settings.pilot else drawn
    return plan.documents[: store.head.settings.pilot]


def _read_assignment_counts(store: Store, transaction: Transaction, cell: str = "") -> AssignmentCounts:
    """Count submitted and leased tasks per document, in the whole study or in one cell of the design."""
    values = {"study": store.key, "protocol": store.head.protocol.id, "now": store.clock()}
    rows = (
        transaction.fetch_all(_SELECT_CELL_COUNTS, cell=cell, **values)
        if cell
        else transaction.fetch_all(_SELECT_COUNTS, **values)
    )
    return AssignmentCounts(
        {about or document: count for document, about, status, count in rows if status == "submitted"},
        {about or document: count for document, about, status, count in rows if status == "draft"},
    )


# --- text groups -------------------------------------------------------------------------------------------------

_SELECT_ANNOTATORS_IN_CONDITION = sa.select(_P.body).where(
    _P.study == named_sql_placeholder("study"),
    _P.condition == named_sql_placeholder("condition"),
    _P.excluded == 0,
    _P.kind == "human",
)


def _parse_assigned_text_group(store: Store, body: str) -> TextGroup | None:
    """Return the text group assigned to an annotator, or None when they have none or the protocol no longer uses it."""
    within = store.head.protocol.work.within
    setting = AnnotatorMeta.from_meta(from_json(body).get("meta", {})).setting if within else {}
    return tuple(setting[name] for name in within) if within and set(setting) == set(within) else None


def _assign_text_group(
    store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState
) -> AnnotatorAssignmentState:
    """Assign the text group with the fewest people in the annotator's condition, and return the restricted state."""
    work, seed = store.head.protocol.work, store.head.settings.seed
    if not work.within or state.plan.cells or state.setting is not None or not state.free:
        return state
    person = annotator_storage.get_annotator(store, transaction, annotator)
    peers = transaction.fetch_all(_SELECT_ANNOTATORS_IN_CONDITION, study=store.key, condition=person.condition)
    people = Counter(setting for (body,) in peers if (setting := _parse_assigned_text_group(store, body)) is not None)
    chosen = assignment_rules.choose_text_group(state.free, state.plan, people, work.texts or 1, seed, annotator)
    assert chosen is not None
    annotator_storage.replace_annotator(
        store, transaction, with_assigned_text_group(person, dict(zip(work.within, chosen, strict=True)))
    )
    return assignment_rules.narrow_state_to_text_group(state, chosen)


def assign_text_group_for_practice(store: Store, transaction: Transaction, person: Annotator) -> bool:
    """Assign a text group if the practice rounds depend on it, and return whether a group was assigned."""
    protocol, settings = store.head.protocol, store.head.settings
    if not protocol.work.within or AnnotatorMeta.from_annotator(person).setting or settings.design is not None:
        return False
    condition = practised_condition(protocol, settings, person)
    examples = [*condition.examples, *itertools.chain(*condition.pairs)] if condition else []
    if not any(example.only for example in examples):
        return False
    state = read_assignment_state(store, transaction, person.id)
    return _assign_text_group(store, transaction, person.id, state).setting is not None


# --- the next task -----------------------------------------------------------------------------------------------

_UPDATE_LEASE = (
    sa.update(tables.annotation)
    .values(lease=named_sql_placeholder("lease"))
    .where(_A.study == named_sql_placeholder("of"), _A.id == named_sql_placeholder("task"))
)
_INSERT_TASK = (
    sa.insert(tables.annotation)
    .values(
        {
            column.name: named_sql_placeholder(column.name)
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
        _A.annotator == named_sql_placeholder("annotator"),
        _A.document == named_sql_placeholder("document"),
        _A.status == "submitted",
        tables.entry.c.kind == "mark",
        tables.entry.c.body.is_not(None),
    )
    .order_by(tables.entry.c.key)
)


@dataclass(frozen=True, slots=True)
class NextTask:
    """Next task of an annotator, or the reason why there is none."""

    id: str = ""
    why: Literal["", "all-done", "none-now", "paused", "closed"] = ""


def assign_next_task(store: Store, transaction: Transaction, annotator: str) -> NextTask:
    """Return the annotator's open draft, or assign a new text.

    On the writer thread, no other assignment runs at the same time, so no text gets more annotators than it needs.
    """
    if store.head.state == "paused" or store.head.state == "closed":
        return NextTask(why=store.head.state)
    state = read_assignment_state(store, transaction, annotator)
    for task in state.given:
        if _can_continue_task(store, transaction, annotator, state, task):
            # Renew the lease of a returning annotator. Viewing an untouched task does not extend its lease.
            is_begun = transaction.fetch_first(_SELECT_ACTIVE_SECONDS, study=store.key, task=task.id) is not None
            if is_begun or task.lease is None or task.lease <= store.clock():
                transaction.execute(_UPDATE_LEASE, of=store.key, task=task.id, lease=new_lease_expiry(store, is_begun))
            return NextTask(task.id)
    state = _assign_text_group(store, transaction, annotator, state)
    settings, texts = store.head.settings, store.head.protocol.work.texts
    if (
        settings.allocation is not None
        and not settings.round
        and not assignment_rules.next_attention_check(state, texts, settings.seed, annotator)
    ):
        drawn = allocation_storage.reuse_or_draw_text(store, transaction, settings.allocation, state, annotator)
        if drawn:
            return NextTask(_create_task(store, transaction, state, annotator, drawn.document, drawn))
    if settings.round:
        item = next(iter(state.free), None)
    else:
        if state.plan.cells:
            texts = len(state.given) + state.left
        item = assignment_rules.next_first_pass_item(state, texts, settings.seed, annotator)
    return NextTask(_create_task(store, transaction, state, annotator, item)) if item else NextTask(why=state.why)


def _can_continue_task(
    store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState, task: AssignedTask
) -> bool:
    """Return whether a task is a draft that its annotator can continue."""
    if state.excluded or task.excluded or task.status != "draft":
        return False
    if store.head.settings.round:
        return True
    protocol = store.head.protocol.id
    return is_lease_valid(store, transaction, annotator, task.document, task.about, protocol, task.lease)


def has_open_task(store: Store, transaction: Transaction, annotator: str, state: AnnotatorAssignmentState) -> bool:
    """Return whether an annotator has a draft that they can continue."""
    return any(_can_continue_task(store, transaction, annotator, state, task) for task in state.given)


def new_lease_expiry(store: Store, is_begun: bool = True) -> float | None:
    """Return the time until which a task is leased, or None in the second pass, which needs no leases.

    A task without any work gets a quarter of the lease, so that idle visitors do not block a text for long.
    """
    if store.head.settings.round:
        return None
    return store.clock() + 60 * store.head.settings.lease * (1 if is_begun else UNTOUCHED_LEASE_SHARE)


UNTOUCHED_LEASE_SHARE = 0.25
"""Share of the full lease for a task without any work."""
_SELECT_ACTIVE_SECONDS = sa.select(_A.active).where(
    _A.study == named_sql_placeholder("study"), _A.id == named_sql_placeholder("task"), _A.active.is_not(None)
)


def is_lease_valid(
    store: Store,
    transaction: Transaction,
    annotator: str,
    document: str,
    about: str,
    protocol: str,
    lease: float | None,
) -> bool:
    """Return whether an annotator may keep working on a task.

    They may if the lease has not expired, or if no other annotator has taken their place since it expired.
    """
    plan = store.assignment_plan()
    if (lease is not None and lease > store.clock()) or document in plan.checks:
        return True
    if plan.cells:
        return design_cells_storage.has_place(store, transaction, annotator)
    values = {"study": store.key, "protocol": protocol, "now": store.clock()}
    (others,) = transaction.fetch_first(
        _COUNT_OTHER_ANNOTATORS, document=document, about=about, annotator=annotator, **values
    ) or (0,)
    return bool(others < plan.target_annotator_count(document, store.head.annotators_per_document))


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
    """Insert a new draft task that starts now, and return its key."""
    row = transaction.fetch_first(
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
    """Build the `meta` of a task: the facts about its assignment that statistics need."""
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
    machine_marks = transaction.fetch_all(_SELECT_MACHINE_MARKS, document=document, **who)
    return replace(circumstances, offered=tuple(id for (id,) in machine_marks))
