"""Backups: a consistent copy of a database while it is in use, always a SQLite file; and the way back."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from finecomb.core.errors import FinecombError
from finecomb.store import migrations, tables
from finecomb.store.database import Database, Transaction
from finecomb.store.location import StudyLocation, place
from finecomb.store.studies import find, studies
from finecomb.store.tables import given


def backup_name(where: StudyLocation, why: str = "backup") -> Path:
    """Beside a SQLite file, or in the current folder for PostgreSQL; the name says when and why."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return (where.file or Path(f"{where.study or 'study'}.db")).with_suffix(f".{why}-{stamp}.db")


def back_up(database: Database, target: Path) -> None:
    """Copy a database to a new SQLite file, as one moment saw it; of PostgreSQL, the study that is named, else all."""
    if target.exists():
        raise FinecombError(f"{target}: exists already; choose another name")
    if database.sqlite:
        _copy_file(database, target)
        return
    with opened(place(target), migrations.current(database)) as copy:
        _dump(database, copy)


def _copy_file(source: Database, target: Path) -> None:
    with closing(source.connect()) as connection, closing(sqlite3.connect(target)) as to:
        connection.backup(to)


def _dump(source: Database, target: Database) -> None:
    """Every row as it is, by the columns that the tables of that version have."""
    reflected = sa.MetaData()
    engine = target.engine()
    reflected.reflect(engine)
    engine.dispose()
    with source.reading() as old, target.writing() as new:
        study = find(old, source.place)[0] if source.place.study else None
        for table in reflected.sorted_tables:
            if table.name == "alembic_version":
                continue
            names = [column.name for column in table.columns]
            insert = sa.insert(table).values({name: given(name) for name in names})
            for row in old.run(_rows(table, reflected, study)):
                new.run(insert, **dict(zip(names, row, strict=True)))


def _rows(table: sa.Table, every: sa.MetaData, study: int | None) -> sa.Select[Any]:
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
def opened(where: StudyLocation, version: str = "head") -> Iterator[Database]:
    """A database whose tables have been brought to a version."""
    database = Database(where)
    try:
        migrations.upgrade(database, version)
        yield database
    finally:
        database.close()


# --- the way back ------------------------------------------------------------------------------------------------


def restore(source: Path, target: StudyLocation, force: bool = False) -> Path | None:
    """Put a backup in the place of what is there; that is kept in a backup of its own, whose path is returned."""
    with tempfile.TemporaryDirectory() as temporary:
        copied = Path(shutil.copy(source, temporary))
        with opened(place(copied)) as backup, opened(target) as database:
            wanted = _wanted(backup, target)
            replaced = _keep(database, wanted, force)
            if database.sqlite:
                with closing(backup.connect()) as connection, closing(database.connect()) as to:
                    connection.backup(to)
            else:
                _transfer(backup, database, wanted)
    return replaced


def _wanted(backup: Database, target: StudyLocation) -> dict[str, int]:
    """The studies of a backup under the names they are to have; one study takes the name of its new place."""
    with backup.reading() as transaction:
        keys = studies(transaction)
        if not target.study or target.file:
            return keys
        return {
            target.study: find(transaction, replace(backup.place, study=target.study if target.study in keys else ""))[
                0
            ]
        }


def _keep(database: Database, wanted: Mapping[str, int], force: bool) -> Path | None:
    """Save what would be replaced."""
    with database.reading() as transaction:
        there = studies(transaction)
    replaced = list(there) if database.sqlite else [name for name in there if name in wanted]
    if not replaced:
        return None
    if not force:
        raise FinecombError(f"{database.place}: holds a study already; say --force to replace it (a copy is kept)")
    saved = backup_name(database.place, "replaced")
    back_up(database, saved)
    return saved


_OF_STUDY = (tables.protocol, tables.document, tables.annotator, tables.researcher, tables.link, tables.session)
_BY_KEY = (tables.annotation, tables.entry, tables.audit, tables.arrival)
_INSERT = {
    table.name: sa.insert(table)
    .values({column.name: given(column.name) for column in table.columns if column.name != "key"})
    .returning(table.c.key if "key" in table.c else sa.literal(0))
    for table in tables.metadata.sorted_tables
}


def _transfer(source: Database, target: Database, wanted: Mapping[str, int]) -> None:
    """Studies from one database to another that may hold more; keys are counted anew."""
    with source.reading() as old, target.writing() as new:
        for name, key in wanted.items():
            _forget(new, name)
            row = old.one(sa.select(tables.study).where(tables.study.c.key == key)) or ()
            values = dict(zip(tables.study.c.keys(), row, strict=True)) | {"name": name}
            _Transfer(old, new, values.pop("key"), _insert(new, tables.study, values)).run()


def _insert(transaction: Transaction, table: sa.Table, values: Mapping[str, Any]) -> int:
    (key,) = transaction.one(_INSERT[table.name], **values) or (0,)
    return int(key)


class _Transfer:
    """One study on its way from one database to another."""

    def __init__(self, old: Transaction, new: Transaction, study: int, to: int) -> None:
        self.old, self.new, self.study, self.to = old, new, study, to
        self.keys: dict[int, int] = {}

    def run(self) -> None:
        for table in _OF_STUDY:
            self._copy(table, _rows(table, tables.metadata, self.study))
        for table in _BY_KEY:
            self._copy(table, _rows(table, tables.metadata, self.study).order_by(table.c.key))
        self._copy(tables.change, _rows(tables.change, tables.metadata, self.study))

    def _copy(self, table: sa.Table, rows: sa.Select[Any]) -> None:
        for row in self.old.run(rows):
            values = dict(zip(table.c.keys(), row, strict=True))
            if "study" in values:
                values["study"] = self.to
            if table in (tables.entry, tables.change):
                values["annotation"] = self.keys[values["annotation"]]
            key = values.pop("key", None)
            new_key = _insert(self.new, table, values)
            if table is tables.annotation:
                self.keys[key] = new_key


def _forget(transaction: Transaction, name: str) -> None:
    """Remove a study with all that belongs to it."""
    key = studies(transaction).get(name)
    if key is None:
        return
    mine = sa.select(tables.annotation.c.key).where(tables.annotation.c.study == key)
    transaction.run(sa.delete(tables.change).where(tables.change.c.annotation.in_(mine)))
    for table in (*reversed(_BY_KEY), *_OF_STUDY):
        transaction.run(sa.delete(table).where(table.c.study == key))
    transaction.run(sa.delete(tables.study).where(tables.study.c.key == key))
