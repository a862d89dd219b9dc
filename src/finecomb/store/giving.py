"""Giving texts out: how far an annotator is, and what comes next. A job for the writer."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from finecomb.store import assign, rows, tables
from finecomb.store.assign import Counts
from finecomb.store.database import Transaction
from finecomb.store.tables import given

if TYPE_CHECKING:
    from finecomb.store.store import Store


@dataclass(frozen=True, slots=True)
class Given:
    """A task of an annotator, as their list shows it."""

    id: str
    document: str
    number: int
    status: Literal["draft", "submitted"]
    lease: float | None
    excluded: bool
    """Whether it was set aside."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an annotator is, and what could come next."""

    given: Sequence[Given]
    """In order."""
    mine: frozenset[str]
    """Documents that this annotator has had, here or elsewhere."""
    free: Sequence[str]
    """Documents that could be given now."""
    ahead: int
    """How many more texts this annotator can expect."""
    why: Literal["", "all-done", "none-now"]
    """Why there are none."""
    counts: Counts


# --- what there is, and who has what -----------------------------------------------------------------------------

_A, _P = tables.annotation.c, tables.annotator.c
_IN_FORCE = (
    _A.study == given("study"),
    _A.protocol == given("protocol"),
    _A.phase == "work",
    _A.round == 0,
    _A.about == "",
)
_TAKEN = sa.and_(
    *_IN_FORCE,
    _A.excluded == 0,
    _P.kind == "human",
    _P.excluded == 0,
    sa.or_(_A.status == "submitted", sa.and_(_A.status == "draft", _A.lease > given("now"))),
)
JOINED = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_COUNTS = (
    sa.select(_A.document, _A.status, sa.func.count())
    .select_from(JOINED)
    .where(_TAKEN)
    .group_by(_A.document, _A.status)
)
_OTHERS = (
    sa.select(sa.func.count())
    .select_from(JOINED)
    .where(_TAKEN, _A.document == given("document"), _A.annotator != given("annotator"))
)
_OF_CONDITION = sa.select(sa.func.count()).select_from(JOINED).where(_TAKEN, _P.condition == given("condition"))
_MINE = (
    sa.select(_A.id, _A.document, _A.number, _A.status, _A.lease, _A.excluded)
    .where(*_IN_FORCE, _A.annotator == given("annotator"))
    .order_by(_A.number)
)
_WHO = sa.select(_P.condition, _P.excluded).where(_P.study == given("study"), _P.id == given("annotator"))


def standing(store: Store, transaction: Transaction, annotator: str) -> Standing:
    """How far an annotator is; reads only."""
    head, plan = store.head, store.plan()
    found = transaction.all(_MINE, study=store.key, protocol=head.protocol.id, annotator=annotator)
    tasks = tuple(Given(*row) for row in found if row[2] is not None)
    mine = frozenset(row[1] for row in found)
    counts = _counts(store, transaction)
    arm, excluded = transaction.one(_WHO, study=store.key, annotator=annotator) or ("", 1)
    if excluded:
        return Standing(tasks, mine, (), 0, "none-now", counts)
    most = _most_left(store, transaction, arm, sum(task.document not in plan.checks for task in tasks))
    free = _free(store, counts, mine) if most else []
    ahead = min(len(free), most)
    ahead += sum(check not in mine for check in plan.checks) if tasks or ahead else 0
    return Standing(tasks, mine, free, ahead, "" if ahead else _why(store, tasks, mine, counts, most), counts)


def _why(
    store: Store, tasks: Sequence[Given], mine: frozenset[str], counts: Counts, most: int
) -> Literal["all-done", "none-now"]:
    """Whether nothing is left for good, or somebody may yet give a text back."""
    over = mine - {task.document for task in tasks if task.status == "draft"}
    later = most and _free(store, Counts(counts.submitted, {}), over)
    return "none-now" if later or not tasks else "all-done"


def condition(store: Store, transaction: Transaction, annotator: str) -> str:
    """Which arm of the experiment an annotator is in."""
    found, _ = transaction.one(_WHO, study=store.key, annotator=annotator) or ("", 0)
    return str(found)


def _counts(store: Store, transaction: Transaction) -> Counts:
    found = transaction.all(_COUNTS, study=store.key, protocol=store.head.protocol.id, now=store.clock())
    return Counts(
        {document: count for document, status, count in found if status == "submitted"},
        {document: count for document, status, count in found if status == "draft"},
    )


def _free(store: Store, counts: Counts, mine: frozenset[str]) -> list[str]:
    head, plan = store.head, store.plan()
    pool = plan.documents[: head.settings.pilot] if head.state == "pilot" else plan.documents
    return assign.free(plan, counts, head.annotators, mine, head.settings.quotas, pool)


def _most_left(store: Store, transaction: Transaction, arm: str, had: int) -> int:
    """How many more texts somebody in that arm who had so many may get, attention checks aside."""
    head = store.head
    texts = head.protocol.work.texts
    left = len(store.plan().documents) if texts is None else max(0, texts - had)
    if arm in head.settings.quotas:
        values = {"study": store.key, "protocol": head.protocol.id, "now": store.clock()}
        (taken,) = transaction.one(_OF_CONDITION, condition=arm, **values) or (0,)
        left = min(left, max(0, head.settings.quotas[arm] - taken))
    return left


# --- the next text -----------------------------------------------------------------------------------------------

_RENEW = (
    sa.update(tables.annotation).values(lease=given("lease")).where(_A.study == given("of"), _A.id == given("task"))
)
_GIVE = sa.insert(tables.annotation).values(
    {
        column.name: given(column.name)
        for column in tables.annotation.columns
        if column.name not in ("key", "submitted", "active")
    }
)
_MACHINE = (
    sa.select(tables.entry.c.id)
    .select_from(tables.entry.join(tables.annotation, tables.entry.c.annotation == _A.key))
    .where(
        *_IN_FORCE,
        _A.annotator == given("annotator"),
        _A.document == given("document"),
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


def next_task(store: Store, transaction: Transaction, annotator: str) -> NextTask:
    """An open draft, else a new text. Being in the writer, it never gives a text to more people than it should."""
    if store.head.state == "paused" or store.head.state == "closed":
        return NextTask(why=store.head.state)
    now = standing(store, transaction, annotator)
    for task in now.given:
        if _goes_on(store, transaction, annotator, task):
            transaction.run(_RENEW, of=store.key, task=task.id, lease=kept_until(store))
            return NextTask(task.id)
    document = _pick(store, now, annotator)
    return NextTask(_give(store, transaction, now, annotator, document)) if document else NextTask(why=now.why)


def _goes_on(store: Store, transaction: Transaction, annotator: str, task: Given) -> bool:
    """Whether a task is a draft that its annotator can work on."""
    _, stopped = transaction.one(_WHO, study=store.key, annotator=annotator) or ("", 1)
    if stopped or task.excluded or task.status != "draft":
        return False
    return still_mine(store, transaction, annotator, task.document, store.head.protocol.id, task.lease)


def kept_until(store: Store) -> float:
    """Until when a text is kept for somebody who does something now."""
    return store.clock() + 60 * store.head.settings.lease


def still_mine(
    store: Store, transaction: Transaction, annotator: str, document: str, protocol: str, lease: float | None
) -> bool:
    """Whether a place is kept for its annotator, or still free although it is not."""
    if (lease is not None and lease > store.clock()) or document in store.plan().checks:
        return True
    values = {"study": store.key, "protocol": protocol, "now": store.clock()}
    (others,) = transaction.one(_OTHERS, document=document, annotator=annotator, **values) or (0,)
    return bool(others < store.head.annotators)


def _pick(store: Store, now: Standing, annotator: str) -> str | None:
    plan, seed = store.plan(), store.head.settings.seed
    order = [task.document for task in now.given]
    expected = store.head.protocol.work.texts or len(plan.documents)
    if now.ahead:
        check = assign.check_due(plan, order, seed, annotator, expected, last=not now.free)
        if check:
            return check
    return assign.choose(now.free, plan, now.counts, order, seed, annotator)


def _give(store: Store, transaction: Transaction, now: Standing, annotator: str, document: str) -> str:
    id, number = secrets.token_hex(12), len(now.given) + 1
    transaction.run(
        _GIVE,
        study=store.key,
        id=id,
        document=document,
        annotator=annotator,
        protocol=store.head.protocol.id,
        round=0,
        about="",
        phase="work",
        status="draft",
        excluded=0,
        number=number,
        lease=kept_until(store),
        started=iso(store.clock()),
        rest=rows.dumps({"meta": {"order": number} | _circumstances(store, transaction, document)}),
    )
    return id


def iso(seconds: float) -> str:
    """A time of the server's clock as records have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _circumstances(store: Store, transaction: Transaction, document: str) -> dict[str, object]:
    """What statistics want to know about how a text was given out."""
    head = store.head
    found: dict[str, object] = {"pilot": True} if head.state == "pilot" else {}
    if document in store.plan().checks:
        return found | {"attention_check": True}
    if head.settings.offer is None:
        return found
    if assign.is_blind(head.settings.seed, document, head.settings.offer.blind):
        return found | {"blind": True}
    who = {"study": store.key, "protocol": head.protocol.id, "annotator": head.settings.offer.annotator}
    return found | {"offered": [id for (id,) in transaction.all(_MACHINE, document=document, **who)]}
