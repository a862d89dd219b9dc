"""Access to one study in a database."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.access_storage import Session, increment_study_change_count
from finecomb.collection.assignment_rules import AssignmentPlan, CellPlan, text_groups_by_document
from finecomb.collection.database import migrations, rows, tables
from finecomb.collection.database.backup import back_up_database, new_backup_path
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation
from finecomb.collection.database.record_import import import_records
from finecomb.collection.database.studies import find_or_create_study, find_study_key_and_name
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.database.unreadable_rows import READ_ERRORS, RowReader, describe_row_error
from finecomb.collection.database.writer import Writer
from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import REPLACED_BY_META, Annotation, Annotator, Document, Settings
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.judges.text_allocation import TextStrata

T = TypeVar("T")
P = ParamSpec("P")
StudyStatus = Literal["pilot", "open", "paused", "closed"]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class StudyState:
    """State of the whole study, reloaded after each change by a researcher."""

    state: StudyStatus
    settings: Settings
    protocols: dict[str, Protocol]
    """Protocols by ID, in the order in which they were added."""
    secret: str
    joining: int
    changed: int = 0
    """Number of changes to the study, by which a process notices changes made by another process."""

    @property
    def protocol(self) -> Protocol:
        """Current protocol, under which texts are assigned: the first protocol in the settings."""
        named = [self.protocols[id] for id in self.settings.protocols if id in self.protocols]
        if not named and not self.protocols:
            raise FinecombError("the study has no protocol; add one to the protocols/ folder")
        return (named or list(self.protocols.values()))[0]

    @property
    def annotators_per_document(self) -> int:
        """Number of annotators that each document needs."""
        return self.settings.annotators or self.protocol.work.annotators


_SELECT_STUDY_STATE = sa.select(
    tables.study.c.state,
    tables.study.c.settings,
    tables.study.c.secret,
    tables.study.c.joining,
    tables.study.c.changed,
).where(tables.study.c.key == named_sql_placeholder("study"))
_SELECT_SETTINGS = sa.select(tables.study.c.settings).where(tables.study.c.key == named_sql_placeholder("study"))
_SELECT_CHANGE_COUNT = sa.select(tables.study.c.changed).where(tables.study.c.key == named_sql_placeholder("study"))
_SELECT_TRANSACTION_ID = sa.select(
    sa.func.txid_snapshot_xmax(sa.func.txid_current_snapshot())
)  # number of write transactions in PostgreSQL
_SELECT_PROTOCOLS = (
    sa.select(tables.protocol.c.id, tables.protocol.c.body)
    .where(tables.protocol.c.study == named_sql_placeholder("study"))
    .order_by(tables.protocol.c.place)
)
_SELECT_DOCUMENTS = (
    sa.select(tables.document.c.id, tables.document.c.body)
    .where(tables.document.c.study == named_sql_placeholder("study"))
    .order_by(tables.document.c.place)
)
_SELECT_DOCUMENT = sa.select(tables.document.c.body).where(
    tables.document.c.study == named_sql_placeholder("study"), tables.document.c.id == named_sql_placeholder("id")
)
_SELECT_ANNOTATORS = (
    sa.select(tables.annotator.c.id, tables.annotator.c.body)
    .where(tables.annotator.c.study == named_sql_placeholder("study"))
    .order_by(tables.annotator.c.place)
)


class Store:
    """Study in a database that is being served. All writes go through the `run_` methods."""

    def __init__(self, database: Database, key: int, name: str, clock: Clock = time.time) -> None:
        self.database = database
        self.key = key
        self.name = name
        self.clock = clock
        self._writer: Writer | None = None
        self._lock = threading.Lock()
        self._documents: dict[str, Document] = {}
        self.sessions: dict[str, Session] = {}
        """Recently used sessions by cookie, cleared after each study change."""
        self._plan: AssignmentPlan | None = None
        self.audit_plan: AssignmentPlan | None = None
        """Plan of the marks to judge in an audit, cached until the next study change."""
        self.text_strata: TextStrata | None = None
        """Strata for adaptive allocation, cached until the next study change."""
        self.on_commit: Callable[[bool], None] = lambda _: None
        """Function called after each commit attempt, with True when it succeeded."""
        self.head = self._read_study_state()

    # --- writing -----------------------------------------------------------------------------------------------

    @property
    def writer(self) -> Writer:
        """Writer thread, started on first use."""
        with self._lock:
            if self._writer is None:
                self._writer = Writer(self.database, self._refresh_if_changed, lambda is_kept: self.on_commit(is_kept))
            return self._writer

    @property
    def title(self) -> str:
        """Title of the study. Without a title, the name of its folder or its name in the database."""
        file = self.database.place.file
        folder = file.resolve().parent.name if file and file.name == DATABASE_FILENAME else ""
        return self.head.settings.title or folder or self.name

    async def run_job(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run `job(store, transaction, ...)` on the writer thread. Return its result once the changes are on disk."""
        return await self.writer.run_job(lambda transaction: job(self, transaction, *args, **named))

    def run_job_sync(self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Run a job on the writer thread from synchronous code, and return its result once the changes are on disk."""
        return self.writer.run_job_sync(lambda transaction: job(self, transaction, *args, **named))

    def read(self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Run the read-only `job(store, transaction, ...)` on a consistent snapshot, and return its result."""
        with self.database.read_transaction() as transaction:
            return job(self, transaction, *args, **named)

    async def run_study_change(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run a job that changes the study itself: status, settings, protocols or documents."""
        result = await self.run_job(_run_and_count_change, lambda transaction: job(self, transaction, *args, **named))
        self.reload_study_state()
        return result

    def run_study_change_sync(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run a job that changes the study itself, from synchronous code."""
        result = self.run_job_sync(_run_and_count_change, lambda transaction: job(self, transaction, *args, **named))
        self.reload_study_state()
        return result

    def _refresh_if_changed(self, transaction: Transaction) -> None:
        """Reload the study state before a job when another process has changed it."""
        (changed,) = transaction.fetch_first(_SELECT_CHANGE_COUNT, study=self.key) or (0,)
        if changed != self.head.changed:
            self.reload_study_state()

    def refresh_and_check_current(self) -> bool:
        """Reload the study state if another process changed it, and return whether it was already up to date."""
        with self.database.read_transaction() as transaction:
            (changed,) = transaction.fetch_first(_SELECT_CHANGE_COUNT, study=self.key) or (0,)
        if changed != self.head.changed:
            self.reload_study_state()
            return False
        return True

    def read_data_version(self) -> int:
        """Return a number that changes with each commit by any process. It is used to invalidate caches."""
        if self.database.sqlite:
            return self.database.read_sqlite_data_version()
        with self.database.read_transaction() as transaction:
            (number,) = transaction.fetch_first(_SELECT_TRANSACTION_ID) or (0,)
        return int(number)

    def close(self) -> None:
        """Finish pending writes and close the database."""
        if self._writer:
            self._writer.close()
            self._writer = None
        self.database.close()

    # --- reading -----------------------------------------------------------------------------------------------

    def reload_study_state(self) -> None:
        """Reload the study state. Caches are cleared first, so that they are empty if reading fails."""
        self._documents.clear()
        self.sessions.clear()
        self._plan = self.audit_plan = None
        self.text_strata = None
        self.head = self._read_study_state()

    def _read_study_state(self) -> StudyState:
        with self.database.read_transaction() as transaction:
            state, settings, secret, joining, changed = (
                transaction.fetch_first(_SELECT_STUDY_STATE, study=self.key) or ()
            )
            protocols = transaction.fetch_all(_SELECT_PROTOCOLS, study=self.key)
        try:
            read = Settings.model_validate_json(settings)
        except READ_ERRORS as error:  # because serving the study with default settings would be worse
            why = f"the settings in the database cannot be read: {describe_row_error(error)}"
            raise FinecombError(f"{self.database.place}: {why}; run `finecomb repair` to fix them") from None
        by_id = {
            protocol.id: protocol.with_mode(read.mode if protocol.has_mode(read.mode) else "")
            for protocol in RowReader().read_records("protocol", Protocol, protocols)
        }
        return StudyState(state, read, by_id, secret, joining, changed)

    def assignment_plan(self) -> AssignmentPlan:
        """Return the plan of everything that can be assigned, cached until the next study change."""
        if self._plan is None:
            with self.database.read_transaction() as transaction:
                bodies = transaction.fetch_all(_SELECT_DOCUMENTS, study=self.key)
            metas: dict[str, dict[str, Any]] = {}
            for id, body in bodies:
                read_meta = functools.partial(lambda body: dict(from_json(body).get("meta", {})), body)
                if (meta := RowReader().read_record("document", id, read_meta)) is not None:  # else it is not assigned
                    metas[id] = meta
            names, checks = self.head.settings.strata, set(self.head.settings.attention_checks)
            design = self.head.settings.design if self.head.protocols else None
            within = self.head.protocol.work.within if self.head.protocols and design is None else ()
            metas = {id: meta for id, meta in metas.items() if REPLACED_BY_META not in meta}  # edited texts
            texts = {id: meta for id, meta in metas.items() if id not in checks}
            cells = design_cells(design, self.head.protocol) if design else []
            self._plan = AssignmentPlan(
                documents=[id for id in metas if id not in checks],
                strata={id: [(name, str(meta[name])) for name in names if name in meta] for id, meta in metas.items()},
                checks=[id for id in metas if id in checks],
                settings=text_groups_by_document(texts, within) if within else {},
                models={id: str(meta.get("model", "")) for id, meta in metas.items()},
                cells={
                    cell.name: CellPlan(cell, cell.matching_document_ids(texts), len(checks & metas.keys()))
                    for cell in cells
                },
                metas=texts if self.head.settings.allocation else {},
            )
        return self._plan

    def get_document(self, id: str) -> Document:
        """Return a document by ID. Documents do not change while they are served, so each is read once."""
        document = self._documents.get(id)
        if document is None:
            with self.database.read_transaction() as transaction:
                row = transaction.fetch_first(_SELECT_DOCUMENT, study=self.key, id=id)
            if row is None:
                raise FinecombError(f"unknown document {id!r}")
            document = self._documents[id] = Document.model_validate_json(row[0])
        return document

    def iter_records(self) -> Iterator[StudyItem]:
        """Yield a consistent snapshot of all records: settings, protocols, documents, annotators and annotations."""
        with self.database.read_transaction() as transaction:
            yield from iter_study_records(transaction, self.key)

    def read_study(self) -> Study:
        """Return a consistent snapshot of the study as data frames."""
        return Study.from_items(self.iter_records(), origin=str(self.database.place))

    def read_annotators(self) -> list[Annotator]:
        """Return all annotators of the study."""
        with self.database.read_transaction() as transaction:
            return list(
                RowReader().read_records(
                    "annotator", Annotator, transaction.fetch_all(_SELECT_ANNOTATORS, study=self.key)
                )
            )

    def read_annotations(self, only: sa.ColumnElement[bool]) -> list[Annotation]:
        """Return the annotations that match a condition on `tables.annotation`."""
        with self.database.read_transaction() as transaction:
            return rows.read_matching_annotations(transaction, self.key, only)


def _run_and_count_change(store: Store, transaction: Transaction, job: Callable[[Transaction], T]) -> T:
    """Run a job that changes the study itself, and increase the change count."""
    result = job(transaction)
    increment_study_change_count(store, transaction)
    return result


def iter_study_records(transaction: Transaction, study: int) -> Iterator[StudyItem]:
    """Yield all readable records of a study, followed by a note about each unreadable one."""
    reader = RowReader()
    (settings,) = transaction.fetch_first(_SELECT_SETTINGS, study=study) or ("{}",)
    yield reader.read_record("settings", "", lambda: Settings.model_validate_json(settings)) or Settings()
    kinds: list[tuple[Any, type[Protocol] | type[Document] | type[Annotator]]] = [
        (_SELECT_PROTOCOLS, Protocol),
        (_SELECT_DOCUMENTS, Document),
        (_SELECT_ANNOTATORS, Annotator),
    ]
    for statement, kind in kinds:
        yield from reader.read_records(kind.__name__.lower(), kind, transaction.execute(statement, study=study))
    yield from reader.drop_dangling_annotations(rows.read_all_annotations(transaction, study, reader))
    yield from reader.notes()


# --- opening ---------------------------------------------------------------------------------------------------


def open_store(
    place: StudyLocation, items: Iterable[StudyItem] | None = None, clock: Clock = time.time, durable: bool = True
) -> Store:
    """Open a study, and import `items`, if given. A missing study is created from them.

    The tables are upgraded first, after a backup. With `durable=False`, a power failure may lose data.
    """
    database = Database(place, durable=durable)
    migrate_database(database)
    try:
        with database.write_transaction() as transaction:
            key, name = (
                find_study_key_and_name(transaction, place)
                if items is None
                else find_or_create_study(transaction, place)
            )
            if items is not None:
                import_records(transaction, key, items)
    except BaseException:
        database.close()
        raise
    return Store(database, key, name, clock)


def migrate_database(database: Database) -> Path | None:
    """Upgrade the tables of a database. Return the path of the backup made before the upgrade, or None."""
    version = migrations.current_version(database)
    if version == migrations.latest_version():
        return None
    _reject_newer_version(version, database)
    saved = new_backup_path(database.place, f"before-{migrations.latest_version()}") if version else None
    if saved:
        every = Database(replace(database.place, study=""))  # all studies, because the upgrade changes all of them
        back_up_database(every, saved)
        every.close()
    migrations.upgrade(database)
    return saved


def read_study_records(place: StudyLocation) -> Iterator[StudyItem]:
    """Yield all records of a study, without changing the database."""
    database = Database(place, readonly=True)
    version = migrations.current_version(database)
    _reject_newer_version(version, database)
    if version not in migrations.READABLE_VERSIONS:
        what = (
            "made by an earlier version of Finecomb; run `finecomb serve` to upgrade it"
            if version
            else "contains no study"
        )
        raise FinecombError(f"{place}: {what}")
    try:
        with database.read_transaction() as transaction:
            key, _ = find_study_key_and_name(transaction, place)
            yield from iter_study_records(transaction, key)
    finally:
        database.close()


def _reject_newer_version(version: str, database: Database) -> None:
    if not migrations.is_known_version(version):
        raise FinecombError(
            f"{database.place}: the table version {version} is unknown; upgrade Finecomb to the version that wrote "
            "the database"
        )
