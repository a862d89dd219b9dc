"""Served studies: opening the database in which the work of annotators is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from finecomb.collection.database.location import (
    StudyLocation,
    is_postgres_url,
    parse_location,
    served_location,
    work_location,
)
from finecomb.core.errors import FinecombError, StudyError
from finecomb.core.study_checks import check_items
from finecomb.formats import folder, locate_problems

if TYPE_CHECKING:
    from finecomb.collection.database.connection import Database
    from finecomb.collection.database.store import Store

ServedStudy = str | PathLike[str]
"""A study's folder, its SQLite file, or postgresql://HOST/DATABASE#STUDY."""


@contextmanager
def open_work(study: ServedStudy, db: str = "") -> Iterator[Store]:
    """Yield the database of a study that has been served, without importing what is new in its folder."""
    from finecomb.collection.database.store import open_store  # SQLAlchemy is loaded only where a database is opened

    store = open_store(served_location(study, db))
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_database(location: StudyLocation, readonly: bool = False) -> Iterator[Database]:
    """Yield a database as it is, without bringing its tables up to date."""
    from finecomb.collection.database.connection import Database

    database = Database(location, readonly=readonly)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_served_study(study: ServedStudy, db: str = "") -> Iterator[Store]:
    """Yield the database of a study to be served, with what is new in its folder; it is created where there is none."""
    from finecomb.collection.database.store import open_store

    path = Path(fspath(study))
    if path.is_dir() and not folder.is_study_folder(path):
        raise FinecombError(f"{path}: no study in this folder; `finecomb new` makes one from your texts")
    if not path.is_dir() and not is_postgres_url(path) and not (parse_location(path).file or path).exists():
        raise FinecombError(f"{path}: no such file or folder")
    try:
        store = open_store(work_location(path, db), check_items(folder.read_files(path)) if path.is_dir() else None)
    except StudyError as error:
        raise StudyError(locate_problems(error.problems, path)) from None
    try:
        yield store
    finally:
        store.close()
