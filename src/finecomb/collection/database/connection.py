"""A database: how it is opened, brought up to date and asked."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from finecomb.collection.database.location import StudyLocation
from finecomb.core.errors import FinecombError
from finecomb.core.optional_packages import optional_package

Row = tuple[Any, ...]
_BUSY_TIMEOUT_SECONDS = 30  # seconds to wait for another process that writes
_CONNECT_TIMEOUT_SECONDS = 10  # seconds to wait for a database that does not answer
_MAX_READERS = 16  # who read at the same time, in one process
_READER_WAIT_SECONDS = 0.5  # seconds to wait for a place among them
_ADVISORY_LOCK_ID = 0xF17EC0  # any number, the same for every Finecomb
_ENABLE_SYNCHRONOUS_COMMIT = (  # where the server was set up to answer before a commit is on disk, not for us
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -32000")


class DatabaseError(FinecombError):
    """The database cannot be used at the moment; whoever wanted to save may try again."""


class Transaction:
    """Asks one connection of the driver. Statements are SQLAlchemy's, compiled once; values are bound by name."""

    def __init__(self, connection: Any, compiled: Callable[[sa.Executable], tuple[str, dict[str, Any]]]) -> None:
        self._connection = connection
        self._compiled = compiled

    def run(self, statement: sa.Executable, **values: object) -> Any:
        """Do it; returns the driver's cursor."""
        sql, defaults = self._compiled(statement)
        return self._connection.execute(sql, {**defaults, **values} if defaults else values)

    def all(self, statement: sa.Executable, **values: object) -> list[Row]:
        """Every row."""
        rows: list[Row] = self.run(statement, **values).fetchall()
        return rows

    def one(self, statement: sa.Executable, **values: object) -> Row | None:
        """The first row, if there is one."""
        row: Row | None = self.run(statement, **values).fetchone()
        return row

    def command(self, sql: str) -> None:
        """A bare command such as COMMIT."""
        self._connection.execute(sql)


class Database:
    """One SQLite file or one PostgreSQL database, and its connections."""

    def __init__(self, place: StudyLocation, readonly: bool = False, durable: bool = True) -> None:
        """A database that is not `durable` does not wait for the disk: for what is thrown away in the end."""
        self.place = place
        self.readonly = readonly
        self.durable = durable
        self.sqlite = place.file is not None
        self.begin = "BEGIN IMMEDIATE" if self.sqlite else f"BEGIN; SELECT pg_advisory_xact_lock({_ADVISORY_LOCK_ID})"
        """Begins a transaction that writes; there is never more than one, whichever process it is in."""
        self._idle: list[Any] = []
        self._places = threading.Semaphore(_MAX_READERS)
        self._inode: int | None = None
        self.compiled = functools.lru_cache(maxsize=1024)(self._compile_statement)
        self._dialect = _build_sql_dialect(self.sqlite)

    def _compile_statement(self, statement: Any) -> tuple[str, dict[str, Any]]:
        compiled = statement.compile(dialect=self._dialect)
        if "POSTCOMPILE" in str(compiled):  # a list of values, which has to be written out
            blank = {name: None for name, bind in compiled.binds.items() if bind.required}
            expanded = compiled.construct_expanded_state(blank)
            return expanded.statement, dict(expanded.parameters)
        given = {name: bind.effective_value for name, bind in compiled.binds.items() if not bind.required}
        return str(compiled), given

    def connect(self) -> Any:
        """A new connection of the driver, in which every command stands for itself unless a BEGIN came before."""
        return self._connect_sqlite(self.place.file) if self.place.file else self._connect_postgres()

    def _connect_sqlite(self, file: Path) -> sqlite3.Connection:
        is_new = not file.exists()
        mode = "ro" if self.readonly else "rwc" if self._inode is None else "rw"  # a lost file is not made anew
        uri = f"file:{quote(str(file.absolute()))}?mode={mode}"
        try:
            connection = sqlite3.connect(
                uri,
                timeout=_BUSY_TIMEOUT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
                cached_statements=512,
            )
            for pragma in _PRAGMAS[2:] if self.readonly else _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            if not self.durable:
                connection.execute("PRAGMA synchronous = OFF")
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.DatabaseError as error:
            raise DatabaseError(
                f"{self.place}: cannot be opened as a SQLite database: {_sqlite_error_message(error)}"
            ) from None
        if is_new:
            file.chmod(0o600)  # it holds what signs cookies
        if self._inode is None:
            self._inode = file.stat().st_ino
        self.check_file()
        return connection

    def check_file(self) -> None:
        """Refuse to go on where the file of a SQLite database was moved, deleted or replaced since it was opened."""
        if self.place.file is None or self._inode is None:
            return
        try:
            inode = self.place.file.stat().st_ino
        except OSError:
            raise DatabaseError(f"{self.place}: was moved or deleted while it was in use; put it back") from None
        if inode != self._inode:
            raise DatabaseError(f"{self.place}: was replaced while it was in use; restart the server")

    def _connect_postgres(self, autocommit: bool = True) -> Any:
        psycopg = _import_psycopg()
        try:
            connection = psycopg.connect(
                self.place.url.replace("+psycopg", "", 1),
                autocommit=autocommit,
                connect_timeout=_CONNECT_TIMEOUT_SECONDS,
            )
        except psycopg.OperationalError as error:
            raise DatabaseError(f"{self.place}: cannot be reached: {str(error).strip().splitlines()[0]}") from None
        if autocommit:
            connection.execute(_ENABLE_SYNCHRONOUS_COMMIT)
        return connection

    @contextmanager
    def read_transaction(self) -> Iterator[Transaction]:
        """A snapshot: everything asked inside sees the same state, whatever is written meanwhile."""
        with self._reader_slot():
            connection = self._begin_snapshot()
            try:
                yield Transaction(connection, self.compiled)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)

    @contextmanager
    def _reader_slot(self) -> Iterator[None]:
        """One of the places of those who read from PostgreSQL, which has few connections for all processes together.

        Who has waited for a while goes on without one, e.g. somebody who reads while reading.
        """
        if self.sqlite:
            yield
            return
        has_place = self._places.acquire(timeout=_READER_WAIT_SECONDS)
        try:
            yield
        finally:
            if has_place:
                self._places.release()

    def _begin_snapshot(self) -> Any:
        """A connection in a new snapshot: an idle one, unless the database was restarted since."""
        begin = "BEGIN" if self.sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self.connect()
                connection.execute(begin)
                return connection
            with contextlib.suppress(Exception):
                connection.execute(begin)
                return connection

    @contextmanager
    def write_transaction(self) -> Iterator[Transaction]:
        """One transaction that is written or, when anything fails, leaves everything as it was."""
        connection = self.connect()
        try:
            connection.execute(self.begin)
            yield Transaction(connection, self.compiled)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def create_engine(self) -> sa.Engine:
        """For migrations, which SQLAlchemy and Alembic run."""
        if not self.sqlite:
            plain = functools.partial(self._connect_postgres, autocommit=False)
            return sa.create_engine("postgresql+psycopg://", creator=plain, poolclass=NullPool)
        engine = sa.create_engine("sqlite+pysqlite://", creator=self.connect, poolclass=NullPool)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()


def _sqlite_error_message(error: sqlite3.DatabaseError) -> str:
    hint = "; is its folder writable?" if "readonly" in str(error) or "unable to open" in str(error) else ""
    return f"{error}{hint}"


def _import_psycopg() -> Any:
    return optional_package("PostgreSQL needs", "psycopg")


def _build_sql_dialect(sqlite: bool) -> sa.Dialect:
    """How statements are written for the driver: both take values by name."""
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.dialects import sqlite as sqlite_dialect

    return sqlite_dialect.dialect(paramstyle="named") if sqlite else postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]
