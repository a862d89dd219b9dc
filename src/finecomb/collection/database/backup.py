"""Backups: a consistent copy of a database while it is in use, always a SQLite file; and the way back.

A backup carries a seal, a table with a digest of all its rows, so that anybody can tell whether it is as it was made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from finecomb.collection.database import migrations, tables
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.serving_lock import hold_study_lock
from finecomb.collection.database.studies import find_study_key_and_name, study_keys_by_name
from finecomb.collection.database.tables import bind_parameter
from finecomb.core.errors import FinecombError, ParameterError, param


def backup_path(where: StudyLocation, why: str = "backup") -> Path:
    """Beside a SQLite file, or in the current folder for PostgreSQL; the name says when and why."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return (where.file or Path(f"{where.study or 'study'}.db")).with_suffix(f".{why}-{stamp}.db")


def list_backups(where: StudyLocation) -> list[Path]:
    """Return the backups next to a study's file, or in the current folder for PostgreSQL, sorted by name."""
    folder = where.file.parent if where.file else Path()
    stem = where.file.stem if where.file else where.study or "study"
    return sorted(path for path in folder.glob(f"{stem}.*-*.db") if path != where.file)


def back_up(database: Database, target: Path) -> None:
    """Copy a database to a new SQLite file, as one moment saw it; of PostgreSQL, the study that is named, else all."""
    if target.exists():
        raise FinecombError(f"{target}: exists already; choose another name")
    with atomic_private_file(target) as temporary:
        if database.sqlite:
            _copy_sqlite_database(database, temporary)
        else:
            with open_migrated_database(parse_location(temporary), migrations.current_version(database)) as copy:
                _copy_rows(database, copy)
        _write_seal(temporary)


@contextmanager
def atomic_private_file(target: Path) -> Iterator[Path]:
    """A path beside `target`, for the eyes of its owner only; it gets the name of `target` when all is on disk."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FinecombError(f"{target}: cannot be written: {reason}; nothing was left there") from None
    finally:
        for left in temporary.parent.glob(f"{temporary.name}*"):  # with a journal beside it
            left.unlink()


def _copy_sqlite_database(source: Database, target: Path) -> None:
    with closing(source.connect()) as connection, closing(sqlite3.connect(target)) as to:
        connection.backup(to)
        to.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it


# --- the seal ----------------------------------------------------------------------------------------------------

_SEAL_TABLE = "backup_seal"


@dataclass(frozen=True, slots=True)
class BackupCheck:
    """A backup that is sound, and what it holds."""

    rows: int
    studies: tuple[str, ...]
    sealed: str
    """When it was made; empty for one without a seal, which an earlier Finecomb made."""


def _write_seal(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {_SEAL_TABLE}")
        digest, count = _row_digest_and_count(connection)
        connection.execute(
            f"CREATE TABLE {_SEAL_TABLE} (made TEXT NOT NULL, rows INTEGER NOT NULL, digest TEXT NOT NULL)"
        )
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        connection.execute(f"INSERT INTO {_SEAL_TABLE} VALUES (?, ?, ?)", (made, count, digest))
        connection.commit()


def _row_digest_and_count(connection: sqlite3.Connection) -> tuple[str, int]:
    """A digest of all rows of all tables, in whatever order they lie, and how many there are."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    total, count = 0, 0
    for (name,) in names:
        if name == _SEAL_TABLE or name.startswith("sqlite_"):
            continue
        for row in connection.execute(f'SELECT * FROM "{name}"'):
            total += int.from_bytes(hashlib.sha256(repr((name, row)).encode()).digest())
            count += 1
    return f"{total % 2**256:064x}", count


def verify_backup(file: Path) -> BackupCheck:
    """Whether a backup is as it was made: SQLite's own check, the version of its tables, and the digest of its rows."""
    if not file.is_file():
        raise FinecombError(f"{file}: no such file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)) as connection:
            return _verify_contents(connection, file)
    except sqlite3.Error as error:
        raise FinecombError(f"{file}: is not a sound backup: {error}") from None


def _verify_contents(connection: sqlite3.Connection, file: Path) -> BackupCheck:
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise FinecombError(f"{file}: is damaged: {problem}")
    if row := connection.execute("PRAGMA foreign_key_check").fetchone():
        raise FinecombError(f"{file}: is damaged: a row of the table {row[0]} belongs to nothing")
    (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone() or ("",)
    if not version or not migrations.is_known_version(version):
        raise FinecombError(f"{file}: was made by a later Finecomb (tables {version or 'missing'}); install that one")
    names = tuple(name for (name,) in connection.execute("SELECT name FROM study ORDER BY key"))
    if not names:
        raise FinecombError(f"{file}: holds no study")
    digest, count = _row_digest_and_count(connection)
    seal = connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (_SEAL_TABLE,)).fetchone()
    if seal is None:
        return BackupCheck(count, names, "")
    made, rows, sealed = connection.execute(f"SELECT made, rows, digest FROM {_SEAL_TABLE}").fetchone()
    if sealed != digest:
        raise FinecombError(
            f"{file}: was changed since it was made at {made}: it holds {count:,} rows, and {rows:,} were written"
        )
    return BackupCheck(count, names, made)


def _drop_seal(database: Database) -> None:
    with closing(database.connect()) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {_SEAL_TABLE}")


def _copy_rows(source: Database, target: Database) -> None:
    """Every row as it is, by the columns that the tables of that version have."""
    reflected = sa.MetaData()
    engine = target.create_engine()
    reflected.reflect(engine)
    engine.dispose()
    with source.read_transaction() as old, target.write_transaction() as new:
        study = find_study_key_and_name(old, source.place)[0] if source.place.study else None
        for table in reflected.sorted_tables:
            if table.name == "alembic_version":
                continue
            names = [column.name for column in table.columns]
            insert = sa.insert(table).values({name: bind_parameter(name) for name in names})
            for row in old.run(_select_rows(table, reflected, study)):
                new.run(insert, **dict(zip(names, row, strict=True)))


def _select_rows(table: sa.Table, every: sa.MetaData, study: int | None) -> sa.Select[Any]:
    """All rows of a table, or those of one study."""
    if study is None:
        return sa.select(table)
    if "study" in table.c:
        return sa.select(table).where(table.c.study == study)
    if table.name == "study":
        return sa.select(table).where(table.c.key == study)
    annotation = every.tables["annotation"]
    mine = sa.select(annotation.c.key).where(annotation.c.study == study)
    return sa.select(table).where(table.c.annotation.in_(mine))


@contextmanager
def open_migrated_database(where: StudyLocation, version: str = "head") -> Iterator[Database]:
    """A database whose tables have been brought to a version."""
    database = Database(where)
    try:
        migrations.upgrade(database, version)
        yield database
    finally:
        database.close()


# --- the way back ------------------------------------------------------------------------------------------------


def restore_backup(source: Path, target: StudyLocation, force: bool = False) -> Path | None:
    """Put a backup in the place of what is there; that is kept in a backup of its own, whose path is returned.

    The backup is verified first, and nobody may serve the study meanwhile.
    """
    with tempfile.TemporaryDirectory() as temporary, hold_study_lock(target, "restore"):
        copied = Path(shutil.copy(source, temporary))
        _verify_copied_backup(copied, source)
        with open_migrated_database(parse_location(copied)) as backup, open_migrated_database(target) as database:
            _drop_seal(backup)
            wanted = _studies_to_restore(backup, target)
            replaced = _back_up_replaced_studies(database, wanted, force)
            if database.sqlite:
                with closing(backup.connect()) as connection, closing(database.connect()) as to:
                    connection.backup(to)
            else:
                _transfer_studies(backup, database, wanted)
    return replaced


def _verify_copied_backup(copied: Path, source: Path) -> None:
    try:
        verify_backup(copied)
    except FinecombError as error:
        raise FinecombError(f"{error.text(param).replace(str(copied), str(source))}; nothing was changed") from None


def _studies_to_restore(backup: Database, target: StudyLocation) -> dict[str, int]:
    """The studies of a backup under the names they are to have; one study takes the name of its new place."""
    with backup.read_transaction() as transaction:
        keys = study_keys_by_name(transaction)
        if not target.study or target.file:
            return keys
        return {
            target.study: find_study_key_and_name(
                transaction, replace(backup.place, study=target.study if target.study in keys else "")
            )[0]
        }


def _back_up_replaced_studies(database: Database, wanted: Mapping[str, int], force: bool) -> Path | None:
    """Save what would be replaced."""
    with database.read_transaction() as transaction:
        there = study_keys_by_name(transaction)
    replaced = list(there) if database.sqlite else [name for name in there if name in wanted]
    if not replaced:
        return None
    if not force:
        raise ParameterError(
            f"{database.place}: holds a study already; say {param('force')} to replace it (a copy is kept)",
            parameter="force",
        )
    saved = backup_path(database.place, "replaced")
    back_up(database, saved)
    return saved


_TABLES_WITHOUT_KEY = (
    tables.protocol,
    tables.document,
    tables.annotator,
    tables.researcher,
    tables.link,
    tables.session,
    tables.worker,
)
_TABLES_WITH_KEY = (tables.annotation, tables.entry, tables.audit, tables.arrival, tables.attempt)
_INSERT_BY_TABLE = {
    table.name: sa.insert(table)
    .values({column.name: bind_parameter(column.name) for column in table.columns if column.name != "key"})
    .returning(table.c.key if "key" in table.c else sa.literal(0))
    for table in tables.metadata.sorted_tables
}


def _transfer_studies(source: Database, target: Database, wanted: Mapping[str, int]) -> None:
    """Studies from one database to another that may hold more; keys are counted anew."""
    with source.read_transaction() as old, target.write_transaction() as new:
        for name, key in wanted.items():
            _delete_study(new, name)
            row = old.one(sa.select(tables.study).where(tables.study.c.key == key)) or ()
            values = dict(zip(tables.study.c.keys(), row, strict=True)) | {"name": name}
            _StudyTransfer(old, new, values.pop("key"), _insert_returning_key(new, tables.study, values)).run()


def _insert_returning_key(transaction: Transaction, table: sa.Table, values: Mapping[str, Any]) -> int:
    (key,) = transaction.one(_INSERT_BY_TABLE[table.name], **values) or (0,)
    return int(key)


class _StudyTransfer:
    """One study on its way from one database to another."""

    def __init__(self, old: Transaction, new: Transaction, study: int, to: int) -> None:
        self.old, self.new, self.study, self.to = old, new, study, to
        self.keys: dict[int, int] = {}

    def run(self) -> None:
        for table in _TABLES_WITHOUT_KEY:
            self._copy(table, _select_rows(table, tables.metadata, self.study))
        for table in _TABLES_WITH_KEY:
            self._copy(table, _select_rows(table, tables.metadata, self.study).order_by(table.c.key))
        self._copy(tables.change, _select_rows(tables.change, tables.metadata, self.study))

    def _copy(self, table: sa.Table, rows: sa.Select[Any]) -> None:
        for row in self.old.run(rows):
            values = dict(zip(table.c.keys(), row, strict=True))
            if "study" in values:
                values["study"] = self.to
            if table in (tables.entry, tables.change):
                values["annotation"] = self.keys[values["annotation"]]
            key = values.pop("key", None)
            new_key = _insert_returning_key(self.new, table, values)
            if table is tables.annotation:
                self.keys[key] = new_key


def _delete_study(transaction: Transaction, name: str) -> None:
    """Remove a study with all that belongs to it."""
    key = study_keys_by_name(transaction).get(name)
    if key is None:
        return
    mine = sa.select(tables.annotation.c.key).where(tables.annotation.c.study == key)
    transaction.run(sa.delete(tables.change).where(tables.change.c.annotation.in_(mine)))
    for table in (*reversed(_TABLES_WITH_KEY), *_TABLES_WITHOUT_KEY):
        transaction.run(sa.delete(table).where(table.c.study == key))
    transaction.run(sa.delete(tables.study).where(tables.study.c.key == key))
