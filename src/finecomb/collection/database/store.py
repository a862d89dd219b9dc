"""One study in a database: what it holds, and the door to changing it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection.access_storage import Session, increment_study_change_count
from finecomb.collection.assignment_rules import AssignmentPlan, CellPlan, settings_by_document
from finecomb.collection.database import migrations, rows, tables
from finecomb.collection.database.backup import back_up, backup_path
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation
from finecomb.collection.database.record_import import import_records
from finecomb.collection.database.studies import find_or_create_study, find_study_key_and_name
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.database.unreadable_rows import READ_ERRORS, RowReader, describe_row_error
from finecomb.collection.database.writer import Writer
from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Settings
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.judges.text_allocation import TextStrata

T = TypeVar("T")
P = ParamSpec("P")
StudyStatus = Literal["pilot", "open", "paused", "closed"]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class StudyState:
    """What holds for the whole study; read once and again after a researcher changed something."""

    state: StudyStatus
    settings: Settings
    protocols: dict[str, Protocol]
    """By name and version, in the order they came."""
    secret: str
    joining: int
    changed: int = 0
    """Counts what every process that serves the study must hear of."""

    @property
    def protocol(self) -> Protocol:
        """The one that texts are given out under: the first that the settings name."""
        named = [self.protocols[id] for id in self.settings.protocols if id in self.protocols]
        if not named and not self.protocols:
            raise FinecombError("the study has no protocol; add one to its folder, under protocols/")
        return (named or list(self.protocols.values()))[0]

    @property
    def annotators_per_document(self) -> int:
        """How many annotators each document should get."""
        return self.settings.annotators or self.protocol.work.annotators


_SELECT_STUDY_STATE = sa.select(
    tables.study.c.state,
    tables.study.c.settings,
    tables.study.c.secret,
    tables.study.c.joining,
    tables.study.c.changed,
).where(tables.study.c.key == bind_parameter("study"))
_SELECT_SETTINGS = sa.select(tables.study.c.settings).where(tables.study.c.key == bind_parameter("study"))
_SELECT_CHANGE_COUNT = sa.select(tables.study.c.changed).where(tables.study.c.key == bind_parameter("study"))
_SELECT_TRANSACTION_ID = sa.select(
    sa.func.txid_snapshot_xmax(sa.func.txid_current_snapshot())
)  # PostgreSQL's count of writers
_SELECT_PROTOCOLS = (
    sa.select(tables.protocol.c.id, tables.protocol.c.body)
    .where(tables.protocol.c.study == bind_parameter("study"))
    .order_by(tables.protocol.c.place)
)
_SELECT_DOCUMENTS = (
    sa.select(tables.document.c.id, tables.document.c.body)
    .where(tables.document.c.study == bind_parameter("study"))
    .order_by(tables.document.c.place)
)
_SELECT_DOCUMENT = sa.select(tables.document.c.body).where(
    tables.document.c.study == bind_parameter("study"), tables.document.c.id == bind_parameter("id")
)
_SELECT_ANNOTATORS = (
    sa.select(tables.annotator.c.id, tables.annotator.c.body)
    .where(tables.annotator.c.study == bind_parameter("study"))
    .order_by(tables.annotator.c.place)
)


class Store:
    """One study in a database that is being served. `do` and `change` are the only ways to write."""

    def __init__(self, database: Database, key: int, name: str, clock: Clock = time.time) -> None:
        self.database = database
        self.key = key
        self.name = name
        self.clock = clock
        self._writer: Writer | None = None
        self._lock = threading.Lock()
        self._documents: dict[str, Document] = {}
        self.sessions: dict[str, Session] = {}
        """Those who came by lately, by the hash of their token; forgotten after every `change`."""
        self._plan: AssignmentPlan | None = None
        self.audit_plan: AssignmentPlan | None = None
        """The marks that an audit gives out: read once, and again after a `change`."""
        self.text_strata: TextStrata | None = None
        """Where texts are drawn so that an interval shrinks; forgotten after every `change`."""
        self.on_commit: Callable[[bool], None] = lambda _: None
        """Hears of every commit: whether it was kept."""
        self.head = self._read_study_state()

    # --- writing -----------------------------------------------------------------------------------------------

    @property
    def writer(self) -> Writer:
        """Started when first used."""
        with self._lock:
            if self._writer is None:
                self._writer = Writer(self.database, self._refresh_if_changed, lambda is_kept: self.on_commit(is_kept))
            return self._writer

    @property
    def title(self) -> str:
        """What people call the study: its title, else the name of its folder, else its name in the database."""
        file = self.database.place.file
        folder = file.resolve().parent.name if file and file.name == DATABASE_FILENAME else ""
        return self.head.settings.title or folder or self.name

    async def run_job(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run `job(store, transaction, ...)` in the writer; returns when what it did is on disk."""
        return await self.writer.run_job(lambda transaction: job(self, transaction, *args, **named))

    def run_job_sync(self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs) -> T:
        """The same for code that is not asynchronous."""
        return self.writer.run_job_sync(lambda transaction: job(self, transaction, *args, **named))

    async def change_study(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """As `do`, for what changes the study itself: state, settings, protocols, documents."""
        result = await self.run_job(_run_and_count_change, lambda transaction: job(self, transaction, *args, **named))
        self.refresh()
        return result

    def change_study_sync(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """As `change`, for code that is not asynchronous."""
        result = self.run_job_sync(_run_and_count_change, lambda transaction: job(self, transaction, *args, **named))
        self.refresh()
        return result

    def _refresh_if_changed(self, transaction: Transaction) -> None:
        """Before changes are made: hear of what another process changed about the study."""
        (changed,) = transaction.one(_SELECT_CHANGE_COUNT, study=self.key) or (0,)
        if changed != self.head.changed:
            self.refresh()

    def is_current(self) -> bool:
        """Whether no other process changed the study since its head was read; reads it anew where one did."""
        with self.database.read_transaction() as transaction:
            (changed,) = transaction.one(_SELECT_CHANGE_COUNT, study=self.key) or (0,)
        if changed != self.head.changed:
            self.refresh()
            return False
        return True

    @property
    def commit_count(self) -> int:
        """How often this process wrote something since the start."""
        return self._writer.commits if self._writer else 0

    def data_version(self) -> int:
        """A number that grows with everything that is written, by whichever process: what is older may be stale."""
        if self.database.sqlite:
            return self.commit_count
        with self.database.read_transaction() as transaction:
            (number,) = transaction.one(_SELECT_TRANSACTION_ID) or (0,)
        return int(number)

    def close(self) -> None:
        """Write what is waiting and let go of the database."""
        if self._writer:
            self._writer.close()
            self._writer = None
        self.database.close()

    # --- reading -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read again what holds for the whole study; what may be stale is forgotten first, should reading fail."""
        self._documents.clear()
        self.sessions.clear()
        self._plan = self.audit_plan = None
        self.text_strata = None
        self.head = self._read_study_state()

    def _read_study_state(self) -> StudyState:
        with self.database.read_transaction() as transaction:
            state, settings, secret, joining, changed = transaction.one(_SELECT_STUDY_STATE, study=self.key) or ()
            protocols = transaction.all(_SELECT_PROTOCOLS, study=self.key)
        read = self._parse_settings(settings)
        by_id = {
            protocol.id: protocol.in_mode(read.mode if protocol.has_mode(read.mode) else "")
            for protocol in RowReader().read_records("protocol", Protocol, protocols)
        }
        return StudyState(state, read, by_id, secret, joining, changed)

    def _parse_settings(self, body: str) -> Settings:
        """The settings; a study is not served under others than its own."""
        try:
            return Settings.model_validate_json(body)
        except READ_ERRORS as error:
            why = f"the settings in the database cannot be read: {describe_row_error(error)}"
            raise FinecombError(f"{self.database.place}: {why}; `finecomb repair` mends them") from None

    def assignment_plan(self) -> AssignmentPlan:
        """What there is to give out; read once."""
        if self._plan is None:
            with self.database.read_transaction() as transaction:
                bodies = transaction.all(_SELECT_DOCUMENTS, study=self.key)
            metas = {id: meta for id, body in bodies if (meta := _parse_document_meta(id, body)) is not None}
            self._plan = _build_assignment_plan(metas, self.head)
        return self._plan

    def document(self, id: str) -> Document:
        """A document by id; documents do not change while they are served, so each is read once."""
        document = self._documents.get(id)
        if document is None:
            with self.database.read_transaction() as transaction:
                row = transaction.one(_SELECT_DOCUMENT, study=self.key, id=id)
            if row is None:
                raise FinecombError(f"no document has the id {id!r}")
            document = self._documents[id] = Document.model_validate_json(row[0])
        return document

    def items(self) -> Iterator[StudyItem]:
        """Everything, as one moment saw it: settings, protocols, documents, annotators, annotations."""
        with self.database.read_transaction() as transaction:
            yield from iter_study_records(transaction, self.key)

    def study(self) -> Study:
        """Everything as frames."""
        return Study.from_items(self.items(), origin=str(self.database.place))

    def annotators(self) -> list[Annotator]:
        """Everybody who took part or may."""
        with self.database.read_transaction() as transaction:
            return list(
                RowReader().read_records("annotator", Annotator, transaction.all(_SELECT_ANNOTATORS, study=self.key))
            )

    def annotations(self, only: sa.ColumnElement[bool]) -> list[Annotation]:
        """Those for which a condition on `tables.annotation` holds."""
        with self.database.read_transaction() as transaction:
            return rows.read_matching_annotations(transaction, self.key, only)


def _run_and_count_change(store: Store, transaction: Transaction, job: Callable[[Transaction], T]) -> T:
    """Do what changes the study itself, and count it."""
    result = job(transaction)
    increment_study_change_count(store, transaction)
    return result


def _parse_document_meta(id: str, body: str) -> dict[str, Any] | None:
    """The facts about a document; None for one that cannot be read and so is not given out."""
    return RowReader().read_record("document", id, lambda: dict(from_json(body).get("meta", {})))


def _build_assignment_plan(metas: dict[str, dict[str, Any]], head: StudyState) -> AssignmentPlan:
    names, checks = head.settings.strata, set(head.settings.attention_checks)
    design = head.settings.design if head.protocols else None
    within = head.protocol.work.within if head.protocols and design is None else ()
    texts = {id: meta for id, meta in metas.items() if id not in checks}
    cells = design_cells(design, head.protocol) if design else []
    return AssignmentPlan(
        documents=[id for id in metas if id not in checks],
        strata={id: [(name, str(meta[name])) for name in names if name in meta] for id, meta in metas.items()},
        checks=[id for id in metas if id in checks],
        settings=settings_by_document(texts, within) if within else {},
        models={id: str(meta.get("model", "")) for id, meta in metas.items()},
        cells={cell.name: CellPlan(cell, cell.documents(texts), len(checks & metas.keys())) for cell in cells},
        metas=texts if head.settings.allocation else {},
    )


def iter_study_records(transaction: Transaction, study: int) -> Iterator[StudyItem]:
    """Every record of a study that can be read, then a note about each that cannot."""
    reader = RowReader()
    (settings,) = transaction.one(_SELECT_SETTINGS, study=study) or ("{}",)
    yield reader.read_record("settings", "", lambda: Settings.model_validate_json(settings)) or Settings()
    kinds: list[tuple[Any, type[Protocol] | type[Document] | type[Annotator]]] = [
        (_SELECT_PROTOCOLS, Protocol),
        (_SELECT_DOCUMENTS, Document),
        (_SELECT_ANNOTATORS, Annotator),
    ]
    for statement, kind in kinds:
        yield from reader.read_records(kind.__name__.lower(), kind, transaction.run(statement, study=study))
    yield from reader.drop_dangling_annotations(rows.read_all_annotations(transaction, study, reader))
    yield from reader.notes()


# --- opening ---------------------------------------------------------------------------------------------------


def open_store(
    place: StudyLocation, items: Iterable[StudyItem] | None = None, clock: Clock = time.time, durable: bool = True
) -> Store:
    """A study to be served. `items`, where given, are what its folder holds: a new study is made of them.

    Tables are brought up to date first, after a backup. One that is not `durable` is lost with the machine's power.
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
    """Bring the tables up to date; returns the backup that was made before, if one was needed."""
    version = migrations.current_version(database)
    if version == migrations.latest_version():
        return None
    _reject_newer_version(version, database)
    saved = backup_path(database.place, f"before-{migrations.latest_version()}") if version else None
    if saved:
        every = Database(replace(database.place, study=""))  # all studies, since all are changed
        back_up(every, saved)
        every.close()
    migrations.upgrade(database)
    return saved


def read_study_records(place: StudyLocation) -> Iterator[StudyItem]:
    """Every record of a study, read without changing anything."""
    database = Database(place, readonly=True)
    version = migrations.current_version(database)
    _reject_newer_version(version, database)
    if version not in migrations.READABLE_VERSIONS:
        what = "was made by an older Finecomb; `finecomb serve` brings it up to date" if version else "holds no study"
        raise FinecombError(f"{place}: {what}")
    try:
        with database.read_transaction() as transaction:
            key, _ = find_study_key_and_name(transaction, place)
            yield from iter_study_records(transaction, key)
    finally:
        database.close()


def _reject_newer_version(version: str, database: Database) -> None:
    if not migrations.is_known_version(version):
        raise FinecombError(f"{database.place}: was made by a later Finecomb (tables {version}); install that one")
