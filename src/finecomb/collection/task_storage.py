"""Storage of tasks: saving, submission and reopening. Runs on the writer thread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection import platform_batches_storage
from finecomb.collection.assignment_storage import ANNOTATOR_JOIN, is_lease_valid, new_lease_expiry
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.rows import EntryKind, RejectedChange, StoredEntry, iso_timestamp
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.onboarding_storage import grade_attempt_if_complete
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.duplicate_marks import mark_identity
from finecomb.core.records import Annotation, AnnotationPhase, Mark

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E, _C = tables.annotation.c, tables.annotator.c, tables.entry.c, tables.change.c


# --- tasks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Facts about a task that never change."""

    annotator: str
    document: str
    protocol: str
    number: int
    started: float
    phase: AnnotationPhase
    round: int
    about: str = ""
    """ID of the annotation or mark to judge; empty when the task is about the text itself."""
    offered: tuple[str, ...] = ()
    """IDs of the marks offered to the annotator."""
    first: str = ""
    """Which text of a pair is shown first: `a` or `b`."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """ID of the first-pass mark from which each mark of a second pass was copied, by ID of the copy."""

    @property
    def has_lease(self) -> bool:
        """True when the task has a lease and can pass to another annotator. Exercises and second passes cannot."""
        return self.phase == "work" and self.round == 0


@dataclass(frozen=True, slots=True)
class TaskState:
    """Current state of a task."""

    status: Literal["draft", "submitted"]
    active: float
    lease: float | None
    entries: Sequence[StoredEntry]
    """Entries in order of creation, without deleted ones."""


_TASK_CONDITIONS = (
    _A.study == named_sql_placeholder("study"),
    _A.id == named_sql_placeholder("task"),
    _A.number.is_not(None),
)
_SELECT_TASK_INFO = sa.select(
    _A.annotator, _A.document, _A.protocol, _A.number, _A.started, _A.phase, _A.round, _A.about, _A.rest
).where(*_TASK_CONDITIONS)
_SELECT_TASK_STATE = sa.select(_A.key, _A.status, _A.active, _A.lease).where(*_TASK_CONDITIONS)
_SELECT_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.version, _E.body)
    .where(_E.annotation == named_sql_placeholder("annotation"), _E.body.is_not(None))
    .order_by(_E.key)
)


_SELECT_JUDGED_UNITS = (
    sa.select(_E.id)
    .select_from(tables.annotation.join(tables.entry, _E.annotation == _A.key))
    .where(*_TASK_CONDITIONS, _E.kind == "unit")
)


def read_ever_judged_unit_ids(store: Store, transaction: Transaction, task: str) -> frozenset[str]:
    """Return the IDs of the text parts that were ever judged in a task, including those whose judgement was deleted."""
    return frozenset(id for (id,) in transaction.fetch_all(_SELECT_JUDGED_UNITS, study=store.key, task=task))


def read_task_info(store: Store, transaction: Transaction, task: str) -> TaskInfo | None:
    """Return the facts about a task, or None for an unknown ID."""
    row = transaction.fetch_first(_SELECT_TASK_INFO, study=store.key, task=task)
    if row is None:
        return None
    annotator, document, protocol, number, started, phase, round, about, rest = row
    circumstances = TaskMeta.from_meta(from_json(rest).get("meta", {}))
    return TaskInfo(
        annotator,
        document,
        protocol,
        number,
        datetime.fromisoformat(started).timestamp(),
        phase,
        round,
        about,
        offered=circumstances.offered or (),
        first=circumstances.shown_first,
        copies=circumstances.copies or {},
    )


def read_task_state(store: Store, transaction: Transaction, task: str) -> TaskState:
    """Return the current state of a task, with its entries."""
    key, status, active, lease = transaction.fetch_first(_SELECT_TASK_STATE, study=store.key, task=task) or ()
    entries = tuple(StoredEntry(*row) for row in transaction.fetch_all(_SELECT_ENTRIES, annotation=key))
    return TaskState(status, active or 0, lease, entries)


_SELECT_MARKS = sa.select(_E.id, _E.body).where(
    _E.study == named_sql_placeholder("study"), _E.kind == "mark", _E.body.is_not(None)
)


def read_offered_marks(store: Store, transaction: Transaction, ids: Sequence[str]) -> list[Mark]:
    """Return the offered marks by ID, in the order of the given IDs."""
    bodies: dict[str, str] = dict(transaction.fetch_all(_SELECT_MARKS.where(_E.id.in_(ids)), study=store.key))
    return [rows.mark_from_body(id, bodies[id]) for id in ids if id in bodies]


# --- saving ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntryEdit:
    """Change to one entry, already validated against the text and the protocol."""

    change: str
    """ID of the change, created by the browser. Changes with a known ID are not applied again."""
    kind: EntryKind
    id: str
    base: int
    """Version of the entry on which the change is based; 0 for a new entry."""
    body: str | None
    """New content of the entry as JSON; None deletes the entry."""
    active: float
    """Active seconds on the task so far, as reported by the browser."""
    changed: int | None = None
    """Study change count when the request was authenticated."""

    @property
    def digest(self) -> str:
        """Digest of the content, which distinguishes this change from another with the same ID."""
        return change_digest(self.kind, self.id, self.body)


def change_digest(*parts: str | None) -> str:
    """Return a short digest of the content of a change."""
    return hashlib.sha256(rows.dump_json(parts).encode()).hexdigest()[:16]


_SELECT_CHANGE_CONTEXT = (
    sa.select(_A.key, _A.status, _A.lease, _A.active, _A.excluded + _P.excluded, _C.version, _E.version, _C.digest)
    .select_from(
        ANNOTATOR_JOIN.outerjoin(
            tables.change, sa.and_(_C.annotation == _A.key, _C.id == named_sql_placeholder("change"))
        ).outerjoin(
            tables.entry,
            sa.and_(
                _E.annotation == _A.key,
                _E.kind == named_sql_placeholder("kind"),
                _E.id == named_sql_placeholder("entry"),
            ),
        )
    )
    .where(*_TASK_CONDITIONS)
)
_SELECT_MARK_OWNER = sa.select(_E.annotation).where(
    _E.study == named_sql_placeholder("study"), _E.id == named_sql_placeholder("entry"), _E.kind == "mark"
)
_SELECT_ENTRY = sa.select(_E.kind, _E.id, _E.version, _E.body).where(
    _E.annotation == named_sql_placeholder("annotation"),
    _E.kind == named_sql_placeholder("kind"),
    _E.id == named_sql_placeholder("entry"),
)
_INSERT_ENTRY = sa.insert(tables.entry).values(
    {name: named_sql_placeholder(name) for name in ("study", "annotation", "kind", "id", "version", "body")}
)
_UPDATE_ENTRY = (
    sa.update(tables.entry)
    .values(version=named_sql_placeholder("new"), body=named_sql_placeholder("body"))
    .where(
        _E.annotation == named_sql_placeholder("of"),
        _E.kind == named_sql_placeholder("what"),
        _E.id == named_sql_placeholder("which"),
    )
)
_INSERT_CHANGE = sa.insert(tables.change).values(
    {name: named_sql_placeholder(name) for name in ("annotation", "id", "version", "digest")}
)
_UPDATE_ACTIVITY = (
    sa.update(tables.annotation)
    .values(lease=named_sql_placeholder("until"), active=named_sql_placeholder("spent"))
    .where(_A.key == named_sql_placeholder("of"))
)


def save_entry_edit(
    store: Store, transaction: Transaction, task: str, facts: TaskInfo, edit: EntryEdit
) -> int | RejectedChange:
    """Save a change to an entry, and return the new version. A repeated change returns its original version."""
    row = transaction.fetch_first(
        _SELECT_CHANGE_CONTEXT, study=store.key, task=task, change=edit.change, kind=edit.kind, entry=edit.id
    )
    if row is None:
        return RejectedChange("not-found")
    if edit.changed is not None and edit.changed != store.head.changed:
        return RejectedChange("overtaken")
    key, status, lease, active, excluded, done, version, before = row
    if done is not None:
        return (
            int(done)
            if before in ("", edit.digest)
            else RejectedChange("conflict", _read_stored_entry(transaction, key, edit), say=_REUSED_CHANGE_ID_MESSAGE)
        )
    if (declined := _closed_task_rejection(store, transaction, facts, status, lease, excluded)) is not None:
        return declined
    if (version or 0) != edit.base:
        stored = _read_stored_entry(transaction, key, edit)
        stale = transaction.fetch_first(_SELECT_CHANGE_VERSION, annotation=key, change=FORGOTTEN_CHANGE_ID) is not None
        if stale:
            return RejectedChange("conflict", stored, say=_OUTDATED_CHANGE_MESSAGE)
        # An entry may be created again if it was deleted and this browser does not know of it.
        if edit.base or edit.kind == "mark" or stored is None or stored.body is not None:
            return RejectedChange("conflict", stored)
    if edit.kind == "mark" and edit.body and (declined := _duplicate_mark_rejection(transaction, key, edit)):
        return declined
    if version is None:
        if edit.kind == "mark" and transaction.fetch_first(_SELECT_MARK_OWNER, study=store.key, entry=edit.id):
            return RejectedChange("refused")
        if declined := _task_size_rejection(transaction, key):
            return declined
        values = {"study": store.key, "annotation": key, "kind": edit.kind, "id": edit.id}
        transaction.execute(_INSERT_ENTRY, version=1, body=edit.body, **values)
    else:
        transaction.execute(_UPDATE_ENTRY, of=key, what=edit.kind, which=edit.id, new=version + 1, body=edit.body)
    now = (version or 0) + 1
    _record_applied_change(transaction, key, edit.change, now, edit.digest)
    transaction.execute(
        _UPDATE_ACTIVITY,
        of=key,
        until=_task_lease_expiry(store, facts),
        spent=_plausible_active_seconds(store, facts, active, edit.active),
    )
    return now


_SELECT_OWN_MARKS = sa.select(_E.kind, _E.id, _E.version, _E.body).where(
    _E.annotation == named_sql_placeholder("annotation"), _E.kind == "mark", _E.body.is_not(None)
)


def _duplicate_mark_rejection(transaction: Transaction, key: int, edit: EntryEdit) -> RejectedChange | None:
    """Return a rejection when the annotator has another mark with the same spans and label, or None."""
    assert edit.body is not None
    identity = mark_identity(rows.mark_from_body(edit.id, edit.body))
    for row in transaction.fetch_all(_SELECT_OWN_MARKS, annotation=key):
        stored = StoredEntry(*row)
        if stored.id == edit.id or stored.body is None:
            continue
        if mark_identity(rows.mark_from_body(stored.id, stored.body)) == identity:
            return RejectedChange("refused", stored, say=_DUPLICATE_MARK_MESSAGE)
    return None


_DUPLICATE_MARK_MESSAGE = (
    "You have already marked these words with this label, so this mark was not saved. Edit the first mark, or delete "
    "this one."
)
MAX_ENTRIES, MAX_CHARACTERS = 2_000, 2_000_000
"""Maximum number of entries and total characters per task."""
_SELECT_TASK_SIZE = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(sa.func.length(_E.body)), 0),
).where(_E.annotation == named_sql_placeholder("annotation"))


def _task_size_rejection(transaction: Transaction, key: int) -> RejectedChange | None:
    """Return a rejection when a task has reached its size limits, which are far above normal use, or None."""
    entries, characters = transaction.fetch_first(_SELECT_TASK_SIZE, annotation=key) or (0, 0)
    if entries >= MAX_ENTRIES or characters > MAX_CHARACTERS:
        return RejectedChange(
            "refused", say="This change was not saved because your work on this text has reached the maximum size."
        )
    return None


def _closed_task_rejection(
    store: Store, transaction: Transaction, facts: TaskInfo, status: str, lease: float | None, excluded: int
) -> RejectedChange | None:
    """Return the reason why a task cannot be changed now, or None when it can."""
    # Another process may have paused or closed the study a moment ago.
    if store.head.state == "paused" or store.head.state == "closed":
        return RejectedChange(store.head.state)
    if excluded:
        return RejectedChange("not-allowed")
    if status != "draft":
        return RejectedChange("finished")
    mine = (facts.annotator, facts.document, facts.about, facts.protocol)
    if facts.has_lease and not is_lease_valid(store, transaction, *mine, lease):
        return RejectedChange("lease-over")
    return None


def _task_lease_expiry(store: Store, facts: TaskInfo) -> float | None:
    return new_lease_expiry(store) if facts.has_lease else None


def _record_applied_change(transaction: Transaction, key: int, change: str, version: int, digest: str) -> None:
    transaction.execute(_INSERT_CHANGE, annotation=key, id=change, version=version, digest=digest)


def _read_stored_entry(transaction: Transaction, key: int, edit: EntryEdit) -> StoredEntry | None:
    row = transaction.fetch_first(_SELECT_ENTRY, annotation=key, kind=edit.kind, entry=edit.id)
    return StoredEntry(*row) if row else None


_REUSED_CHANGE_ID_MESSAGE = (
    "This change was not saved because of a conflict with an earlier change. Reload the page and make the change again."
)
_OUTDATED_CHANGE_MESSAGE = (
    "This change was not saved because it is based on an outdated version. Reload the page and make the change again."
)
FORGOTTEN_CHANGE_ID = ""
"""Change ID of the row stating that earlier changes to a task were deleted."""
CHANGE_RETENTION_SECONDS = 30 * 24 * 3600.0
"""Seconds for which the record of changes to a task is kept after submission."""
_SELECT_CHANGE_VERSION = sa.select(_C.version).where(
    _C.annotation == named_sql_placeholder("annotation"), _C.id == named_sql_placeholder("change")
)
_SELECT_OLD_TASKS = sa.select(_A.key).where(
    _A.study == named_sql_placeholder("study"),
    _A.status == "submitted",
    _A.submitted < named_sql_placeholder("before"),
    sa.exists().where(_C.annotation == _A.key, _C.version > 0),
)


def forget_old_changes(store: Store, transaction: Transaction) -> int:
    """Delete the records of changes to tasks submitted more than a month ago, and return the number of such tasks.

    Submissions and reopenings (version 0) stay recorded, because only they distinguish an old request from a new one.
    """
    keys = [
        key
        for (key,) in transaction.fetch_all(
            _SELECT_OLD_TASKS, study=store.key, before=iso_timestamp(store.clock() - CHANGE_RETENTION_SECONDS)
        )
    ]
    for key in keys:
        transaction.execute(sa.delete(tables.change).where(_C.annotation == key, _C.version > 0))
        if transaction.fetch_first(_SELECT_CHANGE_VERSION, annotation=key, change=FORGOTTEN_CHANGE_ID) is None:
            _record_applied_change(transaction, key, FORGOTTEN_CHANGE_ID, 0, "")
    return len(keys)


def _plausible_active_seconds(store: Store, facts: TaskInfo, before: float | None, reported: float) -> float:
    """Limit the active seconds reported by the browser: not below the previous value and not above the elapsed time."""
    return max(before or 0.0, min(reported, seconds_since_task_opened(store, facts)))


def seconds_since_task_opened(store: Store, facts: TaskInfo) -> float:
    """Return the seconds since a task was opened, or 0 when the clock was set back before that time."""
    return max(0.0, store.clock() - facts.started)


# --- submission --------------------------------------------------------------------------------------------------

_SELECT_ANNOTATION = sa.select(*rows.ANNOTATION_COLUMNS).where(_A.key == named_sql_placeholder("of"))
_UPDATE_STATUS = (
    sa.update(tables.annotation)
    .values({name: named_sql_placeholder(f"new_{name}") for name in ("status", "lease", "submitted", "active", "rest")})
    .where(_A.key == named_sql_placeholder("of"))
)

MissingAnswersCheck = Callable[[Annotation], tuple[str, ...]]
"""Function that returns the answers and other items that an annotation lacks for submission."""


def submit_task(
    store: Store,
    transaction: Transaction,
    task: str,
    facts: TaskInfo,
    change: str,
    active: float,
    missing: MissingAnswersCheck,
) -> int | RejectedChange:
    """Submit a task. Repeating the request changes nothing."""
    row = transaction.fetch_first(_SELECT_CHANGE_CONTEXT, study=store.key, task=task, change=change, kind="", entry="")
    if row is None:
        return RejectedChange("not-found")
    key, status, lease, before, excluded, done, _, digest = row
    if done is not None and digest not in ("", change_digest("finish")):
        return RejectedChange("conflict", say=_REUSED_CHANGE_ID_MESSAGE)
    if done is not None or status == "submitted":
        return 0
    if (declined := _closed_task_rejection(store, transaction, facts, status, lease, excluded)) is not None:
        return declined
    stored = _read_annotation_row(transaction, key)
    entries = [(kind, id, body) for kind, id, _, body in transaction.fetch_all(_SELECT_ENTRIES, annotation=key)]
    spent = _plausible_active_seconds(store, facts, before, active)
    values = {
        "status": "submitted",
        "lease": None,
        "active": spent,
        **_submission_columns(store, facts, stored["rest"]),
    }
    # The check sees the annotation as it will be stored.
    if absent := missing(rows.assemble_annotation(stored | values, entries)):
        return RejectedChange("incomplete", missing=absent)
    _update_annotation_status(transaction, key, **values)
    _record_applied_change(transaction, key, change, 0, change_digest("finish"))
    if facts.phase == "qualification":
        grade_attempt_if_complete(store, transaction, facts.annotator, facts.protocol, facts.round)
    return 0


def _submission_columns(store: Store, facts: TaskInfo, rest: str) -> dict[str, object]:
    """Return the columns with submission time and duration. If the clock was set back, store by how much."""
    value, late = from_json(rest), store.clock() - facts.started
    value["seconds"] = round(seconds_since_task_opened(store, facts), 3)
    if late < 0:
        circumstances = replace(TaskMeta.from_meta(value.get("meta", {})), clock_back=round(-late, 3))
        value["meta"] = circumstances.to_meta()
    return {"submitted": iso_timestamp(max(store.clock(), facts.started)), "rest": rows.dump_json(value)}


def reopen_task(
    store: Store, transaction: Transaction, task: str, facts: TaskInfo, change: str, active: float
) -> int | RejectedChange:
    """Turn a submitted task into a draft again. The annotator still counts among those assigned to the text."""
    row = transaction.fetch_first(_SELECT_CHANGE_CONTEXT, study=store.key, task=task, change=change, kind="", entry="")
    if row is None:
        return RejectedChange("not-found")
    key, status, _, before, excluded, done, _, digest = row
    if done is not None and digest not in ("", change_digest("reopen")):
        return RejectedChange("conflict", say=_REUSED_CHANGE_ID_MESSAGE)
    if excluded:
        return RejectedChange("not-allowed")
    if facts.phase != "work":
        return RejectedChange("not-allowed", say="Submitted exercises cannot be changed.")
    if facts.round < store.head.settings.round:
        return RejectedChange(
            "not-allowed", say="The first pass has ended. Work submitted in it can no longer be changed."
        )
    if done is None and status == "submitted":
        stored = _read_annotation_row(transaction, key)
        if store.head.settings.recruitment.batch:
            submitted = datetime.fromisoformat(stored["submitted"]).timestamp()
            finished = platform_batches_storage.read_finished_batches(store, transaction, facts.annotator)
            if any(submitted <= batch.at for batch in finished):
                return RejectedChange(
                    "not-allowed", say="This text belongs to a finished task and can no longer be changed."
                )
        rest = {name: value for name, value in from_json(stored["rest"]).items() if name != "seconds"}
        spent = _plausible_active_seconds(store, facts, before, active)
        values = {"status": "draft", "lease": _task_lease_expiry(store, facts), "submitted": None, "active": spent}
        _update_annotation_status(transaction, key, rest=rows.dump_json(rest), **values)
        _record_applied_change(transaction, key, change, 0, change_digest("reopen"))
    return 0


def _read_annotation_row(transaction: Transaction, key: int) -> dict[str, Any]:
    return dict(
        zip(
            (column.name for column in rows.ANNOTATION_COLUMNS),
            transaction.fetch_first(_SELECT_ANNOTATION, of=key) or (),
            strict=True,
        )
    )


def _update_annotation_status(transaction: Transaction, key: int, **values: object) -> None:
    transaction.execute(_UPDATE_STATUS, of=key, **{f"new_{name}": value for name, value in values.items()})
