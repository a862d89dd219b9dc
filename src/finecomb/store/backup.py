"""Backups: a consistent copy of a database while it is in use, always a SQLite file; and the way back."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from finecomb.core.errors import FinecombError
from finecomb.store import migrations, tables
from finecomb.store.database import Database, Transaction
from finecomb.store.places import Place, place
from finecomb.store.tables import given


def backup_name(where: Place, why: str = "backup") -> Path:
    """Beside a SQLite file, or in the current folder for PostgreSQL; the name says when and why."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return (where.file or Path(f"{where.study or 'study'}.db")).with_suffix(f".{why}-{stamp}.db")


def back_up(database: Database, target: Path) -> None:
    """Copy everything to a new SQLite file, as one moment saw it."""
    if target.exists():
        raise FinecombError(f"{target}: exists already; choose another name")
    if database.sqlite:
        _copy_file(database, target)
    else:
        with opened(place(target)) as copy:
            transfer(database, copy)


def _copy_file(source: Database, target: Path) -> None:
    with closing(source.connect()) as connection, closing(sqlite3.connect(target)) as to:
        connection.backup(to)


def restore(source: Path, target: Place, force: bool = False) -> Path | None:
    """Put a backup in the place of what is there; that is kept in a backup of its own, whose path is returned."""
    kept = None
    with opened(place(source)) as backup, opened(target) as database:
        if _studies(database):
            if not force:
                raise FinecombError(f"{target}: holds a study already; say --force to replace it (a copy is kept)")
            kept = backup_name(target, "replaced")
            back_up(database, kept)
        if database.sqlite:
            with closing(backup.connect()) as connection, closing(database.connect()) as to:
                connection.backup(to)
        else:
            transfer(backup, database, replace=True)
    return kept


@contextmanager
def opened(where: Place) -> Iterator[Database]:
    """A database with tables of this version."""
    database = Database(where)
    try:
        if migrations.current(database) != migrations.head():
            migrations.upgrade(database)
        yield database
    finally:
        database.close()


# --- from one database to another --------------------------------------------------------------------------------

_OF_STUDY = (tables.protocol, tables.document, tables.annotator, tables.researcher, tables.link, tables.session)
_BY_KEY = (tables.annotation, tables.entry, tables.audit)


def _studies(database: Database) -> list[Any]:
    with database.reading() as transaction:
        return [dict(zip(tables.study.c.keys(), row, strict=True)) for row in transaction.all(sa.select(tables.study))]


def transfer(source: Database, target: Database, replace: bool = False) -> None:
    """Copy every study from one database to another, whatever kinds they are; keys are counted anew."""
    with source.reading() as old, target.writing() as new:
        for row in old.all(sa.select(tables.study)):
            study = dict(zip(tables.study.c.keys(), row, strict=True))
            if replace:
                _forget(new, study["name"])
            _Transfer(old, new, study.pop("key"), _insert(new, tables.study, study)).run()


def _insert(transaction: Transaction, table: sa.Table, values: dict[str, Any]) -> int:
    statement = _inserting(table)
    (key,) = transaction.one(statement, **values) or (0,)
    return int(key)


_STATEMENTS: dict[str, Any] = {}


def _inserting(table: sa.Table) -> Any:
    """Insert everything but the key, which is returned where there is one."""
    if table.name not in _STATEMENTS:
        names = [column.name for column in table.columns if column.name != "key"]
        statement: Any = sa.insert(table).values({name: given(name) for name in names})
        returned = table.c.key if "key" in table.c else sa.literal(0)
        _STATEMENTS[table.name] = statement.returning(returned)
    return _STATEMENTS[table.name]


class _Transfer:
    """One study on its way from one database to another."""

    def __init__(self, old: Transaction, new: Transaction, study: int, to: int) -> None:
        self.old, self.new, self.study, self.to = old, new, study, to
        self.keys: dict[int, int] = {}

    def run(self) -> None:
        for table in _OF_STUDY:
            self._copy(table, sa.select(table).where(table.c.study == self.study))
        for table in _BY_KEY:
            self._copy(table, sa.select(table).where(table.c.study == self.study).order_by(table.c.key))
        mine = sa.select(tables.annotation.c.key).where(tables.annotation.c.study == self.study)
        self._copy(tables.change, sa.select(tables.change).where(tables.change.c.annotation.in_(mine)))

    def _copy(self, table: sa.Table, rows: sa.Select[Any]) -> None:
        for row in self.old.run(rows):
            values = dict(zip(table.c.keys(), row, strict=True))
            if "study" in values:
                values["study"] = self.to
            if table in (tables.entry, tables.change):
                values["annotation"] = self.keys[values["annotation"]]
            key = values.pop("key", None)
            made = _insert(self.new, table, values)
            if table is tables.annotation:
                self.keys[key] = made


def _forget(transaction: Transaction, name: str) -> None:
    """Remove a study with all that belongs to it."""
    found = transaction.one(sa.select(tables.study.c.key).where(tables.study.c.name == name))
    if found is None:
        return
    mine = sa.select(tables.annotation.c.key).where(tables.annotation.c.study == found[0])
    transaction.run(sa.delete(tables.change).where(tables.change.c.annotation.in_(mine)))
    for table in (tables.entry, tables.annotation, tables.audit, *_OF_STUDY):
        transaction.run(sa.delete(table).where(table.c.study == found[0]))
    transaction.run(sa.delete(tables.study).where(tables.study.c.key == found[0]))
