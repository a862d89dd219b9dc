"""Storage of arrivals: data from the recruiting platform and the browser at each sign-in.

Worker IDs are stored only in the table `arrival`. They appear neither in the study's records nor in any export.
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
from finecomb.collection.database.location import DATABASE_FILENAME, is_postgres_url, parse_location
from finecomb.collection.database.rows import iso_timestamp
from finecomb.collection.database.studies import find_study_key_and_name, study_keys_by_name
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.design_cells_storage import StudyFullError
from finecomb.collection.onboarding import find_step_record, with_updated_step_record

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


class AlreadyParticipatedError(Exception):
    """Attempt to take part again in a study that each person may join only once."""


class DifferentBrowserError(Exception):
    """Sign-in with a worker ID from a browser other than the first. A worker ID alone does not prove identity."""


class StudyClosedError(Exception):
    """Sign-in of a new person to a closed study. No data about the person is stored."""


_SOURCE_FIELDS = tuple(field.name for field in fields(ArrivalSource))
_ARRIVAL = tables.arrival.c
_SELECT_ARRIVALS = sa.select(_ARRIVAL.annotator, _ARRIVAL.at, *(_ARRIVAL[name] for name in _SOURCE_FIELDS)).where(
    _ARRIVAL.study == named_sql_placeholder("study")
)
_SELECT_ALL_ARRIVALS = _SELECT_ARRIVALS.order_by(_ARRIVAL.key)
_SELECT_ANNOTATOR_ARRIVALS = _SELECT_ARRIVALS.where(_ARRIVAL.annotator == named_sql_placeholder("annotator")).order_by(
    _ARRIVAL.key
)
_SELECT_LAST_ARRIVAL = (
    _SELECT_ARRIVALS.where(_ARRIVAL.annotator == named_sql_placeholder("annotator"))
    .order_by(_ARRIVAL.key.desc())
    .limit(1)
)
_SELECT_ANNOTATOR_BY_WORKER = (
    sa.select(_ARRIVAL.annotator)
    .where(
        _ARRIVAL.study == named_sql_placeholder("study"),
        _ARRIVAL.platform == named_sql_placeholder("platform"),
        _ARRIVAL.worker == named_sql_placeholder("worker"),
    )
    .order_by(_ARRIVAL.key)
    .limit(1)
)
_SELECT_ANNOTATOR_BY_DEVICE = (
    sa.select(_ARRIVAL.annotator)
    .where(
        _ARRIVAL.study == named_sql_placeholder("study"),
        _ARRIVAL.platform == "",
        _ARRIVAL.device == named_sql_placeholder("device"),
    )
    .order_by(_ARRIVAL.key.desc())
    .limit(1)
)


def _arrival_from_row(row: tuple[object, ...]) -> Arrival:
    annotator, time, *values = row
    return Arrival(str(annotator), float(str(time)), ArrivalSource(*map(str, values)))


def read_all_arrivals(store: Store, transaction: Transaction) -> list[Arrival]:
    """Return all arrivals of the study in chronological order."""
    return [_arrival_from_row(row) for row in transaction.fetch_all(_SELECT_ALL_ARRIVALS, study=store.key)]


def read_annotator_arrivals(store: Store, transaction: Transaction, annotator: str) -> list[Arrival]:
    """Return the arrivals of one annotator in chronological order."""
    return [
        _arrival_from_row(row)
        for row in transaction.fetch_all(_SELECT_ANNOTATOR_ARRIVALS, study=store.key, annotator=annotator)
    ]


def read_last_arrival(store: Store, transaction: Transaction, annotator: str) -> Arrival | None:
    """Return the last arrival of an annotator, or None when there is no arrival."""
    row = transaction.fetch_first(_SELECT_LAST_ARRIVAL, study=store.key, annotator=annotator)
    return _arrival_from_row(row) if row else None


def find_returning_annotator(store: Store, transaction: Transaction, source: ArrivalSource) -> str | None:
    """Return the ID of a returning annotator, or None for a new person.

    A platform worker is recognised on any device. If each person may take part only once, a person
    who came by the open link is recognised by their browser.
    """
    if source.worker:
        row = transaction.fetch_first(
            _SELECT_ANNOTATOR_BY_WORKER, study=store.key, platform=source.platform, worker=source.worker
        )
        row = row or transaction.fetch_first(_SELECT_WORKER, study=store.key, hash=worker_hash(store, source))
    elif source.device and is_single_participation(store):
        row = transaction.fetch_first(_SELECT_ANNOTATOR_BY_DEVICE, study=store.key, device=source.device)
    else:
        row = None
    return str(row[0]) if row else None


def is_single_participation(store: Store) -> bool:
    """Return whether each person may take part only once. Protocols can require this, and designs always do."""
    return store.head.protocol.work.once or store.head.settings.design is not None


# --- sign-in -----------------------------------------------------------------------------------------------------


def sign_in_annotator(
    store: Store, transaction: Transaction, token: str, source: ArrivalSource, code: str = ""
) -> str | None:
    """Sign in an annotator with a link, record their arrival and return the session token.

    Return None when the link is not valid. `code` is the transfer code shown in the worker's first browser.
    """
    kind = access_storage.find_valid_link_kind(store, transaction, token)
    if kind == "personal":
        session_token = access_storage.sign_in_with_link(store, transaction, token, "annotator")
        session = access_storage.find_session(store, transaction, session_token or "")
        who = session.who if session else ""
    elif kind == "open":
        who = _find_or_create_annotator(store, transaction, source, code)
        session_token = access_storage.start_session(store, transaction, "annotator", who)
    else:
        return None
    is_new = read_last_arrival(store, transaction, who) is None
    record_arrival_and_consent(store, transaction, who, source)
    if (
        store.assignment_plan().cells
        and design_cells_storage.hold_place(store, transaction, who) == "full"
        and is_new
        and kind == "open"
    ):
        raise StudyFullError  # the exception rolls back the arrival
    return session_token


def _find_or_create_annotator(store: Store, transaction: Transaction, source: ArrivalSource, code: str) -> str:
    who = find_returning_annotator(store, transaction, source)
    if who is None and store.head.state == "closed":
        raise StudyClosedError
    design = store.head.settings.design
    if (
        who is None
        and design is not None
        and source.worker
        and any(_has_participated_in_study(store, transaction, name, source) for name in design.apart_from)
    ):
        raise AlreadyParticipatedError
    if who is None:
        annotator = annotator_storage.create_annotator(store, transaction)
        if source.platform:
            annotator_storage.replace_annotator(
                store, transaction, annotator.model_copy(update={"platform": source.platform})
            )
        return annotator.id
    before = read_last_arrival(store, transaction, who)
    again = before is not None and source.session != before.source.session
    if again and is_single_participation(store):
        (done,) = transaction.fetch_first(_COUNT_SUBMITTED, study=store.key, annotator=who) or (0,)
        cell = annotator_storage.get_annotator(store, transaction, who).cell
        texts = assignment_storage.texts_per_person(store, cell) or len(store.assignment_plan().documents)
        if int(done) >= texts:
            raise AlreadyParticipatedError
    row = (
        transaction.fetch_first(_SELECT_WORKER, study=store.key, hash=worker_hash(store, source))
        if source.worker
        else None
    )
    if not (row is None or not row[1] or source.device == row[1]):
        right = _derive_transfer_code(store, str(row[0]), str(row[1]))
        if not hmac.compare_digest(code.strip().upper().encode(), right.encode()):
            raise DifferentBrowserError
    return who


def _has_participated_in_study(store: Store, transaction: Transaction, name: str, source: ArrivalSource) -> bool:
    """Return whether a worker took part in another study.

    `name` is `#NAME` for a study in this database, or a folder, file or URL.
    """
    if name.startswith("#"):
        key = study_keys_by_name(transaction).get(name.removeprefix("#"))
        return key is not None and _is_known_worker(transaction, key, source)
    if is_postgres_url(name) or store.database.place.file is None:
        where = parse_location(name)
    else:
        path = store.database.place.file.parent / name
        where = parse_location(path / DATABASE_FILENAME) if path.is_dir() else parse_location(path)
    if where.file and not where.file.exists():
        return False  # the study has not been served yet
    database = Database(where, readonly=True)
    try:
        with database.read_transaction() as other_transaction:
            key, _ = find_study_key_and_name(other_transaction, where)
            return _is_known_worker(other_transaction, key, source)
    finally:
        database.close()


_SELECT_SECRET = sa.select(tables.study.c.secret).where(tables.study.c.key == named_sql_placeholder("study"))


def _is_known_worker(transaction: Transaction, study: int, source: ArrivalSource) -> bool:
    """Return whether a worker took part in a study. Workers whose ID was removed are recognised by its hash."""
    if (
        transaction.fetch_first(
            _SELECT_ANNOTATOR_BY_WORKER, study=study, platform=source.platform, worker=source.worker
        )
        is not None
    ):
        return True
    (secret,) = transaction.fetch_first(_SELECT_SECRET, study=study) or ("",)
    return (
        transaction.fetch_first(_SELECT_WORKER, study=study, hash=_keyed_worker_hash(str(secret), source)) is not None
    )


def record_arrival_and_consent(store: Store, transaction: Transaction, annotator: str, source: ArrivalSource) -> None:
    """Record a sign-in and, once per protocol, the consent to take part. Bind a platform worker to their browser."""
    traces = dict(zip(_SOURCE_FIELDS, astuple(source), strict=True))
    values = {"study": store.key, "annotator": annotator, "at": store.clock(), **traces}
    transaction.execute(sa.insert(tables.arrival).values(**values))
    if source.worker:
        hash = worker_hash(store, source)
        if transaction.fetch_first(_SELECT_WORKER, study=store.key, hash=hash) is None:
            worker = {"study": store.key, "hash": hash, "annotator": annotator, "device": source.device}
            transaction.execute(sa.insert(tables.worker).values(**worker))
        else:
            mine = (_W.study == store.key, _W.hash == hash)
            transaction.execute(sa.update(tables.worker).values(device=source.device).where(*mine))
    protocol, person = store.head.protocol, annotator_storage.get_annotator(store, transaction, annotator)
    has_consent_step = protocol.consent and "consent" not in store.head.settings.skip
    if has_consent_step and not find_step_record(protocol, person, "consent"):
        consented = with_updated_step_record(protocol, person, "consent", done=iso_timestamp(store.clock()))
        annotator_storage.replace_annotator(store, transaction, consented)


def worker_hash(store: Store, source: ArrivalSource) -> str:
    """Return the keyed hash of a platform worker ID, which is kept after the ID is removed."""
    return _keyed_worker_hash(store.head.secret, source)


def _keyed_worker_hash(secret: str, source: ArrivalSource) -> str:
    text = f"worker/{source.platform}/{source.worker}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


_W = tables.worker.c
_SELECT_WORKER = sa.select(_W.annotator, _W.device).where(
    _W.study == named_sql_placeholder("study"), _W.hash == named_sql_placeholder("hash")
)


_SELECT_BOUND_DEVICE = sa.select(_W.device).where(
    _W.study == named_sql_placeholder("study"), _W.annotator == named_sql_placeholder("annotator"), _W.device != ""
)


def read_browser_transfer_code(store: Store, transaction: Transaction, annotator: str) -> str:
    """Return the code with which a platform worker can continue in another browser, or an empty string."""
    row = transaction.fetch_first(_SELECT_BOUND_DEVICE, study=store.key, annotator=annotator)
    return _derive_transfer_code(store, annotator, str(row[0])) if row else ""


def _derive_transfer_code(store: Store, annotator: str, device: str) -> str:
    """Return an unguessable code of eight letters and digits that depends on the browser."""
    text = f"browser/{annotator}/{device}"
    return base64.b32encode(hmac.new(store.head.secret.encode(), text.encode(), hashlib.sha256).digest()).decode()[:8]


def unbind_browser(store: Store, transaction: Transaction, by: str, annotator: str) -> None:
    """Let a platform worker continue in another browser."""
    annotator_storage.get_annotator(store, transaction, annotator)  # raises an error for an unknown annotator
    mine = (_W.study == store.key, _W.annotator == annotator)
    transaction.execute(sa.update(tables.worker).values(device="").where(*mine))
    audit_log_storage.record_action(store, transaction, by, "released the browser", annotator=annotator)


_COUNT_SUBMITTED = sa.select(sa.func.count()).where(
    tables.annotation.c.study == named_sql_placeholder("study"),
    tables.annotation.c.annotator == named_sql_placeholder("annotator"),
    tables.annotation.c.phase == "work",
    tables.annotation.c.status == "submitted",
)


# --- removal of personal data ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonalDataCounts:
    """Number of stored items of personal data, by kind."""

    arrivals: int
    workers: int
    """Number of distinct worker IDs."""
    links: int
    sessions: int
    names: int = 0
    """Number of annotators identified by a name instead of a number."""


def count_personal_data(
    store: Store, transaction: Transaction, annotators: Iterable[str] | None = None
) -> PersonalDataCounts:
    """Count the personal data stored about the given annotators, or about all annotators."""
    named = None if annotators is None else list(annotators)
    mine = _personal_data_conditions_by_table(store, named)
    count = [sa.select(sa.func.count()).select_from(table).where(*only) for table, only in mine.items()]
    arrived, linked, signed = (int((transaction.fetch_first(statement) or (0,))[0]) for statement in count)
    workers = sa.select(sa.func.count(sa.distinct(_ARRIVAL.worker))).where(*mine[tables.arrival], _ARRIVAL.worker != "")
    names = len(personal_names_storage.find_named_annotators(store, transaction, named))
    return PersonalDataCounts(arrived, int((transaction.fetch_first(workers) or (0,))[0]), linked, signed, names)


def forget_personal_data(
    store: Store, transaction: Transaction, by: str, annotators: Iterable[str] | None = None
) -> PersonalDataCounts:
    """Remove worker IDs, devices, addresses, sessions, personal links and names of the given annotators, or of all.

    Annotations remain. IDs that are names become numbers, so that the study no longer identifies the annotators.
    """
    named = None if annotators is None else list(annotators)
    was = count_personal_data(store, transaction, named)
    for table, only in _personal_data_conditions_by_table(store, named).items():
        transaction.execute(sa.delete(table).where(*only))
    bound = () if named is None else (_W.annotator.in_(named),)
    transaction.execute(sa.update(tables.worker).values(device="").where(_W.study == store.key, *bound))
    numbers = personal_names_storage.forget_names(store, transaction, named)
    about = "all" if named is None else [numbers.get(id, id) for id in named]
    audit_log_storage.record_action(store, transaction, by, "deleted worker IDs and names", annotators=about)
    return was


def vacuum_database(database: Database) -> None:
    """Rewrite a database file, so that no removed data remains in its free pages or its journal."""
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
    """Return the SQL conditions that select personal data, by table."""
    named = None if annotators is None else list(annotators)
    kinds = {tables.arrival: _ARRIVAL.annotator, tables.link: tables.link.c.who, tables.session: tables.session.c.who}
    conditions: dict[sa.Table, tuple[sa.ColumnElement[bool], ...]] = {}
    for table, who in kinds.items():
        only = [table.c.study == store.key, *([table.c.kind == "annotator"] if "kind" in table.c else [])]
        conditions[table] = (*only, *([] if named is None else [who.in_(named)]))
    return conditions
