"""Database connections: opening, transactions and statements."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import NullPool

from finecomb.collection.database.location import StudyLocation
from finecomb.core.errors import FinecombError
from finecomb.core.optional_packages import import_optional_package

Row = tuple[Any, ...]
_BUSY_TIMEOUT_SECONDS = 30  # wait while another process writes
_CONNECT_TIMEOUT_SECONDS = 10  # wait for a database server that does not respond
_MAX_READERS = 16  # concurrent readers per process
_READER_WAIT_SECONDS = 0.5  # maximum wait for a reader slot
_ADVISORY_LOCK_ID = 0xF17EC0  # arbitrary, but the same for all Finecomb processes
_ENABLE_SYNCHRONOUS_COMMIT = (  # overrides servers that are configured to acknowledge a commit before it is on disk
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -32000")


decode_text = functools.partial(str, encoding="utf-8", errors="surrogateescape")
"""Decoder of SQLite's text. One invalid byte makes one record unreadable, and the driver's own error would quote it."""


class DatabaseError(FinecombError):
    """Temporary database failure, after which a save can be retried."""


@contextmanager
def explain_database_errors(place: StudyLocation) -> Iterator[None]:
    """Turn a database error in this block, such as a full disk, into one line for the user."""
    try:
        yield
    except (sqlite3.OperationalError, sa.exc.OperationalError) as error:
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        raise DatabaseError(
            f"{place}: cannot be written: {reason}; check that the disk is not full and the folder is writable"
        ) from None


class Transaction:
    """Open transaction on one connection. SQLAlchemy statements are compiled once, and values are bound by name."""

    def __init__(self, connection: Any, compiled: Callable[[sa.Executable], tuple[str, dict[str, Any]]]) -> None:
        self._connection = connection
        self._compiled = compiled

    def execute(self, statement: sa.Executable, **values: object) -> Any:
        """Execute a statement and return the driver's cursor."""
        sql, defaults = self._compiled(statement)
        return self._connection.execute(sql, {**defaults, **values} if defaults else values)

    def fetch_all(self, statement: sa.Executable, **values: object) -> list[Row]:
        """Execute a statement, and return all rows."""
        rows: list[Row] = self.execute(statement, **values).fetchall()
        return rows

    def fetch_first(self, statement: sa.Executable, **values: object) -> Row | None:
        """Execute a statement, and return the first row, or None when there is none."""
        row: Row | None = self.execute(statement, **values).fetchone()
        return row

    def execute_sql(self, sql: str) -> None:
        """Execute plain SQL such as COMMIT."""
        self._connection.execute(sql)


class Database:
    """SQLite file or PostgreSQL database with its connections."""

    def __init__(self, place: StudyLocation, readonly: bool = False, durable: bool = True) -> None:
        """Prepare a database. With `durable=False`, for temporary data, commits do not wait for the disk."""
        self.place = place
        self.readonly = readonly
        self.durable = durable
        self.sqlite = place.file is not None
        self.begin = "BEGIN IMMEDIATE" if self.sqlite else f"BEGIN; SELECT pg_advisory_xact_lock({_ADVISORY_LOCK_ID})"
        """Statement that begins a write transaction. Only one can be open at a time, across all processes."""
        self._idle: list[Any] = []
        self._places = threading.Semaphore(_MAX_READERS)
        self._inode: int | None = None
        self._version_lock = threading.Lock()
        self._version_connection: Any = None
        self.compiled = functools.lru_cache(maxsize=1024)(self._compile_statement)
        if self.sqlite:
            self._dialect: sa.Dialect = sqlite.dialect(paramstyle="named")
        else:
            self._dialect = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]

    def _compile_statement(self, statement: Any) -> tuple[str, dict[str, Any]]:
        compiled = statement.compile(dialect=self._dialect)
        if "POSTCOMPILE" in str(compiled):  # a list of values, which must be expanded into one parameter each
            blank = {name: None for name, bind in compiled.binds.items() if bind.required}
            expanded = compiled.construct_expanded_state(blank)
            return expanded.statement, dict(expanded.parameters)
        given = {name: bind.effective_value for name, bind in compiled.binds.items() if not bind.required}
        return str(compiled), given

    def connect(self) -> Any:
        """Open a new connection in autocommit mode."""
        file = self.place.file
        if file is None:
            return self._connect_postgres()
        is_new = not file.exists()
        mode = "ro" if self.readonly else "rwc" if self._inode is None else "rw"  # a missing file is not recreated
        uri = f"file:{quote(str(file.absolute()))}?mode={mode}"
        # Without a journal and the right to create one, nothing can change the file while it is read.
        if self.readonly and not os.access(file.parent, os.W_OK) and not file.with_name(f"{file.name}-wal").exists():
            uri += "&immutable=1"
        try:
            connection = sqlite3.connect(
                uri,
                timeout=_BUSY_TIMEOUT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
                cached_statements=512,
            )
            connection.text_factory = decode_text
            for pragma in _PRAGMAS[2:] if self.readonly else _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            if not self.durable:
                connection.execute("PRAGMA synchronous = OFF")
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.DatabaseError as error:
            is_unwritable = "readonly" in str(error) or "unable to open" in str(error)
            hint = "; check that its folder is writable" if is_unwritable else ""
            raise DatabaseError(f"{self.place}: cannot be opened as a SQLite database: {error}{hint}") from None
        if is_new:
            file.chmod(0o600)  # the file contains the key that signs cookies
        if self._inode is None:
            self._inode = file.stat().st_ino
        self.check_file_not_replaced()
        return connection

    def check_file_not_replaced(self) -> None:
        """Raise an error when the SQLite file was moved, deleted or replaced since it was opened."""
        if self.place.file is None or self._inode is None:
            return
        try:
            inode = self.place.file.stat().st_ino
        except OSError:
            raise DatabaseError(
                f"{self.place}: the file was moved or deleted while in use; move it back or restore a backup"
            ) from None
        if inode != self._inode:
            raise DatabaseError(f"{self.place}: the file was replaced while in use; restart the server")

    def _connect_postgres(self, autocommit: bool = True) -> Any:
        psycopg = import_optional_package("PostgreSQL requires", "psycopg")
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

    def read_sqlite_data_version(self) -> int:
        """Return SQLite's counter of commits by other connections, as seen by a connection that never writes."""
        with self._version_lock:
            if self._version_connection is None:
                self._version_connection = self.connect()
            (version,) = self._version_connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    @contextmanager
    def read_transaction(self) -> Iterator[Transaction]:
        """Yield a read transaction on a consistent snapshot."""
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
        """Wait for a reader slot. Slots limit the PostgreSQL connections, which all processes share.

        After a timeout, the reader continues without a slot. This prevents deadlocks between nested readers.
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
        """Return a connection with a new snapshot. Idle connections are reused unless the database was restarted."""
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
        """Yield a transaction that is committed at the end, or rolled back on an error."""
        connection = self.connect()
        try:
            connection.execute(self.begin)
            yield Transaction(connection, self.compiled)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def create_engine(self) -> sa.Engine:
        """Create an SQLAlchemy engine for the migrations."""
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
        with self._version_lock:
            if self._version_connection is not None:
                self._version_connection.close()
                self._version_connection = None
