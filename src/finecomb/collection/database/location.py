"""Location of a study: a folder, SQLite file or PostgreSQL URL. `#NAME` selects one study of a database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from finecomb.core.errors import FinecombError, ParameterError, param

DATABASE_FILENAME = "study.db"
"""Name of the database file in a study's folder."""
POINTER_FILENAME = "study.url"
"""Name of the file in a study's folder that names the PostgreSQL database with the study, without a password."""
_URL_PATTERN = re.compile(r"(?P<scheme>postgres(?:ql)?(?:\+psycopg)?):/+(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StudyLocation:
    """Location of a database, and the name of a study in it."""

    url: str
    """SQLAlchemy URL of the database."""
    study: str = ""
    """Name of the study; empty when the database has only one study."""
    file: Path | None = None
    """Path of the SQLite file; None for PostgreSQL."""

    def __str__(self) -> str:
        """Return the location without the password, for messages."""
        url = str(self.file) if self.file else _url_without_password(self.url)
        return f"{url}#{self.study}" if self.study else url


def _url_without_password(url: str) -> str:
    """Return a URL for messages, without passwords in its user or options part.

    >>> _url_without_password("postgresql+psycopg://ann:s:e/c@db.example/lab?password=x&sslmode=require")
    'postgresql://ann@db.example/lab?sslmode=require'
    """
    rest, question, options = re.sub(r"^[^:]+://", "", url).partition("?")
    who, separator, host = rest.rpartition("@")
    shown = "&".join(option for option in options.split("&") if "password" not in option.lower()) if question else ""
    return f"postgresql://{who.partition(':')[0]}{separator}{host}{'?' if shown else ''}{shown}"


def is_postgres_url(path: Path | str) -> bool:
    """Return whether a path is the URL of a PostgreSQL database."""
    return _URL_PATTERN.fullmatch(str(path)) is not None


def parse_location(where: Path | str) -> StudyLocation:
    """Parse the location of a study: a URL or a file path, optionally followed by `#study`.

    `Path` removes one of the two slashes of a URL. It is restored, which is unambiguous because a URL must name a
    database.

    >>> parse_location(Path("postgresql://ann@db.example/lab#harbour")).url, str(parse_location("postgresql:///lab"))
    ('postgresql+psycopg://ann@db.example/lab', 'postgresql:///lab')
    """
    text = where.as_posix() if isinstance(where, Path) else where
    if match := _URL_PATTERN.fullmatch(text):
        rest, _, study = match["rest"].partition("#")
        host = rest if "/" in rest.partition("?")[0] else f"/{rest}"
        return StudyLocation(f"postgresql+psycopg://{host}", study)
    file, _, study = text.partition("#") if not Path(text).exists() else (text, "", "")
    return StudyLocation(f"sqlite+pysqlite:///{Path(file)}", study, Path(file))


def study_database_location(study: str | PathLike[str], db: str = "") -> StudyLocation:
    """Return the location of a study's database: a file in its folder, another SQLite file, or PostgreSQL.

    `db` is the URL of a PostgreSQL database to use instead of a SQLite file. If the URL has no name after `#`, the name
    of the study is that of its folder.
    """
    path = Path(fspath(study))
    if db and not is_postgres_url(db):
        raise ParameterError(
            f"{param('db', db)}: expected postgresql://HOST/DATABASE#STUDY; omit {param('db')} to use "
            f"{DATABASE_FILENAME}",
            parameter="db",
        )
    if db:
        location = parse_location(db)
        return location if location.study else StudyLocation(location.url, path.resolve().name)
    if pointed := read_pointer(path):
        return pointed
    return parse_location(path / DATABASE_FILENAME) if path.is_dir() else parse_location(path)


def read_pointer(folder: Path) -> StudyLocation | None:
    """Return the PostgreSQL database that a study's folder points to, or None if it points to none."""
    file = folder / POINTER_FILENAME
    return parse_location(file.read_text(encoding="utf-8").strip()) if file.is_file() else None


def existing_database_location(study: str | PathLike[str], db: str = "") -> StudyLocation:
    """Return the location of a study's database, or raise an error when the study has not been served yet."""
    location = study_database_location(study, db)
    if location.file and not location.file.exists():
        raise FinecombError(f"{location}: no such file; run `finecomb serve` on the study first")
    return location
