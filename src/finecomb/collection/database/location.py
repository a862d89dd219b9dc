"""Where a study is kept: a folder, a SQLite file or a PostgreSQL URL, with the study's name after `#` in a database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from finecomb.core.errors import FinecombError, ParameterError, param

DATABASE_FILENAME = "study.db"
"""The database in a study's folder."""
_URL_PATTERN = re.compile(r"(?P<scheme>postgres(?:ql)?(?:\+psycopg)?):/+(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StudyLocation:
    """A database, and which of its studies is meant."""

    url: str
    """As SQLAlchemy takes it."""
    study: str = ""
    """The only one there is, when empty."""
    file: Path | None = None
    """The file of a SQLite database."""

    def __str__(self) -> str:
        """For messages: without the password."""
        url = str(self.file) if self.file else _url_without_password(self.url)
        return f"{url}#{self.study}" if self.study else url


def _url_without_password(url: str) -> str:
    """A URL for messages: who and where, without any password, also where it is among the options.

    >>> _url_without_password("postgresql+psycopg://ann:s:e/c@db.example/lab?password=x&sslmode=require")
    'postgresql://ann@db.example/lab?sslmode=require'
    """
    rest, question, options = re.sub(r"^[^:]+://", "", url).partition("?")
    who, at, host = rest.rpartition("@")
    shown = "&".join(option for option in options.split("&") if "password" not in option.lower()) if question else ""
    return f"postgresql://{who.partition(':')[0]}{at}{host}{'?' if shown else ''}{shown}"


def is_postgres_url(path: Path | str) -> bool:
    """Whether a path is in truth the URL of a PostgreSQL database."""
    return _URL_PATTERN.fullmatch(str(path)) is not None


def parse_location(where: Path | str) -> StudyLocation:
    """The database meant by a URL, a file, or a file with `#study`.

    A URL that went through `Path` has lost a slash, which is put back: a database's name is always there, so that
    nothing is lost.

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


def work_location(study: str | PathLike[str], db: str = "") -> StudyLocation:
    """Return where the work of a study is kept: in its folder's database, a SQLite file, or PostgreSQL.

    `db` is the URL of a PostgreSQL database that keeps it instead; without a name after `#`, the study is called as its
    folder.
    """
    path = Path(fspath(study))
    if db and not is_postgres_url(db):
        raise ParameterError(
            f"{param('db', db)}: expected postgresql://HOST/DATABASE#STUDY; without {param('db')} the work is in "
            f"{DATABASE_FILENAME}",
            parameter="db",
        )
    if db:
        location = parse_location(db)
        return location if location.study else StudyLocation(location.url, path.resolve().name)
    return parse_location(path / DATABASE_FILENAME) if path.is_dir() else parse_location(path)


def served_location(study: str | PathLike[str], db: str = "") -> StudyLocation:
    """Return where the work of a study is kept; an error where it has not been served yet."""
    location = work_location(study, db)
    if location.file and not location.file.exists():
        raise FinecombError(f"{location}: no such file; the study has not been served yet")
    return location
