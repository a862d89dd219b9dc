"""Backups: consistent copies of a database in use, always as a SQLite file, and their restoration.

Each backup contains a seal: a table with a digest of all rows, which shows whether the file was changed later.
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
from finecomb.collection.database.connection import Database, Transaction, decode_text
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.place_binding import end_all_sessions
from finecomb.collection.database.serving_lock import hold_study_lock
from finecomb.collection.database.studies import find_study_key_and_name, study_keys_by_name
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.core.errors import FinecombError, ParameterError, param


def new_backup_path(where: StudyLocation, why: str = "backup") -> Path:
    """Return the path for a new backup. The file name states the time and the purpose.

    The path is next to the SQLite file, or in the current folder for PostgreSQL.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return (where.file or Path(f"{where.study or 'study'}.db")).with_suffix(f".{why}-{stamp}.db")


def list_backups(where: StudyLocation) -> list[Path]:
    """Return the backups next to a study's file, or in the current folder for PostgreSQL, sorted by name."""
    folder = where.file.parent if where.file else Path()
    stem = where.file.stem if where.file else where.study or "study"
    return sorted(path for path in folder.glob(f"{stem}.*-*.db") if path != where.file)


def back_up_database(database: Database, target: Path) -> None:
    """Copy a consistent snapshot of a database, or of one named PostgreSQL study, to a new SQLite file."""
    if target.exists():
        raise FinecombError(f"{target}: file already exists; use another name")
    with atomic_private_file(target) as temporary:
        if database.sqlite:
            with closing(database.connect()) as connection, closing(sqlite3.connect(temporary)) as to:
                connection.backup(to)
                to.execute("PRAGMA journal_mode = DELETE")  # a single file, without a separate journal
        else:
            with open_and_migrate_database(parse_location(temporary), migrations.current_version(database)) as copy:
                # Copy all rows, with the columns of the source's version
                reflected = sa.MetaData()
                engine = copy.create_engine()
                reflected.reflect(engine)
                engine.dispose()
                with database.read_transaction() as old, copy.write_transaction() as new:
                    study = find_study_key_and_name(old, database.place)[0] if database.place.study else None
                    for table in reflected.sorted_tables:
                        if table.name == "alembic_version":
                            continue
                        names = [column.name for column in table.columns]
                        insert = sa.insert(table).values({name: named_sql_placeholder(name) for name in names})
                        for row in old.execute(_select_rows(table, reflected, study)):
                            new.execute(insert, **dict(zip(names, row, strict=True)))
        with closing(sqlite3.connect(temporary)) as sealed:
            sealed.execute(f"DROP TABLE IF EXISTS {_SEAL_TABLE}")
            digest, count = _row_digest_and_count(sealed)
            sealed.execute(
                f"CREATE TABLE {_SEAL_TABLE} (made TEXT NOT NULL, rows INTEGER NOT NULL, digest TEXT NOT NULL)"
            )
            timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            sealed.execute(f"INSERT INTO {_SEAL_TABLE} VALUES (?, ?, ?)", (timestamp, count, digest))
            sealed.commit()


@contextmanager
def atomic_private_file(target: Path) -> Iterator[Path]:
    """Yield a temporary path that only its owner can read. Once the file is on disk, rename it to `target`."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FinecombError(f"{target}: cannot be written ({reason}); the incomplete file was deleted") from None
    finally:
        for left in temporary.parent.glob(f"{temporary.name}*"):  # and its journal
            left.unlink()


# --- seal --------------------------------------------------------------------------------------------------------

_SEAL_TABLE = "backup_seal"


@dataclass(frozen=True, slots=True)
class BackupCheck:
    """Facts about a verified backup."""

    rows: int
    studies: tuple[str, ...]
    sealed: str
    """Time at which the backup was made; empty for backups from earlier versions, which have no seal."""


def _row_digest_and_count(connection: sqlite3.Connection) -> tuple[str, int]:
    """Return a digest of all rows of all tables, independent of their order, and the number of rows."""
    connection.text_factory = decode_text  # a damaged record is backed up like any other
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
    """Verify a backup by SQLite's integrity check, the version of its tables and the digest of its rows."""
    if not file.is_file():
        raise FinecombError(f"{file}: no such file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)) as connection:
            (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if problem != "ok":
                raise FinecombError(f"{file}: the file is damaged ({problem}); use another backup")
            if row := connection.execute("PRAGMA foreign_key_check").fetchone():
                raise FinecombError(
                    f"{file}: the file is damaged (table {row[0]} refers to a missing row); use another backup"
                )
            (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone() or ("",)
            if not version:
                raise FinecombError(
                    f"{file}: not a valid backup (the version of its tables is missing); use another backup"
                )
            if not migrations.is_known_version(version):
                raise FinecombError(
                    f"{file}: the table version {version} is unknown; "
                    "upgrade Finecomb to the version that wrote the file"
                )
            names = tuple(name for (name,) in connection.execute("SELECT name FROM study ORDER BY key"))
            if not names:
                raise FinecombError(f"{file}: contains no study; use another backup")
            digest, count = _row_digest_and_count(connection)
            seal = connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (_SEAL_TABLE,)).fetchone()
            if seal is None:
                return BackupCheck(count, names, "")
            timestamp, rows, sealed = connection.execute(f"SELECT made, rows, digest FROM {_SEAL_TABLE}").fetchone()
            if sealed != digest:
                difference = "" if count == rows else f" ({count:,} rows instead of {rows:,})"
                raise FinecombError(
                    f"{file}: the file was modified after it was written at {timestamp}{difference}; use another backup"
                )
            return BackupCheck(count, names, timestamp)
    except sqlite3.Error as error:
        raise FinecombError(f"{file}: not a valid backup ({error}); use another backup") from None


def _select_rows(table: sa.Table, every: sa.MetaData, study: int | None) -> sa.Select[Any]:
    """Select all rows of a table, or those of one study."""
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
def open_and_migrate_database(where: StudyLocation, version: str = "head") -> Iterator[Database]:
    """Open a database, and upgrade its tables to the given version."""
    database = Database(where)
    try:
        migrations.upgrade(database, version)
        yield database
    finally:
        database.close()


# --- restoration -------------------------------------------------------------------------------------------------


def restore_backup(source: Path, target: StudyLocation, force: bool = False) -> Path | None:
    """Restore a study from a backup. Return the path of a new backup of the replaced data, or None without any.

    The backup is verified first. No server may run on the study at the same time.
    """
    with tempfile.TemporaryDirectory() as temporary, hold_study_lock(target, "restore"):
        copied = Path(shutil.copy(source, temporary))
        try:
            verify_backup(copied)
        except FinecombError as error:
            raise FinecombError(
                f"{error.format_message(param).replace(str(copied), str(source))}; the study is as it was before"
            ) from None
        with open_and_migrate_database(parse_location(copied)) as backup, open_and_migrate_database(target) as database:
            with closing(backup.connect()) as connection:
                connection.execute(f"DROP TABLE IF EXISTS {_SEAL_TABLE}")
            with backup.read_transaction() as transaction:
                wanted = study_keys_by_name(transaction)
                if target.study and not target.file:
                    # If the backup has only one study, it takes the target's name.
                    place = replace(backup.place, study=target.study if target.study in wanted else "")
                    wanted = {target.study: find_study_key_and_name(transaction, place)[0]}
            replaced = _back_up_replaced_studies(database, wanted, force)
            if database.sqlite:
                with closing(backup.connect()) as connection, closing(database.connect()) as to:
                    connection.backup(to)
                with database.write_transaction() as transaction:
                    end_all_sessions(transaction)  # the backup may come from someone else
            else:
                with backup.read_transaction() as old, database.write_transaction() as new:
                    for name, key in wanted.items():
                        _replace_study(old, new, key, name)
    return replaced


def _back_up_replaced_studies(database: Database, wanted: Mapping[str, int], force: bool) -> Path | None:
    """Back up the studies that will be replaced, and return the path of the backup, or None."""
    with database.read_transaction() as transaction:
        existing_keys = study_keys_by_name(transaction)
    replaced = list(existing_keys) if database.sqlite else [name for name in existing_keys if name in wanted]
    if not replaced:
        return None
    if not force:
        raise ParameterError(
            f"{database.place}: already contains a study; pass {param('force')} to replace it (a backup is kept)",
            parameter="force",
        )
    saved = new_backup_path(database.place, "replaced")
    back_up_database(database, saved)
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
    .values({column.name: named_sql_placeholder(column.name) for column in table.columns if column.name != "key"})
    .returning(table.c.key if "key" in table.c else sa.literal(0))
    for table in tables.metadata.sorted_tables
}


def _replace_study(old: Transaction, new: Transaction, study: int, name: str) -> None:
    """Copy a study to another database under the given name, replacing any study of that name."""
    replaced = study_keys_by_name(new).get(name)
    if replaced is not None:
        mine = sa.select(tables.annotation.c.key).where(tables.annotation.c.study == replaced)
        new.execute(sa.delete(tables.change).where(tables.change.c.annotation.in_(mine)))
        for table in (*reversed(_TABLES_WITH_KEY), *_TABLES_WITHOUT_KEY):
            new.execute(sa.delete(table).where(table.c.study == replaced))
        new.execute(sa.delete(tables.study).where(tables.study.c.key == replaced))
    new_study = 0
    annotation_keys: dict[int, int] = {}
    for table in (tables.study, *_TABLES_WITHOUT_KEY, *_TABLES_WITH_KEY, tables.change):
        select = _select_rows(table, tables.metadata, study)
        for row in old.execute(select.order_by(table.c.key) if table in _TABLES_WITH_KEY else select):
            values = dict(zip(table.c.keys(), row, strict=True))
            is_unused_invitation = table is tables.link and values["kind"] == "researcher" and values["used"] is None
            if table is tables.session or is_unused_invitation:
                continue  # the backup may come from someone else, who must not be signed in here
            if table is tables.study:
                values["name"] = name
            if "study" in values:
                values["study"] = new_study
            if table in (tables.entry, tables.change):
                values["annotation"] = annotation_keys[values["annotation"]]
            key = values.pop("key", None)
            (new_key,) = new.fetch_first(_INSERT_BY_TABLE[table.name], **values) or (0,)
            if table is tables.study:
                new_study = int(new_key)
            elif table is tables.annotation:
                annotation_keys[key] = int(new_key)
