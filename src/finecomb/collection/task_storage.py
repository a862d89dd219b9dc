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
from finecomb.collection.assignment_storage import JOINED, kept_until, still_mine
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.rows import Declined, Kind, Stored, iso
from finecomb.collection.database.tables import given
from finecomb.collection.onboarding_storage import grade_when_complete
from finecomb.collection.task_meta import Circumstances
from finecomb.core.records import Annotation, Mark, Phase

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

_A, _P, _E, _C = tables.annotation.c, tables.annotator.c, tables.entry.c, tables.change.c


# --- a task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facts:
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
    entries: Sequence[Stored]
    """Without deleted ones, in the order they came."""


_TASK = _A.study == given("study"), _A.id == given("task"), _A.number.is_not(None)
_FACTS = sa.select(
    _A.annotator, _A.document, _A.protocol, _A.number, _A.started, _A.phase, _A.round, _A.about, _A.rest
).where(*_TASK)
_STATE = sa.select(_A.key, _A.status, _A.active, _A.lease).where(*_TASK)
_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.version, _E.body)
    .where(_E.annotation == given("annotation"), _E.body.is_not(None))
    .order_by(_E.key)
)


_JUDGED = (
    sa.select(_E.id)
    .select_from(tables.annotation.join(tables.entry, _E.annotation == _A.key))
    .where(*_TASK, _E.kind == "unit")
)


def judged_units(store: Store, transaction: Transaction, task: str) -> frozenset[str]:
    """Ids of the parts of a task that were ever judged, also where that was taken back: what was read was read."""
    return frozenset(id for (id,) in transaction.all(_JUDGED, study=store.key, task=task))


def facts(store: Store, transaction: Transaction, task: str) -> Facts | None:
    """Whose task it is and what it is about, if there is such a task."""
    row = transaction.one(_FACTS, study=store.key, task=task)
    if row is None:
        return None
    annotator, document, protocol, number, started, phase, round, about, rest = row
    circumstances = Circumstances.from_meta(from_json(rest).get("meta", {}))
    return Facts(
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


def task_state(store: Store, transaction: Transaction, task: str) -> TaskState:
    """A task with what was done in it."""
    key, status, active, lease = transaction.one(_STATE, study=store.key, task=task) or ()
    entries = tuple(Stored(*row) for row in transaction.all(_ENTRIES, annotation=key))
    return TaskState(status, active or 0, lease, entries)


_MARKS = sa.select(_E.id, _E.body).where(_E.study == given("study"), _E.kind == "mark", _E.body.is_not(None))


def offered(store: Store, transaction: Transaction, ids: Sequence[str]) -> list[Mark]:
    """Machine marks by their ids, in that order."""
    bodies: dict[str, str] = dict(transaction.all(_MARKS.where(_E.id.in_(ids)), study=store.key))
    return [rows.mark_of(id, bodies[id]) for id in ids if id in bodies]


# --- saving ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one entry, checked against text and protocol."""

    change: str
    """Made by the browser; the same one counts once."""
    kind: Kind
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
        return digest(self.kind, self.id, self.body)


def digest(*parts: str | None) -> str:
    """A short digest of what a change asks for."""
    return hashlib.sha256(rows.dumps(parts).encode()).hexdigest()[:16]


_FOUND = (
    sa.select(_A.key, _A.status, _A.lease, _A.active, _A.excluded + _P.excluded, _C.version, _E.version, _C.digest)
    .select_from(
        JOINED.outerjoin(tables.change, sa.and_(_C.annotation == _A.key, _C.id == given("change"))).outerjoin(
            tables.entry, sa.and_(_E.annotation == _A.key, _E.kind == given("kind"), _E.id == given("entry"))
        )
    )
    .where(*_TASK)
)
_ELSEWHERE = sa.select(_E.annotation).where(_E.study == given("study"), _E.id == given("entry"), _E.kind == "mark")
_STORED = sa.select(_E.kind, _E.id, _E.version, _E.body).where(
    _E.annotation == given("annotation"), _E.kind == given("kind"), _E.id == given("entry")
)
_INSERT = sa.insert(tables.entry).values(
    {name: given(name) for name in ("study", "annotation", "kind", "id", "version", "body")}
)
_UPDATE = (
    sa.update(tables.entry)
    .values(version=given("new"), body=given("body"))
    .where(_E.annotation == given("of"), _E.kind == given("what"), _E.id == given("which"))
)
_REMEMBER = sa.insert(tables.change).values({name: given(name) for name in ("annotation", "id", "version", "digest")})
_TOUCH = sa.update(tables.annotation).values(lease=given("until"), active=given("spent")).where(_A.key == given("of"))


def save(store: Store, transaction: Transaction, task: str, facts: Facts, edit: Edit) -> int | Declined:
    """Keep a change of an entry; returns the entry's new version. A repeated change is answered as the first was."""
    row = transaction.one(_FOUND, study=store.key, task=task, change=edit.change, kind=edit.kind, entry=edit.id)
    if row is None:
        return Declined("not-found")
    if edit.changed is not None and edit.changed != store.head.changed:
        return Declined("overtaken")
    key, status, lease, active, excluded, done, version, before = row
    if done is not None:
        return int(done) if before in ("", edit.digest) else _reused(transaction, key, edit)
    if (declined := _declined(store, transaction, facts, status, lease, excluded)) is not None:
        return declined
    if (version or 0) != edit.base:
        row = transaction.one(_STORED, annotation=key, kind=edit.kind, entry=edit.id)
        stored = Stored(*row) if row else None
        stale = transaction.one(_OF_CHANGE, annotation=key, change=FORGOTTEN) is not None
        if stale:
            return Declined("conflict", stored, say=_STALE)
        if edit.base or edit.kind == "mark" or stored is None or stored.body is not None:
            return Declined("conflict", stored)  # else it was deleted, and is made anew by who never saw it
    if version is None:
        if edit.kind == "mark" and transaction.one(_ELSEWHERE, study=store.key, entry=edit.id):
            return Declined("refused")
        if declined := _too_much(transaction, key, edit):
            return declined
        values = {"study": store.key, "annotation": key, "kind": edit.kind, "id": edit.id}
        transaction.run(_INSERT, version=1, body=edit.body, **values)
    else:
        transaction.run(_UPDATE, of=key, what=edit.kind, which=edit.id, new=version + 1, body=edit.body)
    now = (version or 0) + 1
    _remember(transaction, key, edit.change, now, edit.digest)
    transaction.run(_TOUCH, of=key, until=_until(store, facts), spent=_spent(store, facts, active, edit.active))
    return now


MOST_ENTRIES, MOST_ALIKE, MOST_CHARACTERS = 2_000, 10, 2_000_000
"""What one task may hold: entries, marks that are the same, and characters of all together."""
_HELD = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(sa.func.length(_E.body)), 0),
    sa.func.count(sa.case((_E.body == given("body"), 1))),
).where(_E.annotation == given("annotation"))


def _too_much(transaction: Transaction, key: int, edit: Edit) -> Declined | None:
    """Why a task takes no more entries, which nobody meets who reads and marks."""
    entries, characters, alike = transaction.one(_HELD, annotation=key, body=edit.body) or (0, 0, 0)
    if entries >= MOST_ENTRIES or characters > MOST_CHARACTERS:
        return Declined("refused", say="This was not accepted: there is more in this text than one person can mark.")
    if edit.kind == "mark" and alike >= MOST_ALIKE:
        return Declined("refused", say=f"This was not accepted: the same mark is there {alike} times already.")
    return None


def _declined(
    store: Store, transaction: Transaction, facts: Facts, status: str, lease: float | None, excluded: int
) -> Declined | None:
    """Why nothing can be changed in a task at the moment."""
    if store.head.state == "paused" or store.head.state == "closed":  # perhaps by another process, a moment ago
        return Declined(store.head.state)
    if excluded:
        return Declined("not-allowed")
    if status != "draft":
        return Declined("finished")
    mine = (facts.annotator, facts.document, facts.about, facts.protocol)
    if facts.has_lease and not still_mine(store, transaction, *mine, lease):
        return Declined("lease-over")
    return None


def _until(store: Store, facts: Facts) -> float | None:
    return kept_until(store) if facts.has_lease else None


def _remember(transaction: Transaction, key: int, change: str, version: int, asked: str) -> None:
    transaction.run(_REMEMBER, annotation=key, id=change, version=version, digest=asked)


def _reused(transaction: Transaction, key: int, edit: Edit) -> Declined:
    """A change that comes under the id of another one: nothing of it is kept."""
    row = transaction.one(_STORED, annotation=key, kind=edit.kind, entry=edit.id)
    return Declined("conflict", Stored(*row) if row else None, say=_REUSED)


_REUSED = "This was sent under the name of an earlier change, which asked for something else. Reload, and do it again."
_STALE = "This was changed more than a month ago, and may be older than what is there. Reload, and do it again."
FORGOTTEN = ""
"""The id of the row that says that earlier changes of a task are no longer remembered."""
REMEMBERED = 30 * 24 * 3600.0
"""Seconds after a text was handed in for which its changes are remembered."""
_OF_CHANGE = sa.select(_C.version).where(_C.annotation == given("annotation"), _C.id == given("change"))
_OLD = sa.select(_A.key).where(
    _A.study == given("study"),
    _A.status == "submitted",
    _A.submitted < given("before"),
    sa.exists().where(_C.annotation == _A.key, _C.version > 0),
)


def forget_changes(store: Store, transaction: Transaction) -> int:
    """Forget the changes of tasks that were handed in a month ago; one that comes even later is never applied.

    That a text was handed in or opened again (version 0) stays known, since nothing else tells an old one from a new.
    """
    keys = [key for (key,) in transaction.all(_OLD, study=store.key, before=iso(store.clock() - REMEMBERED))]
    for key in keys:
        transaction.run(sa.delete(tables.change).where(_C.annotation == key, _C.version > 0))
        if transaction.one(_OF_CHANGE, annotation=key, change=FORGOTTEN) is None:
            _remember(transaction, key, FORGOTTEN, 0, "")
    return len(keys)


def _spent(store: Store, facts: Facts, before: float | None, reported: float) -> float:
    """Active seconds: what the browser says, but never less than before and never more than wall time."""
    return max(before or 0.0, min(reported, wall_seconds(store, facts)))


def wall_seconds(store: Store, facts: Facts) -> float:
    """How long ago a task was opened; 0 where the clock was set back since."""
    return max(0.0, store.clock() - facts.started)


# --- handing in --------------------------------------------------------------------------------------------------

_WHOLE = sa.select(*rows.FIELDS).where(_A.key == given("of"))
_STATUS = (
    sa.update(tables.annotation)
    .values({name: given(f"new_{name}") for name in ("status", "lease", "submitted", "active", "rest")})
    .where(_A.key == given("of"))
)

Missing = Callable[[Annotation], tuple[str, ...]]
"""What is still missing in an annotation before it can be handed in."""


def finish(
    store: Store, transaction: Transaction, task: str, facts: Facts, change: str, active: float, missing: Missing
) -> int | Declined:
    """Hand a task in; doing so twice is doing so once."""
    row = transaction.one(_FOUND, study=store.key, task=task, change=change, kind="", entry="")
    if row is None:
        return Declined("not-found")
    key, status, lease, before, excluded, done, _, asked = row
    if done is not None and asked not in ("", digest("finish")):
        return Declined("conflict", say=_REUSED)
    if done is not None or status == "submitted":
        return 0
    if (declined := _declined(store, transaction, facts, status, lease, excluded)) is not None:
        return declined
    stored = _row(transaction, key)
    entries = [(kind, id, body) for kind, id, _, body in transaction.all(_ENTRIES, annotation=key)]
    spent = _spent(store, facts, before, active)
    values = {"status": "submitted", "lease": None, "active": spent, **_handed_in(store, facts, stored["rest"])}
    if absent := missing(rows.assemble(stored | values, entries)):  # checked as it will be read
        return Declined("incomplete", missing=absent)
    _set(transaction, key, **values)
    _remember(transaction, key, change, 0, digest("finish"))
    if facts.phase == "qualification":
        grade_when_complete(store, transaction, facts.annotator, facts.protocol, facts.round)
    return 0


def _handed_in(store: Store, facts: Facts, rest: str) -> dict[str, object]:
    """When a task was handed in and how long it took; noted where the clock stood before the task was opened."""
    value, late = from_json(rest), store.clock() - facts.started
    value["seconds"] = round(wall_seconds(store, facts), 3)
    if late < 0:
        circumstances = replace(Circumstances.from_meta(value.get("meta", {})), clock_back=round(-late, 3))
        value["meta"] = circumstances.to_meta()
    return {"submitted": iso(max(store.clock(), facts.started)), "rest": rows.dumps(value)}


def reopen(
    store: Store, transaction: Transaction, task: str, facts: Facts, change: str, active: float
) -> int | Declined:
    """Make a handed-in task a draft again; its place stays taken."""
    row = transaction.one(_FOUND, study=store.key, task=task, change=change, kind="", entry="")
    if row is None:
        return Declined("not-found")
    key, status, _, before, excluded, done, _, asked = row
    if done is not None and asked not in ("", digest("reopen")):
        return Declined("conflict", say=_REUSED)
    if excluded:
        return Declined("not-allowed")
    if facts.phase != "work":
        return Declined("not-allowed", say="An exercise that was handed in stays as it is.")
    if facts.round < store.head.settings.round:
        return Declined("not-allowed", say="The first pass is over. What you handed in in it stays as it is.")
    if done is None and status == "submitted" and _is_sent_in(store, transaction, key, facts):
        return Declined("not-allowed", say="This text belongs to a task that is finished, and stays as it is.")
    if done is None and status == "submitted":
        rest = {name: value for name, value in from_json(_row(transaction, key)["rest"]).items() if name != "seconds"}
        spent = _spent(store, facts, before, active)
        values = {"status": "draft", "lease": _until(store, facts), "submitted": None, "active": spent}
        _set(transaction, key, rest=rows.dumps(rest), **values)
        _remember(transaction, key, change, 0, digest("reopen"))
    return 0


def _is_sent_in(store: Store, transaction: Transaction, key: int, facts: Facts) -> bool:
    """Whether a text belongs to a task that its annotator has finished on the platform."""
    if not store.head.settings.recruitment.batch:
        return False
    at = datetime.fromisoformat(_row(transaction, key)["submitted"]).timestamp()
    return platform_batches_storage.is_sent_in(store, transaction, facts.annotator, at)


def _row(transaction: Transaction, key: int) -> dict[str, Any]:
    return dict(zip((column.name for column in rows.FIELDS), transaction.one(_WHOLE, of=key) or (), strict=True))


def _set(transaction: Transaction, key: int, **values: object) -> None:
    transaction.run(_STATUS, of=key, **{f"new_{name}": value for name, value in values.items()})
