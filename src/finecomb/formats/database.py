"""A study in a database: a SQLite file such as `study.db`, or a PostgreSQL URL, `#name` saying which study.

`finecomb serve` keeps what annotators do in `study.db` in the study's folder; every command reads a folder together
with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from finecomb.collection.database.location import DATABASE_FILENAME, is_postgres_url, parse_location
from finecomb.core.errors import FormatError
from finecomb.core.optional_packages import need_packages
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Note, Settings
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES

_RECORD_TYPE_ORDER = (Settings, Protocol, Document, Annotator, Annotation, Note)


def _import_store() -> Any:
    need_packages("a database needs", "sqlalchemy", "alembic")
    from finecomb.collection.database import store

    return store


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Every record, as one moment saw it; the study may be in use meanwhile."""
    items: Iterator[StudyItem] = _import_store().read_study_records(parse_location(path))
    return items


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """A new SQLite file."""
    if is_postgres_url(path):
        raise FormatError(
            f"{parse_location(path)}: to put a study into PostgreSQL, say `finecomb serve FOLDER --db URL`"
        )
    _import_store().open_store(parse_location(path), [item for item in items if not isinstance(item, Note)]).close()


def merge_folder_and_database(folder: Iterable[StudyItem], path: Path) -> Iterator[StudyItem]:
    """The records of a folder and of the database in it; of a record that is in both, the database has the newer."""
    newer, older = _RecordsByType(read(path / DATABASE_FILENAME, Options())), _RecordsByType(iter(folder))
    for kind in _RECORD_TYPE_ORDER:
        names = set()
        for item in newer.iter_type(kind):
            names.add(getattr(item, "id", ""))
            yield item
        yield from (item for item in older.iter_type(kind) if getattr(item, "id", "") not in names)


class _RecordsByType:
    """A stream of records in the order of their kinds, taken one kind at a time."""

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
    """Whether `path` is a PostgreSQL URL or a SQLite file."""
    file = parse_location(path).file
    if file is None:
        return True
    try:
        with file.open("rb") as opened:
            return opened.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


FORMAT = Format("database", "a study's database", read, write, suffixes=(".db",), sniff=is_database, holds=ALL_FEATURES)
