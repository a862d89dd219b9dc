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
from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation, is_postgres_url, parse_location
from finecomb.collection.database.rows import iso_timestamp
from finecomb.collection.database.studies import find_study_key_and_name, study_keys_by_name
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.design_cells_storage import StudyFullError
from finecomb.collection.onboarding import find_step_record, with_updated_step_record

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


class AlreadyParticipatedError(Exception):
    """Somebody who has finished wants to take part again, where everybody may once only."""


class OtherBrowserError(Exception):
    """Somebody comes under a worker id that began in another browser: an id alone opens nothing."""


class StudyClosedError(Exception):
    """Somebody new comes when the study is over; nothing is kept about them."""


_SOURCE_FIELDS = tuple(field.name for field in fields(ArrivalSource))
_ARRIVAL = tables.arrival.c
_SELECT_ARRIVALS = sa.select(_ARRIVAL.annotator, _ARRIVAL.at, *(_ARRIVAL[name] for name in _SOURCE_FIELDS)).where(
    _ARRIVAL.study == bind_parameter("study")
)
_SELECT_ALL = _SELECT_ARRIVALS.order_by(_ARRIVAL.key)
_SELECT_BY_ANNOTATOR = _SELECT_ARRIVALS.where(_ARRIVAL.annotator == bind_parameter("annotator")).order_by(_ARRIVAL.key)
_SELECT_LAST = (
    _SELECT_ARRIVALS.where(_ARRIVAL.annotator == bind_parameter("annotator")).order_by(_ARRIVAL.key.desc()).limit(1)
)
_SELECT_BY_WORKER = (
    sa.select(_ARRIVAL.annotator)
    .where(
        _ARRIVAL.study == bind_parameter("study"),
        _ARRIVAL.platform == bind_parameter("platform"),
        _ARRIVAL.worker == bind_parameter("worker"),
    )
    .order_by(_ARRIVAL.key)
    .limit(1)
)
_SELECT_BY_DEVICE = (
    sa.select(_ARRIVAL.annotator)
    .where(
        _ARRIVAL.study == bind_parameter("study"), _ARRIVAL.platform == "", _ARRIVAL.device == bind_parameter("device")
    )
    .order_by(_ARRIVAL.key.desc())
    .limit(1)
)


def _arrival_from_row(row: tuple[object, ...]) -> Arrival:
    annotator, at, *values = row
    return Arrival(str(annotator), float(str(at)), ArrivalSource(*map(str, values)))


def read_all_arrivals(store: Store, transaction: Transaction) -> list[Arrival]:
    """Everybody's, in the order they came."""
    return [_arrival_from_row(row) for row in transaction.all(_SELECT_ALL, study=store.key)]


def read_annotator_arrivals(store: Store, transaction: Transaction, annotator: str) -> list[Arrival]:
    """Those of one annotator, in the order they came."""
    return [
        _arrival_from_row(row) for row in transaction.all(_SELECT_BY_ANNOTATOR, study=store.key, annotator=annotator)
    ]


def last_arrival(store: Store, transaction: Transaction, annotator: str) -> Arrival | None:
    """How an annotator came in the last time."""
    row = transaction.one(_SELECT_LAST, study=store.key, annotator=annotator)
    return _arrival_from_row(row) if row else None


def returning_annotator(store: Store, transaction: Transaction, source: ArrivalSource) -> str | None:
    """Who comes back: the same worker of a platform from any device or, where everybody may take part once only,
    somebody in the browser of the one who came by our open link before."""
    if source.worker:
        row = transaction.one(_SELECT_BY_WORKER, study=store.key, platform=source.platform, worker=source.worker)
        row = row or transaction.one(_SELECT_WORKER, study=store.key, hash=worker_hash(store, source))
    elif source.device and is_single_participation(store):
        row = transaction.one(_SELECT_BY_DEVICE, study=store.key, device=source.device)
    else:
        row = None
    return str(row[0]) if row else None


def is_single_participation(store: Store) -> bool:
    """Whether everybody may take part once only: where the protocol says so, and always in a design."""
    return store.head.protocol.work.once or store.head.settings.design is not None


# --- coming in ---------------------------------------------------------------------------------------------------


def sign_in_annotator(
    store: Store, transaction: Transaction, token: str, source: ArrivalSource, code: str = ""
) -> str | None:
    """Sign an annotator in by a link and remember where they came from; returns the session's token.

    None when the link opens nothing (any more). `code` is what the browser in which a worker began shows.
    """
    kind = access_storage.link_kind(store, transaction, token)
    if kind == "personal":
        session_token = access_storage.sign_in_with_link(store, transaction, token, "annotator")
        session = access_storage.find_session(store, transaction, session_token or "")
        who = session.who if session else ""
    elif kind == "open":
        who = _find_or_create_annotator(store, transaction, source, code)
        session_token = access_storage.start_session(store, transaction, "annotator", who)
    else:
        return None
    is_new = last_arrival(store, transaction, who) is None
    record_arrival_and_consent(store, transaction, who, source)
    if (
        store.assignment_plan().cells
        and design_cells_storage.hold_place(store, transaction, who) == "full"
        and is_new
        and kind == "open"
    ):
        raise StudyFullError  # which undoes all of this
    return session_token


def _find_or_create_annotator(store: Store, transaction: Transaction, source: ArrivalSource, code: str) -> str:
    who = returning_annotator(store, transaction, source)
    if who is None and store.head.state == "closed":
        raise StudyClosedError
    if who is None and _has_participated_elsewhere(store, transaction, source):
        raise AlreadyParticipatedError
    if who is None:
        annotator = annotator_storage.create_annotator(store, transaction)
        if source.platform:
            annotator_storage.replace_annotator(
                store, transaction, annotator.model_copy(update={"platform": source.platform})
            )
        return annotator.id
    before = last_arrival(store, transaction, who)
    again = before is not None and source.session != before.source.session
    if again and is_single_participation(store) and _has_submitted_all_texts(store, transaction, who):
        raise AlreadyParticipatedError
    _require_same_browser_or_code(store, transaction, source, code)
    return who


def _has_participated_elsewhere(store: Store, transaction: Transaction, source: ArrivalSource) -> bool:
    """Whether a platform's worker came to one of the studies that the design keeps apart from this one."""
    design = store.head.settings.design
    if design is None or not source.worker:
        return False
    return any(_has_participated_in_study(store, transaction, name, source) for name in design.apart_from)


def _has_participated_in_study(store: Store, transaction: Transaction, name: str, source: ArrivalSource) -> bool:
    """Whether a worker came to another study: `#name` in this database, else a folder, file or URL of its own."""
    if name.startswith("#"):
        key = study_keys_by_name(transaction).get(name.removeprefix("#"))
        return key is not None and _is_known_worker(transaction, key, source)
    where = _locate_other_study(store, name)
    if where.file and not where.file.exists():
        return False  # nobody has come there yet
    database = Database(where, readonly=True)
    try:
        with database.read_transaction() as there:
            key, _ = find_study_key_and_name(there, where)
            return _is_known_worker(there, key, source)
    finally:
        database.close()


_SELECT_SECRET = sa.select(tables.study.c.secret).where(tables.study.c.key == bind_parameter("study"))


def _is_known_worker(transaction: Transaction, study: int, source: ArrivalSource) -> bool:
    """Whether a worker came to a study, also where the id itself was forgotten since: its hash is kept."""
    if transaction.one(_SELECT_BY_WORKER, study=study, platform=source.platform, worker=source.worker) is not None:
        return True
    (secret,) = transaction.one(_SELECT_SECRET, study=study) or ("",)
    return transaction.one(_SELECT_WORKER, study=study, hash=_keyed_worker_hash(str(secret), source)) is not None


def _locate_other_study(store: Store, name: str) -> StudyLocation:
    """Where a study named in the settings is kept; a relative path begins at this study's folder."""
    if is_postgres_url(name) or store.database.place.file is None:
        return parse_location(name)
    path = store.database.place.file.parent / name
    return parse_location(path / DATABASE_FILENAME) if path.is_dir() else parse_location(path)


def record_arrival_and_consent(store: Store, transaction: Transaction, annotator: str, source: ArrivalSource) -> None:
    """Remember that somebody came in, and that they agreed to take part."""
    traces = dict(zip(_SOURCE_FIELDS, astuple(source), strict=True))
    values = {"study": store.key, "annotator": annotator, "at": store.clock(), **traces}
    transaction.run(sa.insert(tables.arrival).values(**values))
    if source.worker:
        _bind_browser(store, transaction, annotator, source)
    _record_consent(store, transaction, annotator)


def worker_hash(store: Store, source: ArrivalSource) -> str:
    """A keyed hash of a platform's id of a person; stays when the id itself is forgotten."""
    return _keyed_worker_hash(store.head.secret, source)


def _keyed_worker_hash(secret: str, source: ArrivalSource) -> str:
    text = f"worker/{source.platform}/{source.worker}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


_W = tables.worker.c
_SELECT_WORKER = sa.select(_W.annotator, _W.device).where(
    _W.study == bind_parameter("study"), _W.hash == bind_parameter("hash")
)


def _require_same_browser_or_code(store: Store, transaction: Transaction, source: ArrivalSource, code: str) -> None:
    """Refuse a worker id that comes in another browser than the one it began in, without the code shown there."""
    row = transaction.one(_SELECT_WORKER, study=store.key, hash=worker_hash(store, source)) if source.worker else None
    if row is None or not row[1] or source.device == row[1]:
        return
    right = _derive_transfer_code(store, str(row[0]), str(row[1]))
    if not hmac.compare_digest(code.strip().upper().encode(), right.encode()):
        raise OtherBrowserError


_SELECT_BOUND_DEVICE = sa.select(_W.device).where(
    _W.study == bind_parameter("study"), _W.annotator == bind_parameter("annotator"), _W.device != ""
)


def browser_transfer_code(store: Store, transaction: Transaction, annotator: str) -> str:
    """What lets somebody from a platform go on in another browser; empty where no browser is bound."""
    row = transaction.one(_SELECT_BOUND_DEVICE, study=store.key, annotator=annotator)
    return _derive_transfer_code(store, annotator, str(row[0])) if row else ""


def _derive_transfer_code(store: Store, annotator: str, device: str) -> str:
    """Eight letters and digits that nobody can guess; others as soon as the browser is another."""
    text = f"browser/{annotator}/{device}"
    return base64.b32encode(hmac.new(store.head.secret.encode(), text.encode(), hashlib.sha256).digest()).decode()[:8]


def _bind_browser(store: Store, transaction: Transaction, annotator: str, source: ArrivalSource) -> None:
    """Remember in which browser somebody began, or goes on after having been let go."""
    hash = worker_hash(store, source)
    if transaction.one(_SELECT_WORKER, study=store.key, hash=hash) is None:
        values = {"study": store.key, "hash": hash, "annotator": annotator, "device": source.device}
        transaction.run(sa.insert(tables.worker).values(**values))
    else:
        mine = (_W.study == store.key, _W.hash == hash)
        transaction.run(sa.update(tables.worker).values(device=source.device).where(*mine))


def release_browser(store: Store, transaction: Transaction, by: str, annotator: str) -> None:
    """Let somebody go on in another browser than the one they began in."""
    annotator_storage.get_annotator(store, transaction, annotator)  # refused where there is nobody
    mine = (_W.study == store.key, _W.annotator == annotator)
    transaction.run(sa.update(tables.worker).values(device="").where(*mine))
    audit_log_storage.record_action(store, transaction, by, "released the browser", annotator=annotator)


def _record_consent(store: Store, transaction: Transaction, id: str) -> None:
    """Starting is agreeing: kept once for each protocol among the steps of the way."""
    protocol, one = store.head.protocol, annotator_storage.get_annotator(store, transaction, id)
    if (
        protocol.consent
        and "consent" not in store.head.settings.skip
        and not find_step_record(protocol, one, "consent")
    ):
        annotator_storage.replace_annotator(
            store, transaction, with_updated_step_record(protocol, one, "consent", done=iso_timestamp(store.clock()))
        )


_COUNT_SUBMITTED = sa.select(sa.func.count()).where(
    tables.annotation.c.study == bind_parameter("study"),
    tables.annotation.c.annotator == bind_parameter("annotator"),
    tables.annotation.c.phase == "work",
    tables.annotation.c.status == "submitted",
)


def _has_submitted_all_texts(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Whether somebody handed in all the texts that a person gets."""
    (done,) = transaction.one(_COUNT_SUBMITTED, study=store.key, annotator=annotator) or (0,)
    cell = annotator_storage.get_annotator(store, transaction, annotator).cell
    return int(done) >= (assignment_storage.texts_per_person(store, cell) or len(store.assignment_plan().documents))


# --- forgetting --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonalDataCounts:
    """How much there is to forget, or was."""

    arrivals: int
    workers: int
    """Different ids of a platform."""
    links: int
    sessions: int
    names: int = 0
    """People whom researchers call by a name."""


def count_personal_data(
    store: Store, transaction: Transaction, annotators: Iterable[str] | None = None
) -> PersonalDataCounts:
    """What is kept about some annotators, or about all, apart from their work."""
    named = None if annotators is None else list(annotators)
    mine = _personal_data_conditions_by_table(store, named)
    count = [sa.select(sa.func.count()).select_from(table).where(*only) for table, only in mine.items()]
    arrived, linked, signed = (int((transaction.one(statement) or (0,))[0]) for statement in count)
    workers = sa.select(sa.func.count(sa.distinct(_ARRIVAL.worker))).where(*mine[tables.arrival], _ARRIVAL.worker != "")
    names = len(personal_names_storage.find_named_annotators(store, transaction, named))
    return PersonalDataCounts(arrived, int((transaction.one(workers) or (0,))[0]), linked, signed, names)


def forget_personal_data(
    store: Store, transaction: Transaction, by: str, annotators: Iterable[str] | None = None
) -> PersonalDataCounts:
    """Remove worker ids, devices, addresses, sessions, personal links and names, of some annotators or of all.

    Their work stays; who was called by a name becomes a number. Nobody can tell from the study any more whose it is.
    """
    named = None if annotators is None else list(annotators)
    was = count_personal_data(store, transaction, named)
    for table, only in _personal_data_conditions_by_table(store, named).items():
        transaction.run(sa.delete(table).where(*only))
    bound = () if named is None else (_W.annotator.in_(named),)
    transaction.run(sa.update(tables.worker).values(device="").where(_W.study == store.key, *bound))
    numbers = personal_names_storage.forget_names(store, transaction, named)
    about = "all" if named is None else [numbers.get(id, id) for id in named]
    audit_log_storage.record_action(store, transaction, by, "forgot where annotators came from", annotators=about)
    return was


def vacuum_database(database: Database) -> None:
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


def _personal_data_conditions_by_table(
    store: Store, annotators: Iterable[str] | None
) -> dict[sa.Table, tuple[sa.ColumnElement[bool], ...]]:
    """What holds personal matters, and which of its rows are meant."""
    named = None if annotators is None else list(annotators)
    kinds = {tables.arrival: _ARRIVAL.annotator, tables.link: tables.link.c.who, tables.session: tables.session.c.who}
    conditions: dict[sa.Table, tuple[sa.ColumnElement[bool], ...]] = {}
    for table, who in kinds.items():
        only = [table.c.study == store.key, *([table.c.kind == "annotator"] if "kind" in table.c else [])]
        conditions[table] = (*only, *([] if named is None else [who.in_(named)]))
    return conditions
