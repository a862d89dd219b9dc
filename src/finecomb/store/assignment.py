"""Giving texts out: how far an annotator is, and what comes next. A job for the writer."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.people import assignment_rules
from finecomb.people.assignment_rules import Counts, Plan, Setting
from finecomb.store import judged_work, rows, second_pass, tables
from finecomb.store.database import Transaction
from finecomb.store.tables import given

if TYPE_CHECKING:
    from finecomb.store.store import Store


@dataclass(frozen=True, slots=True)
class Given:
    """A task of an annotator, as their list shows it."""

    id: str
    document: str
    about: str
    """Id of the annotation or mark that is judged; empty where it is the text."""
    number: int
    status: Literal["draft", "submitted"]
    lease: float | None
    excluded: bool
    """Whether it was set aside."""

    @property
    def item(self) -> str:
        """What it is in the plan."""
        return self.about or self.document


@dataclass(frozen=True, slots=True)
class AssignmentState:
    """How far an annotator is, and what could come next."""

    given: Sequence[Given]
    """In order."""
    mine: frozenset[str]
    """What this annotator has had, here or elsewhere."""
    free: Sequence[str]
    """What could be given now."""
    ahead: int
    """How many more texts this annotator can expect."""
    why: Literal["", "all-done", "none-now"]
    """Why there are none."""
    counts: Counts
    plan: Plan
    setting: Setting | None = None
    """Which texts this annotator keeps to."""
    later: bool = True
    """Whether a text may yet come, since somebody may give one back."""


# --- what there is, and who has what -----------------------------------------------------------------------------

_A, _P = tables.annotation.c, tables.annotator.c
_IN_FORCE = (_A.study == given("study"), _A.protocol == given("protocol"), _A.phase == "work", _A.round == 0)
_TAKEN = sa.and_(
    *_IN_FORCE,
    _A.excluded == 0,
    _P.kind == "human",
    _P.excluded == 0,
    sa.or_(_A.status == "submitted", sa.and_(_A.status == "draft", _A.lease > given("now"))),
)
JOINED = tables.annotation.join(tables.annotator, sa.and_(_P.study == _A.study, _P.id == _A.annotator))
_COUNTS = (
    sa.select(_A.document, _A.about, _A.status, sa.func.count())
    .select_from(JOINED)
    .where(_TAKEN)
    .group_by(_A.document, _A.about, _A.status)
)
_OTHERS = (
    sa.select(sa.func.count())
    .select_from(JOINED)
    .where(_TAKEN, _A.document == given("document"), _A.about == given("about"), _A.annotator != given("annotator"))
)
_OF_CONDITION = sa.select(sa.func.count()).select_from(JOINED).where(_TAKEN, _P.condition == given("condition"))
_MINE = (
    sa.select(_A.id, _A.document, _A.about, _A.number, _A.status, _A.lease, _A.excluded)
    .where(*_IN_FORCE[:-1], _A.round == given("round"), _A.annotator == given("annotator"))
    .order_by(_A.number)
)
_WHO = sa.select(_P.condition, _P.excluded, _P.body).where(_P.study == given("study"), _P.id == given("annotator"))


def standing(store: Store, transaction: Transaction, annotator: str) -> AssignmentState:
    """How far an annotator is; reads only."""
    head, round = store.head, store.head.settings.round
    found = transaction.all(_MINE, study=store.key, protocol=head.protocol.id, annotator=annotator, round=round)
    tasks = tuple(Given(*row) for row in found if row[3] is not None)
    mine = frozenset(row[2] or row[1] for row in found)
    arm, excluded, body = transaction.one(_WHO, study=store.key, annotator=annotator) or ("", 1, "{}")
    if excluded:
        return _excluded(store, tasks, mine)
    if round:
        return _second_pass(store, transaction, annotator, tasks, mine)
    return _first_pass(store, transaction, annotator, tasks, mine, arm, _setting(store, body))


def _excluded(store: Store, tasks: Sequence[Given], mine: frozenset[str]) -> AssignmentState:
    """Nothing more comes; who had handed in everything before stays at the end, where the code is."""
    plan = store.plan()
    done = sum(task.status == "submitted" and task.item not in plan.checks for task in tasks)
    has_all = done >= (store.head.protocol.work.texts or len(plan.documents))
    return AssignmentState(tasks, mine, (), 0, "all-done" if has_all else "none-now", Counts({}, {}), plan)


def _first_pass(
    store: Store,
    transaction: Transaction,
    annotator: str,
    tasks: Sequence[Given],
    mine: frozenset[str],
    arm: str,
    setting: Setting | None,
) -> AssignmentState:
    plan = judged_work.plan(store, transaction) if judged_work.judges(store.head.protocol) else store.plan()
    counts = _counts(store, transaction)
    most = _most_left(store, transaction, plan, arm, sum(task.item not in plan.checks for task in tasks))
    open_ = _OpenWork(store, plan, {id for id, each in plan.judged.items() if each.annotator == annotator}, setting)
    free = open_.free(counts, mine) if most else []
    ahead = min(len(free), most)
    ahead += sum(check not in mine for check in plan.checks) if tasks or ahead else 0
    why: Literal["", "all-done", "none-now"] = ""
    later = True
    if not ahead:
        over = mine - {task.item for task in tasks if task.status == "draft"}
        later = bool(most and open_.free(Counts(counts.submitted, {}), over))  # somebody may yet give a text back
        why = "none-now" if later or not tasks else "all-done"
    return AssignmentState(tasks, mine, free, ahead, why, counts, plan, setting, later)


def _second_pass(
    store: Store, transaction: Transaction, annotator: str, tasks: Sequence[Given], mine: frozenset[str]
) -> AssignmentState:
    """Every text of one's own that others have read too, in the same order as before."""
    pool = set(_pool(store, store.plan()))
    due = [each for each in second_pass.shared(store, transaction, annotator) if each in pool and each not in mine]
    drafts = any(task.status == "draft" and not task.excluded for task in tasks)
    why: Literal["", "all-done", "none-now"] = "" if due else "all-done" if tasks and not drafts else "none-now"
    return AssignmentState(tasks, mine, due, len(due), why, Counts({}, {}), store.plan())


@dataclass(frozen=True, slots=True)
class _OpenWork:
    """What somebody may get, as far as others leave it."""

    store: Store
    plan: Plan
    own: set[str]
    """Their own work, which they do not judge."""
    setting: Setting | None

    def free(self, counts: Counts, had: frozenset[str]) -> list[str]:
        """What can be given to them, having had `had`."""
        head, plan = self.store.head, self.plan
        pool = _pool(self.store, plan)
        if self.setting is not None:
            pool = [each for each in pool if self.setting in plan.settings[each]]
        return assignment_rules.free(plan, counts, head.annotators, had | self.own, head.settings.quotas, pool)


def _pool(store: Store, plan: Plan) -> Sequence[str]:
    return plan.documents[: store.head.settings.pilot] if store.head.state == "pilot" else plan.documents


def _counts(store: Store, transaction: Transaction) -> Counts:
    found = transaction.all(_COUNTS, study=store.key, protocol=store.head.protocol.id, now=store.clock())
    return Counts(
        {about or document: count for document, about, status, count in found if status == "submitted"},
        {about or document: count for document, about, status, count in found if status == "draft"},
    )


def _most_left(store: Store, transaction: Transaction, plan: Plan, arm: str, had: int) -> int:
    """How many more texts somebody in that arm who had so many may get, attention checks aside."""
    head = store.head
    texts = head.protocol.work.texts
    left = len(plan.documents) if texts is None else max(0, texts - had)
    if arm in head.settings.quotas:
        values = {"study": store.key, "protocol": head.protocol.id, "now": store.clock()}
        (taken,) = transaction.one(_OF_CONDITION, condition=arm, **values) or (0,)
        left = min(left, max(0, head.settings.quotas[arm] - taken))
    return left


# --- one setting for each person ---------------------------------------------------------------------------------

_PEERS = sa.select(_P.body).where(
    _P.study == given("study"), _P.condition == given("condition"), _P.excluded == 0, _P.kind == "human"
)
_KEEP = sa.update(tables.annotator).values(body=given("new")).where(_P.study == given("of"), _P.id == given("who"))


def _setting(store: Store, body: str) -> Setting | None:
    """Which texts an annotator keeps to, if that was decided and is still asked."""
    within, found = store.head.protocol.work.within, from_json(body).get("meta", {}).get("setting")
    if not within or not isinstance(found, dict) or set(found) != set(within):
        return None
    return tuple(str(found[name]) for name in within)


def _settle(store: Store, transaction: Transaction, annotator: str, now: AssignmentState) -> AssignmentState:
    """Put somebody into the setting with fewest people of their condition, kept in `meta.setting`."""
    work, seed = store.head.protocol.work, store.head.settings.seed
    if not work.within or now.setting is not None or not now.free:
        return now
    arm, _, body = transaction.one(_WHO, study=store.key, annotator=annotator) or ("", 1, "{}")
    peers = transaction.all(_PEERS, study=store.key, condition=arm)
    people = Counter(each for (other,) in peers if (each := _setting(store, other)) is not None)
    setting = assignment_rules.choose_setting(now.free, now.plan, people, work.texts or 1, seed, annotator)
    assert setting is not None
    value: dict[str, Any] = from_json(body)
    value["meta"] = {**value.get("meta", {}), "setting": dict(zip(work.within, setting, strict=True))}
    transaction.run(_KEEP, of=store.key, who=annotator, new=rows.dumps(value))
    return standing(store, transaction, annotator)


# --- the next text -----------------------------------------------------------------------------------------------

_RENEW = (
    sa.update(tables.annotation).values(lease=given("lease")).where(_A.study == given("of"), _A.id == given("task"))
)
_GIVE = (
    sa.insert(tables.annotation)
    .values(
        {
            column.name: given(column.name)
            for column in tables.annotation.columns
            if column.name not in ("key", "submitted", "active")
        }
    )
    .returning(_A.key)
)
_MACHINE = (
    sa.select(tables.entry.c.id)
    .select_from(tables.entry.join(tables.annotation, tables.entry.c.annotation == _A.key))
    .where(
        *_IN_FORCE,
        _A.about == "",
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
    now = _settle(store, transaction, annotator, now)
    item = _pick(store, now, annotator)
    return NextTask(_give(store, transaction, now, annotator, item)) if item else NextTask(why=now.why)


def _goes_on(store: Store, transaction: Transaction, annotator: str, task: Given) -> bool:
    """Whether a task is a draft that its annotator can work on."""
    _, stopped, _ = transaction.one(_WHO, study=store.key, annotator=annotator) or ("", 1, "")
    if stopped or task.excluded or task.status != "draft":
        return False
    if store.head.settings.round:
        return True
    protocol = store.head.protocol.id
    return still_mine(store, transaction, annotator, task.document, task.about, protocol, task.lease)


def is_over(store: Store, transaction: Transaction, annotator: str, now: AssignmentState) -> bool:
    """Whether somebody handed in all that there is for them: none is due, and none is open that they can go on with."""
    if now.why != "all-done" or not any(task.status == "submitted" for task in now.given):
        return False
    return not any(_goes_on(store, transaction, annotator, task) for task in now.given)


def kept_until(store: Store) -> float | None:
    """Until when a text is kept for somebody who does something now; a second pass takes nobody's place."""
    return None if store.head.settings.round else store.clock() + 60 * store.head.settings.lease


def still_mine(
    store: Store,
    transaction: Transaction,
    annotator: str,
    document: str,
    about: str,
    protocol: str,
    lease: float | None,
) -> bool:
    """Whether a place is kept for its annotator, or still free although it is not."""
    plan = store.plan()
    if (lease is not None and lease > store.clock()) or document in plan.checks:
        return True
    values = {"study": store.key, "protocol": protocol, "now": store.clock()}
    (others,) = transaction.one(_OTHERS, document=document, about=about, annotator=annotator, **values) or (0,)
    return bool(others < plan.places(document, store.head.annotators))


def _pick(store: Store, now: AssignmentState, annotator: str) -> str | None:
    head, seed = store.head, store.head.settings.seed
    if head.settings.round:
        return next(iter(now.free), None)
    order = [task.item for task in now.given]
    if now.ahead:
        expected = head.protocol.work.texts or len(now.plan.documents)
        check = assignment_rules.check_due(now.plan, order, seed, annotator, expected, last=not now.free)
        if check:
            return check
    if now.setting is not None:
        return assignment_rules.draw(now.free, seed, annotator)
    return assignment_rules.choose(now.free, now.plan, now.counts, order, seed, annotator)


def _give(store: Store, transaction: Transaction, now: AssignmentState, annotator: str, item: str) -> str:
    id, number, round = secrets.token_hex(12), len(now.given) + 1, store.head.settings.round
    judged = now.plan.judged.get(item)
    document, about = (judged.document, item) if judged else (item, "")
    meta = {"order": number} | _circumstances(store, transaction, annotator, document)
    before = second_pass.earlier(store, transaction, annotator, document) if round else None
    rest = {"made_from": [before.id], "meta": meta | before.meta} if before else {"meta": meta}
    values = {"document": document, "about": about, "annotator": annotator, "number": number}
    key = insert(store, transaction, id=id, phase="work", round=round, lease=kept_until(store), rest=rest, **values)
    if before:
        second_pass.begin(store, transaction, key, before)
    return id


def insert(store: Store, transaction: Transaction, *, rest: Mapping[str, object], **values: object) -> int:
    """A new task: an annotation that begins now. Returns its key."""
    found = transaction.one(
        _GIVE,
        study=store.key,
        protocol=store.head.protocol.id,
        status="draft",
        excluded=0,
        started=iso(store.clock()),
        rest=rows.dumps(rest),
        **values,
    )
    assert found is not None
    return int(found[0])


def iso(seconds: float) -> str:
    """A time of the server's clock as records have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _circumstances(store: Store, transaction: Transaction, annotator: str, document: str) -> dict[str, object]:
    """What statistics want to know about how a text was given out."""
    head, seed = store.head, store.head.settings.seed
    found: dict[str, object] = {"pilot": True} if head.state == "pilot" else {}
    if head.protocol.work.unit == "pair":
        found["shown_first"] = assignment_rules.first_of_pair(seed, annotator, document)
    if document in store.plan().checks:
        return found | {"attention_check": True}
    if head.settings.offer is None or head.settings.round or judged_work.judges(head.protocol):
        return found
    if assignment_rules.is_blind(seed, document, head.settings.offer.blind):
        return found | {"blind": True}
    who = {"study": store.key, "protocol": head.protocol.id, "annotator": head.settings.offer.annotator}
    return found | {"offered": [id for (id,) in transaction.all(_MACHINE, document=document, **who)]}
