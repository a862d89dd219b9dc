"""A study in a database: a SQLite file such as `study.db`, or a PostgreSQL URL with the name of the study after `#`.

`finecomb serve` turns a study folder into a database, `study.db` in the folder; see `folder_storage`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation, is_postgres_url, parse_location
from finecomb.core.errors import FormatError
from finecomb.core.optional_packages import require_packages
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Note, Settings
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES

_RECORD_TYPE_ORDER = (Settings, Protocol, Document, Annotator, Annotation, Note)


def _import_store() -> Any:
    require_packages("a database requires", "sqlalchemy", "alembic")
    from finecomb.collection.database import store

    return store


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read every record from a consistent snapshot; the study may be in use at the same time."""
    return read_location(parse_location(path))


def read_location(location: StudyLocation) -> Iterator[StudyItem]:
    """Read every record of the study at a location."""
    store = _import_store()
    from sqlalchemy.exc import DatabaseError

    try:
        yield from store.read_study_records(location)
    except (DatabaseError, sqlite3.DatabaseError) as error:  # from sqlite3 itself while connecting
        reason = getattr(error, "orig", error)
        fix = "if it is damaged, `finecomb repair` salvages its rows, and `finecomb restore` replaces it with a backup"
        raise FormatError(f"{location}: cannot be read: {reason}; {fix}") from None


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a new SQLite file."""
    if is_postgres_url(path):
        raise FormatError(
            f"{parse_location(path)}: PostgreSQL is not an output format; use `finecomb serve FOLDER --db URL`"
        )
    _import_store().open_store(parse_location(path), [item for item in items if not isinstance(item, Note)]).close()


def merge_folder_and_database(folder: Iterable[StudyItem], path: Path) -> Iterator[StudyItem]:
    """Read the records of a folder and of the database in it; a record in both is taken from the database."""
    newer, older = _RecordsByType(read(path / DATABASE_FILENAME, Options())), _RecordsByType(iter(folder))
    for kind in _RECORD_TYPE_ORDER:
        names = set()
        for item in newer.iter_type(kind):
            names.add(getattr(item, "id", ""))
            yield item
        yield from (item for item in older.iter_type(kind) if getattr(item, "id", "") not in names)


class _RecordsByType:
    """A stream of records ordered by type, read one type at a time."""

    def __init__(self, items: Iterator[StudyItem]) -> None:
        self._items = items
        self._held: StudyItem | None = None

    def iter_type(self, kind: type[Any]) -> Iterator[StudyItem]:
        while (item := self._held or next(self._items, None)) is not None:
            self._held = None
            if not isinstance(item, kind):
                self._held = item
                return
            yield item


def is_database(path: Path) -> bool:
    """Return True if `path` is a PostgreSQL URL or a SQLite file."""
    file = parse_location(path).file
    if file is None:
        return True
    try:
        with file.open("rb") as opened:
            return opened.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


FORMAT = Format("database", "a study's database", read, write, suffixes=(".db",), sniff=is_database, holds=ALL_FEATURES)
