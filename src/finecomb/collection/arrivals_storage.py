"""Where annotators came from: what a platform and a browser told when somebody signed in.

Nothing of it is in the study's records or in any export: worker ids are in the table `arrival` and nowhere else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection import (
    access_storage,
    annotator_storage,
    assignment_storage,
    audit_log_storage,
    design_cells_storage,
    personal_names_storage,
)
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.location import FILE, StudyLocation, is_url, place
from finecomb.collection.database.rows import iso
from finecomb.collection.database.studies import find, studies
from finecomb.collection.database.tables import given
from finecomb.collection.design_cells_storage import FullError
from finecomb.collection.onboarding import recorded_step, with_step

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


class TookPartError(Exception):
    """Somebody who has finished wants to take part again, where everybody may once only."""


class OtherBrowserError(Exception):
    """Somebody comes under a worker id that began in another browser: an id alone opens nothing."""


class ClosedError(Exception):
    """Somebody new comes when the study is over; nothing is kept about them."""


_SOURCE_FIELDS = tuple(field.name for field in fields(ArrivalSource))
_OWN = tables.arrival.c
_SELECT = sa.select(_OWN.annotator, _OWN.at, *(_OWN[name] for name in _SOURCE_FIELDS)).where(
    _OWN.study == given("study")
)
_ALL = _SELECT.order_by(_OWN.key)
_OF_ONE = _SELECT.where(_OWN.annotator == given("annotator")).order_by(_OWN.key)
_LAST = _SELECT.where(_OWN.annotator == given("annotator")).order_by(_OWN.key.desc()).limit(1)
_WORKER = (
    sa.select(_OWN.annotator)
    .where(_OWN.study == given("study"), _OWN.platform == given("platform"), _OWN.worker == given("worker"))
    .order_by(_OWN.key)
    .limit(1)
)
_DEVICE = (
    sa.select(_OWN.annotator)
    .where(_OWN.study == given("study"), _OWN.platform == "", _OWN.device == given("device"))
    .order_by(_OWN.key.desc())
    .limit(1)
)


def _arrival(row: tuple[object, ...]) -> Arrival:
    annotator, at, *values = row
    return Arrival(str(annotator), float(str(at)), ArrivalSource(*map(str, values)))


def arrivals(store: Store, transaction: Transaction) -> list[Arrival]:
    """Everybody's, in the order they came."""
    return [_arrival(row) for row in transaction.all(_ALL, study=store.key)]


def arrivals_of(store: Store, transaction: Transaction, annotator: str) -> list[Arrival]:
    """Those of one annotator, in the order they came."""
    return [_arrival(row) for row in transaction.all(_OF_ONE, study=store.key, annotator=annotator)]


def last_arrival(store: Store, transaction: Transaction, annotator: str) -> Arrival | None:
    """How an annotator came in the last time."""
    row = transaction.one(_LAST, study=store.key, annotator=annotator)
    return _arrival(row) if row else None


def returning_annotator(store: Store, transaction: Transaction, source: ArrivalSource) -> str | None:
    """Who comes back: the same worker of a platform from any device or, where everybody may take part once only,
    somebody in the browser of the one who came by our open link before."""
    if source.worker:
        row = transaction.one(_WORKER, study=store.key, platform=source.platform, worker=source.worker)
        row = row or transaction.one(_KNOWN, study=store.key, hash=worker_hash(store, source))
    elif source.device and is_once(store):
        row = transaction.one(_DEVICE, study=store.key, device=source.device)
    else:
        row = None
    return str(row[0]) if row else None


def is_once(store: Store) -> bool:
    """Whether everybody may take part once only: where the protocol says so, and always in a design."""
    return store.head.protocol.work.once or store.head.settings.design is not None


# --- coming in ---------------------------------------------------------------------------------------------------


def enter(store: Store, transaction: Transaction, token: str, source: ArrivalSource, code: str = "") -> str | None:
    """Sign an annotator in by a link and remember where they came from; returns the session's token.

    None when the link opens nothing (any more). `code` is what the browser in which a worker began shows.
    """
    kind = access_storage.link_kind(store, transaction, token)
    if kind == "personal":
        session_token = access_storage.follow_link(store, transaction, token, "annotator")
        session = access_storage.session(store, transaction, session_token or "")
        who = session.who if session else ""
    elif kind == "open":
        who = _by_open_link(store, transaction, source, code)
        session_token = access_storage.start_session(store, transaction, "annotator", who)
    else:
        return None
    is_new = last_arrival(store, transaction, who) is None
    arrive(store, transaction, who, source)
    if (
        store.plan().cells
        and design_cells_storage.hold(store, transaction, who) == "full"
        and is_new
        and kind == "open"
    ):
        raise FullError  # which undoes all of this
    return session_token


def _by_open_link(store: Store, transaction: Transaction, source: ArrivalSource, code: str) -> str:
    who = returning_annotator(store, transaction, source)
    if who is None and store.head.state == "closed":
        raise ClosedError
    if who is None and _took_part_elsewhere(store, transaction, source):
        raise TookPartError
    if who is None:
        annotator = annotator_storage.new(store, transaction)
        if source.platform:
            annotator_storage.replace(store, transaction, annotator.model_copy(update={"platform": source.platform}))
        return annotator.id
    before = last_arrival(store, transaction, who)
    again = before is not None and source.session != before.source.session
    if again and is_once(store) and _finished(store, transaction, who):
        raise TookPartError
    _check_browser(store, transaction, source, code)
    return who


def _took_part_elsewhere(store: Store, transaction: Transaction, source: ArrivalSource) -> bool:
    """Whether a platform's worker came to one of the studies that the design keeps apart from this one."""
    design = store.head.settings.design
    if design is None or not source.worker:
        return False
    return any(_came_to(store, transaction, name, source) for name in design.apart_from)


def _came_to(store: Store, transaction: Transaction, name: str, source: ArrivalSource) -> bool:
    """Whether a worker came to another study: `#name` in this database, else a folder, file or URL of its own."""
    if name.startswith("#"):
        key = studies(transaction).get(name.removeprefix("#"))
        return key is not None and _has_come(transaction, key, source)
    where = _other_study(store, name)
    if where.file and not where.file.exists():
        return False  # nobody has come there yet
    database = Database(where, readonly=True)
    try:
        with database.reading() as there:
            key, _ = find(there, where)
            return _has_come(there, key, source)
    finally:
        database.close()


_SECRET = sa.select(tables.study.c.secret).where(tables.study.c.key == given("study"))


def _has_come(transaction: Transaction, study: int, source: ArrivalSource) -> bool:
    """Whether a worker came to a study, also where the id itself was forgotten since: its hash is kept."""
    if transaction.one(_WORKER, study=study, platform=source.platform, worker=source.worker) is not None:
        return True
    (secret,) = transaction.one(_SECRET, study=study) or ("",)
    return transaction.one(_KNOWN, study=study, hash=_keyed_hash(str(secret), source)) is not None


def _other_study(store: Store, name: str) -> StudyLocation:
    """Where a study named in the settings is kept; a relative path begins at this study's folder."""
    if is_url(name) or store.database.place.file is None:
        return place(name)
    path = store.database.place.file.parent / name
    return place(path / FILE) if path.is_dir() else place(path)


def arrive(store: Store, transaction: Transaction, annotator: str, source: ArrivalSource) -> None:
    """Remember that somebody came in, and that they agreed to take part."""
    traces = dict(zip(_SOURCE_FIELDS, astuple(source), strict=True))
    values = {"study": store.key, "annotator": annotator, "at": store.clock(), **traces}
    transaction.run(sa.insert(tables.arrival).values(**values))
    if source.worker:
        _bind(store, transaction, annotator, source)
    _agree(store, transaction, annotator)


def worker_hash(store: Store, source: ArrivalSource) -> str:
    """A keyed hash of a platform's id of a person; stays when the id itself is forgotten."""
    return _keyed_hash(store.head.secret, source)


def _keyed_hash(secret: str, source: ArrivalSource) -> str:
    text = f"worker/{source.platform}/{source.worker}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


_W = tables.worker.c
_KNOWN = sa.select(_W.annotator, _W.device).where(_W.study == given("study"), _W.hash == given("hash"))


def _check_browser(store: Store, transaction: Transaction, source: ArrivalSource, code: str) -> None:
    """Refuse a worker id that comes in another browser than the one it began in, without the code shown there."""
    row = transaction.one(_KNOWN, study=store.key, hash=worker_hash(store, source)) if source.worker else None
    if row is None or not row[1] or source.device == row[1]:
        return
    right = _code(store, str(row[0]), str(row[1]))
    if not hmac.compare_digest(code.strip().upper().encode(), right.encode()):
        raise OtherBrowserError


_BOUND = sa.select(_W.device).where(_W.study == given("study"), _W.annotator == given("annotator"), _W.device != "")


def browser_code(store: Store, transaction: Transaction, annotator: str) -> str:
    """What lets somebody from a platform go on in another browser; empty where no browser is bound."""
    row = transaction.one(_BOUND, study=store.key, annotator=annotator)
    return _code(store, annotator, str(row[0])) if row else ""


def _code(store: Store, annotator: str, device: str) -> str:
    """Eight letters and digits that nobody can guess; others as soon as the browser is another."""
    text = f"browser/{annotator}/{device}"
    return base64.b32encode(hmac.new(store.head.secret.encode(), text.encode(), hashlib.sha256).digest()).decode()[:8]


def _bind(store: Store, transaction: Transaction, annotator: str, source: ArrivalSource) -> None:
    """Remember in which browser somebody began, or goes on after having been let go."""
    hash = worker_hash(store, source)
    if transaction.one(_KNOWN, study=store.key, hash=hash) is None:
        values = {"study": store.key, "hash": hash, "annotator": annotator, "device": source.device}
        transaction.run(sa.insert(tables.worker).values(**values))
    else:
        mine = (_W.study == store.key, _W.hash == hash)
        transaction.run(sa.update(tables.worker).values(device=source.device).where(*mine))


def release_browser(store: Store, transaction: Transaction, by: str, annotator: str) -> None:
    """Let somebody go on in another browser than the one they began in."""
    annotator_storage.get(store, transaction, annotator)  # refused where there is nobody
    mine = (_W.study == store.key, _W.annotator == annotator)
    transaction.run(sa.update(tables.worker).values(device="").where(*mine))
    audit_log_storage.record(store, transaction, by, "released the browser", annotator=annotator)


def _agree(store: Store, transaction: Transaction, id: str) -> None:
    """Starting is agreeing: kept once for each protocol among the steps of the way."""
    protocol, one = store.head.protocol, annotator_storage.get(store, transaction, id)
    if protocol.consent and "consent" not in store.head.settings.skip and not recorded_step(protocol, one, "consent"):
        annotator_storage.replace(store, transaction, with_step(protocol, one, "consent", done=iso(store.clock())))


_SUBMITTED = sa.select(sa.func.count()).where(
    tables.annotation.c.study == given("study"),
    tables.annotation.c.annotator == given("annotator"),
    tables.annotation.c.phase == "work",
    tables.annotation.c.status == "submitted",
)


def _finished(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Whether somebody handed in all the texts that a person gets."""
    (done,) = transaction.one(_SUBMITTED, study=store.key, annotator=annotator) or (0,)
    cell = annotator_storage.get(store, transaction, annotator).cell
    return int(done) >= (assignment_storage.texts_in(store, cell) or len(store.plan().documents))


# --- forgetting --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonalData:
    """How much there is to forget, or was."""

    arrivals: int
    workers: int
    """Different ids of a platform."""
    links: int
    sessions: int
    names: int = 0
    """People whom researchers call by a name."""


def personal_data(store: Store, transaction: Transaction, annotators: Iterable[str] | None = None) -> PersonalData:
    """What is kept about some annotators, or about all, apart from their work."""
    named = None if annotators is None else list(annotators)
    mine = _mine(store, named)
    count = [sa.select(sa.func.count()).select_from(table).where(*only) for table, only in mine.items()]
    arrived, linked, signed = (int((transaction.one(statement) or (0,))[0]) for statement in count)
    workers = sa.select(sa.func.count(sa.distinct(_OWN.worker))).where(*mine[tables.arrival], _OWN.worker != "")
    names = len(personal_names_storage.personal_names(store, transaction, named))
    return PersonalData(arrived, int((transaction.one(workers) or (0,))[0]), linked, signed, names)


def forget(store: Store, transaction: Transaction, by: str, annotators: Iterable[str] | None = None) -> PersonalData:
    """Remove worker ids, devices, addresses, sessions, personal links and names, of some annotators or of all.

    Their work stays; who was called by a name becomes a number. Nobody can tell from the study any more whose it is.
    """
    named = None if annotators is None else list(annotators)
    was = personal_data(store, transaction, named)
    for table, only in _mine(store, named).items():
        transaction.run(sa.delete(table).where(*only))
    bound = () if named is None else (_W.annotator.in_(named),)
    transaction.run(sa.update(tables.worker).values(device="").where(_W.study == store.key, *bound))
    numbers = personal_names_storage.forget_names(store, transaction, named)
    about = "all" if named is None else [numbers.get(id, id) for id in named]
    audit_log_storage.record(store, transaction, by, "forgot where annotators came from", annotators=about)
    return was


def wipe(database: Database) -> None:
    """Write a database anew, so that what was removed is not left in free pages of its file or in its journal."""
    connection = database.connect()
    try:
        connection.execute(
            "VACUUM" if database.sqlite else "VACUUM FULL arrival, link, session, annotator, annotation, worker, audit"
        )
        if database.sqlite:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _mine(store: Store, annotators: Iterable[str] | None) -> dict[sa.Table, tuple[sa.ColumnElement[bool], ...]]:
    """What holds personal matters, and which of its rows are meant."""
    named = None if annotators is None else list(annotators)
    kinds = {tables.arrival: _OWN.annotator, tables.link: tables.link.c.who, tables.session: tables.session.c.who}
    conditions: dict[sa.Table, tuple[sa.ColumnElement[bool], ...]] = {}
    for table, who in kinds.items():
        only = [table.c.study == store.key, *([table.c.kind == "annotator"] if "kind" in table.c else [])]
        conditions[table] = (*only, *([] if named is None else [who.in_(named)]))
    return conditions
