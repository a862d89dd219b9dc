"""Databases of served studies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from finecomb.collection.database.location import (
    StudyLocation,
    existing_database_location,
    is_postgres_url,
    parse_location,
)
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.formats import folder
from finecomb.formats.study_writes import ensure_database

if TYPE_CHECKING:
    from finecomb.collection.database.connection import Database
    from finecomb.collection.database.store import Store

ServedStudy = str | PathLike[str]
"""A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`."""


@contextmanager
def open_work(study: ServedStudy, db: str = "") -> Iterator[Store]:
    """Yield the database of a served study, without importing new records from its folder."""
    from finecomb.collection.database.store import (
        open_store,
    )  # imported here because SQLAlchemy is needed only for databases

    store = open_store(existing_database_location(study, db))
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_database(location: StudyLocation, readonly: bool = False) -> Iterator[Database]:
    """Yield a database without migrating its tables."""
    from finecomb.collection.database.connection import Database

    database = Database(location, readonly=readonly)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_served_study(study: ServedStudy, db: str = "") -> Iterator[Store]:
    """Yield the database of a study to serve; a folder of files is turned into a database first."""
    prepare_database(study, db)
    with open_work(study, db) as store:
        yield store


def prepare_database(study: ServedStudy, db: str = "") -> list[str]:
    """Turn a folder of files into a database, and return notes about the change."""
    path = Path(fspath(study))
    if path.is_dir():
        if not folder.is_study_folder(path):
            raise FinecombError(f"{path}: no study in this folder; `finecomb new` creates one from your texts")
        return ensure_database(path, db)
    if db and not is_postgres_url(path):
        raise ParameterError(f"{param('db')} applies only to a study folder; {path} is a database", parameter="db")
    if not is_postgres_url(path) and not (parse_location(path).file or path).exists():
        raise FinecombError(f"{path}: file or folder not found")
    return []
