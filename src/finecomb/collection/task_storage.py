"""A task and what an annotator does in it, as jobs for the writer: saving, handing in, opening again."""

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
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.onboarding_storage import grade_attempt_if_complete
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.records import Annotation, Mark, Phase

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E, _C = tables.annotation.c, tables.annotator.c, tables.entry.c, tables.change.c


# --- a task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What never changes about a task."""

    annotator: str
    document: str
    protocol: str
    number: int
    started: float
    phase: Phase
    round: int
    about: str = ""
    """Id of the annotation or mark that is judged; empty where it is the text."""
    offered: tuple[str, ...] = ()
    """Ids of the marks that were offered."""
    first: str = ""
    """Which of two texts is shown first."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """In a second pass: the mark of the first that each copy was made from."""

    @property
    def has_lease(self) -> bool:
        """Whether its place goes to somebody else in the end; exercises and second passes are everybody's own."""
        return self.phase == "work" and self.round == 0


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task as it is now."""

    status: Literal["draft", "submitted"]
    active: float
    lease: float | None
    entries: Sequence[StoredEntry]
    """Without deleted ones, in the order they came."""


_TASK_CONDITIONS = _A.study == bind_parameter("study"), _A.id == bind_parameter("task"), _A.number.is_not(None)
_SELECT_TASK_INFO = sa.select(
    _A.annotator, _A.document, _A.protocol, _A.number, _A.started, _A.phase, _A.round, _A.about, _A.rest
).where(*_TASK_CONDITIONS)
_SELECT_TASK_STATE = sa.select(_A.key, _A.status, _A.active, _A.lease).where(*_TASK_CONDITIONS)
_SELECT_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.version, _E.body)
    .where(_E.annotation == bind_parameter("annotation"), _E.body.is_not(None))
    .order_by(_E.key)
)


_SELECT_JUDGED_UNITS = (
    sa.select(_E.id)
    .select_from(tables.annotation.join(tables.entry, _E.annotation == _A.key))
    .where(*_TASK_CONDITIONS, _E.kind == "unit")
)


def ever_judged_unit_ids(store: Store, transaction: Transaction, task: str) -> frozenset[str]:
    """Ids of the parts of a task that were ever judged, also where that was taken back: what was read was read."""
    return frozenset(id for (id,) in transaction.all(_SELECT_JUDGED_UNITS, study=store.key, task=task))


def read_task_info(store: Store, transaction: Transaction, task: str) -> TaskInfo | None:
    """Whose task it is and what it is about, if there is such a task."""
    row = transaction.one(_SELECT_TASK_INFO, study=store.key, task=task)
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
    """A task with what was done in it."""
    key, status, active, lease = transaction.one(_SELECT_TASK_STATE, study=store.key, task=task) or ()
    entries = tuple(StoredEntry(*row) for row in transaction.all(_SELECT_ENTRIES, annotation=key))
    return TaskState(status, active or 0, lease, entries)


_SELECT_MARKS = sa.select(_E.id, _E.body).where(
    _E.study == bind_parameter("study"), _E.kind == "mark", _E.body.is_not(None)
)


def read_offered_marks(store: Store, transaction: Transaction, ids: Sequence[str]) -> list[Mark]:
    """Machine marks by their ids, in that order."""
    bodies: dict[str, str] = dict(transaction.all(_SELECT_MARKS.where(_E.id.in_(ids)), study=store.key))
    return [rows.mark_from_body(id, bodies[id]) for id in ids if id in bodies]


# --- saving ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntryEdit:
    """A change of one entry, checked against text and protocol."""

    change: str
    """Made by the browser; the same one counts once."""
    kind: EntryKind
    id: str
    base: int
    """The version that was changed; 0 for a new entry."""
    body: str | None
    """JSON; None deletes."""
    active: float
    """Seconds at the keyboard so far, as the browser says."""
    changed: int | None = None
    """The count of the study's changes when whoever sent it was found to be signed in."""

    @property
    def digest(self) -> str:
        """Tells this change from another that comes under the same id."""
        return change_digest(self.kind, self.id, self.body)


def change_digest(*parts: str | None) -> str:
    """A short digest of what a change asks for."""
    return hashlib.sha256(rows.dump_json(parts).encode()).hexdigest()[:16]


_SELECT_CHANGE_CONTEXT = (
    sa.select(_A.key, _A.status, _A.lease, _A.active, _A.excluded + _P.excluded, _C.version, _E.version, _C.digest)
    .select_from(
        ANNOTATOR_JOIN.outerjoin(
            tables.change, sa.and_(_C.annotation == _A.key, _C.id == bind_parameter("change"))
        ).outerjoin(
            tables.entry,
            sa.and_(_E.annotation == _A.key, _E.kind == bind_parameter("kind"), _E.id == bind_parameter("entry")),
        )
    )
    .where(*_TASK_CONDITIONS)
)
_SELECT_MARK_OWNER = sa.select(_E.annotation).where(
    _E.study == bind_parameter("study"), _E.id == bind_parameter("entry"), _E.kind == "mark"
)
_SELECT_ENTRY = sa.select(_E.kind, _E.id, _E.version, _E.body).where(
    _E.annotation == bind_parameter("annotation"), _E.kind == bind_parameter("kind"), _E.id == bind_parameter("entry")
)
_INSERT_ENTRY = sa.insert(tables.entry).values(
    {name: bind_parameter(name) for name in ("study", "annotation", "kind", "id", "version", "body")}
)
_UPDATE_ENTRY = (
    sa.update(tables.entry)
    .values(version=bind_parameter("new"), body=bind_parameter("body"))
    .where(_E.annotation == bind_parameter("of"), _E.kind == bind_parameter("what"), _E.id == bind_parameter("which"))
)
_INSERT_CHANGE = sa.insert(tables.change).values(
    {name: bind_parameter(name) for name in ("annotation", "id", "version", "digest")}
)
_UPDATE_ACTIVITY = (
    sa.update(tables.annotation)
    .values(lease=bind_parameter("until"), active=bind_parameter("spent"))
    .where(_A.key == bind_parameter("of"))
)


def save_edit(
    store: Store, transaction: Transaction, task: str, facts: TaskInfo, edit: EntryEdit
) -> int | RejectedChange:
    """Keep a change of an entry; returns the entry's new version. A repeated change is answered as the first was."""
    row = transaction.one(
        _SELECT_CHANGE_CONTEXT, study=store.key, task=task, change=edit.change, kind=edit.kind, entry=edit.id
    )
    if row is None:
        return RejectedChange("not-found")
    if edit.changed is not None and edit.changed != store.head.changed:
        return RejectedChange("overtaken")
    key, status, lease, active, excluded, done, version, before = row
    if done is not None:
        return int(done) if before in ("", edit.digest) else _reused_change_rejection(transaction, key, edit)
    if (declined := _closed_task_rejection(store, transaction, facts, status, lease, excluded)) is not None:
        return declined
    if (version or 0) != edit.base:
        row = transaction.one(_SELECT_ENTRY, annotation=key, kind=edit.kind, entry=edit.id)
        stored = StoredEntry(*row) if row else None
        stale = transaction.one(_SELECT_CHANGE_VERSION, annotation=key, change=FORGOTTEN_CHANGE_ID) is not None
        if stale:
            return RejectedChange("conflict", stored, say=_STALE_MESSAGE)
        if edit.base or edit.kind == "mark" or stored is None or stored.body is not None:
            return RejectedChange("conflict", stored)  # else it was deleted, and is made anew by who never saw it
    if version is None:
        if edit.kind == "mark" and transaction.one(_SELECT_MARK_OWNER, study=store.key, entry=edit.id):
            return RejectedChange("refused")
        if declined := _task_size_rejection(transaction, key, edit):
            return declined
        values = {"study": store.key, "annotation": key, "kind": edit.kind, "id": edit.id}
        transaction.run(_INSERT_ENTRY, version=1, body=edit.body, **values)
    else:
        transaction.run(_UPDATE_ENTRY, of=key, what=edit.kind, which=edit.id, new=version + 1, body=edit.body)
    now = (version or 0) + 1
    _record_applied_change(transaction, key, edit.change, now, edit.digest)
    transaction.run(
        _UPDATE_ACTIVITY,
        of=key,
        until=_task_lease_expiry(store, facts),
        spent=_plausible_active_seconds(store, facts, active, edit.active),
    )
    return now


MAX_ENTRIES, MAX_IDENTICAL_MARKS, MAX_CHARACTERS = 2_000, 10, 2_000_000
"""What one task may hold: entries, marks that are the same, and characters of all together."""
_SELECT_TASK_SIZE = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(sa.func.length(_E.body)), 0),
    sa.func.count(sa.case((_E.body == bind_parameter("body"), 1))),
).where(_E.annotation == bind_parameter("annotation"))


def _task_size_rejection(transaction: Transaction, key: int, edit: EntryEdit) -> RejectedChange | None:
    """Why a task takes no more entries, which nobody meets who reads and marks."""
    entries, characters, alike = transaction.one(_SELECT_TASK_SIZE, annotation=key, body=edit.body) or (0, 0, 0)
    if entries >= MAX_ENTRIES or characters > MAX_CHARACTERS:
        return RejectedChange(
            "refused", say="This was not accepted: there is more in this text than one person can mark."
        )
    if edit.kind == "mark" and alike >= MAX_IDENTICAL_MARKS:
        return RejectedChange("refused", say=f"This was not accepted: the same mark is there {alike} times already.")
    return None


def _closed_task_rejection(
    store: Store, transaction: Transaction, facts: TaskInfo, status: str, lease: float | None, excluded: int
) -> RejectedChange | None:
    """Why nothing can be changed in a task at the moment."""
    if store.head.state == "paused" or store.head.state == "closed":  # perhaps by another process, a moment ago
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


def _record_applied_change(transaction: Transaction, key: int, change: str, version: int, asked: str) -> None:
    transaction.run(_INSERT_CHANGE, annotation=key, id=change, version=version, digest=asked)


def _reused_change_rejection(transaction: Transaction, key: int, edit: EntryEdit) -> RejectedChange:
    """A change that comes under the id of another one: nothing of it is kept."""
    row = transaction.one(_SELECT_ENTRY, annotation=key, kind=edit.kind, entry=edit.id)
    return RejectedChange("conflict", StoredEntry(*row) if row else None, say=_REUSED_MESSAGE)


_REUSED_MESSAGE = (
    "This was sent under the name of an earlier change, which asked for something else. Reload, and do it again."
)
_STALE_MESSAGE = "This was changed more than a month ago, and may be older than what is there. Reload, and do it again."
FORGOTTEN_CHANGE_ID = ""
"""The id of the row that says that earlier changes of a task are no longer remembered."""
CHANGE_RETENTION_SECONDS = 30 * 24 * 3600.0
"""Seconds after a text was handed in for which its changes are remembered."""
_SELECT_CHANGE_VERSION = sa.select(_C.version).where(
    _C.annotation == bind_parameter("annotation"), _C.id == bind_parameter("change")
)
_SELECT_OLD_TASKS = sa.select(_A.key).where(
    _A.study == bind_parameter("study"),
    _A.status == "submitted",
    _A.submitted < bind_parameter("before"),
    sa.exists().where(_C.annotation == _A.key, _C.version > 0),
)


def forget_old_changes(store: Store, transaction: Transaction) -> int:
    """Forget the changes of tasks that were handed in a month ago; one that comes even later is never applied.

    That a text was handed in or opened again (version 0) stays known, since nothing else tells an old one from a new.
    """
    keys = [
        key
        for (key,) in transaction.all(
            _SELECT_OLD_TASKS, study=store.key, before=iso_timestamp(store.clock() - CHANGE_RETENTION_SECONDS)
        )
    ]
    for key in keys:
        transaction.run(sa.delete(tables.change).where(_C.annotation == key, _C.version > 0))
        if transaction.one(_SELECT_CHANGE_VERSION, annotation=key, change=FORGOTTEN_CHANGE_ID) is None:
            _record_applied_change(transaction, key, FORGOTTEN_CHANGE_ID, 0, "")
    return len(keys)


def _plausible_active_seconds(store: Store, facts: TaskInfo, before: float | None, reported: float) -> float:
    """Active seconds: what the browser says, but never less than before and never more than wall time."""
    return max(before or 0.0, min(reported, seconds_since_task_opened(store, facts)))


def seconds_since_task_opened(store: Store, facts: TaskInfo) -> float:
    """How long ago a task was opened; 0 where the clock was set back since."""
    return max(0.0, store.clock() - facts.started)


# --- handing in --------------------------------------------------------------------------------------------------

_SELECT_ANNOTATION = sa.select(*rows.ANNOTATION_COLUMNS).where(_A.key == bind_parameter("of"))
_UPDATE_STATUS = (
    sa.update(tables.annotation)
    .values({name: bind_parameter(f"new_{name}") for name in ("status", "lease", "submitted", "active", "rest")})
    .where(_A.key == bind_parameter("of"))
)

MissingAnswersCheck = Callable[[Annotation], tuple[str, ...]]
"""What is still missing in an annotation before it can be handed in."""


def submit_task(
    store: Store,
    transaction: Transaction,
    task: str,
    facts: TaskInfo,
    change: str,
    active: float,
    missing: MissingAnswersCheck,
) -> int | RejectedChange:
    """Hand a task in; doing so twice is doing so once."""
    row = transaction.one(_SELECT_CHANGE_CONTEXT, study=store.key, task=task, change=change, kind="", entry="")
    if row is None:
        return RejectedChange("not-found")
    key, status, lease, before, excluded, done, _, asked = row
    if done is not None and asked not in ("", change_digest("finish")):
        return RejectedChange("conflict", say=_REUSED_MESSAGE)
    if done is not None or status == "submitted":
        return 0
    if (declined := _closed_task_rejection(store, transaction, facts, status, lease, excluded)) is not None:
        return declined
    stored = _read_annotation_row(transaction, key)
    entries = [(kind, id, body) for kind, id, _, body in transaction.all(_SELECT_ENTRIES, annotation=key)]
    spent = _plausible_active_seconds(store, facts, before, active)
    values = {
        "status": "submitted",
        "lease": None,
        "active": spent,
        **_submission_columns(store, facts, stored["rest"]),
    }
    if absent := missing(rows.assemble_annotation(stored | values, entries)):  # checked as it will be read
        return RejectedChange("incomplete", missing=absent)
    _update_annotation_status(transaction, key, **values)
    _record_applied_change(transaction, key, change, 0, change_digest("finish"))
    if facts.phase == "qualification":
        grade_attempt_if_complete(store, transaction, facts.annotator, facts.protocol, facts.round)
    return 0


def _submission_columns(store: Store, facts: TaskInfo, rest: str) -> dict[str, object]:
    """When a task was handed in and how long it took; noted where the clock stood before the task was opened."""
    value, late = from_json(rest), store.clock() - facts.started
    value["seconds"] = round(seconds_since_task_opened(store, facts), 3)
    if late < 0:
        circumstances = replace(TaskMeta.from_meta(value.get("meta", {})), clock_back=round(-late, 3))
        value["meta"] = circumstances.to_meta()
    return {"submitted": iso_timestamp(max(store.clock(), facts.started)), "rest": rows.dump_json(value)}


def reopen_task(
    store: Store, transaction: Transaction, task: str, facts: TaskInfo, change: str, active: float
) -> int | RejectedChange:
    """Make a handed-in task a draft again; its place stays taken."""
    row = transaction.one(_SELECT_CHANGE_CONTEXT, study=store.key, task=task, change=change, kind="", entry="")
    if row is None:
        return RejectedChange("not-found")
    key, status, _, before, excluded, done, _, asked = row
    if done is not None and asked not in ("", change_digest("reopen")):
        return RejectedChange("conflict", say=_REUSED_MESSAGE)
    if excluded:
        return RejectedChange("not-allowed")
    if facts.phase != "work":
        return RejectedChange("not-allowed", say="An exercise that was handed in stays as it is.")
    if facts.round < store.head.settings.round:
        return RejectedChange("not-allowed", say="The first pass is over. What you handed in in it stays as it is.")
    if done is None and status == "submitted" and _is_in_finished_batch(store, transaction, key, facts):
        return RejectedChange("not-allowed", say="This text belongs to a task that is finished, and stays as it is.")
    if done is None and status == "submitted":
        rest = {
            name: value
            for name, value in from_json(_read_annotation_row(transaction, key)["rest"]).items()
            if name != "seconds"
        }
        spent = _plausible_active_seconds(store, facts, before, active)
        values = {"status": "draft", "lease": _task_lease_expiry(store, facts), "submitted": None, "active": spent}
        _update_annotation_status(transaction, key, rest=rows.dump_json(rest), **values)
        _record_applied_change(transaction, key, change, 0, change_digest("reopen"))
    return 0


def _is_in_finished_batch(store: Store, transaction: Transaction, key: int, facts: TaskInfo) -> bool:
    """Whether a text belongs to a task that its annotator has finished on the platform."""
    if not store.head.settings.recruitment.batch:
        return False
    at = datetime.fromisoformat(_read_annotation_row(transaction, key)["submitted"]).timestamp()
    return platform_batches_storage.is_in_finished_batch(store, transaction, facts.annotator, at)


def _read_annotation_row(transaction: Transaction, key: int) -> dict[str, Any]:
    return dict(
        zip(
            (column.name for column in rows.ANNOTATION_COLUMNS),
            transaction.one(_SELECT_ANNOTATION, of=key) or (),
            strict=True,
        )
    )


def _update_annotation_status(transaction: Transaction, key: int, **values: object) -> None:
    transaction.run(_UPDATE_STATUS, of=key, **{f"new_{name}": value for name, value in values.items()})
