"""Database tables. Columns hold only text, integers and doubles, which both databases return unchanged.

Records are stored as JSON. Fields that are searched, counted or unique also have columns. Times that only the server
compares are in seconds since 1970. Times in records are in ISO 8601, as in files.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
)

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s",
        "uq": "%(table_name)s_%(column_0_N_name)s",
        "fk": "%(table_name)s_%(column_0_name)s",
        "pk": "%(table_name)s_primary",
    }
)
_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements only INTEGER columns


def named_sql_placeholder(name: str) -> Any:
    """Return a parameter that is bound by name when a statement runs."""
    return bindparam(name)


def _study_column(primary: bool = True) -> Column[int]:
    return Column("study", _Key, ForeignKey("study.key"), primary_key=primary, nullable=False, autoincrement=False)


study = Table(
    "study",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("imported", Text, nullable=False),  # settings as last read from the study's folder
    Column("secret", Text, nullable=False),  # key that signs cookies and from which the open link is derived
    Column("joining", Integer, nullable=False),  # number of the open link; earlier ones are invalid, all if negative
    Column("changed", Integer, nullable=False),  # number of changes that all serving processes must notice
)

protocol = Table(
    "protocol",
    metadata,
    _study_column(),
    Column("id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

document = Table(
    "document",
    metadata,
    _study_column(),
    Column("id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

annotator = Table(
    "annotator",
    metadata,
    _study_column(),
    Column("id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("excluded", Integer, nullable=False),  # 1 when all their work is excluded
    Column("cell", Text, nullable=False, server_default=""),  # cell of the study's design; empty without a design
    Column("held", Double),  # time until which an inactive person keeps their place in the cell
    Column("body", Text, nullable=False),
    Index(None, "study", "cell"),
)

annotation = Table(
    "annotation",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("about", Text, nullable=False),  # empty instead of NULL, so that the unique key works in both databases
    Column("phase", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("excluded", Integer, nullable=False),  # 1 when excluded
    Column("number", Integer),  # position in the annotator's order; NULL for imported work
    Column("lease", Double),  # time until which a draft is reserved for its annotator
    Column("started", Text),
    Column("submitted", Text),
    Column("active", Double),
    Column("rest", Text, nullable=False),  # other fields of the record
    UniqueConstraint("study", "id"),
    UniqueConstraint("study", "document", "annotator", "protocol", "round", "about"),
    Index(None, "study", "annotator", "protocol"),
)

entry = Table(
    "entry",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("annotation", _Key, ForeignKey("annotation.key"), nullable=False),
    Column("kind", Text, nullable=False),  # kind of entry: mark, unit, answers or decision
    Column("id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", Text),  # NULL when deleted
    UniqueConstraint("annotation", "kind", "id"),
)
Index("entry_marks", entry.c.study, entry.c.id, unique=True, sqlite_where=entry.c.kind == "mark",
      postgresql_where=entry.c.kind == "mark")  # fmt: skip

change = Table(
    "change",
    metadata,
    Column("annotation", _Key, ForeignKey("annotation.key"), primary_key=True, autoincrement=False),
    Column("id", Text, primary_key=True),  # created by the browser; each ID is applied once
    Column("version", Integer, nullable=False),  # version of the entry after the change
    Column("digest", Text, nullable=False),  # digest of the content; empty for changes made by earlier versions
    sqlite_with_rowid=False,
)

researcher = Table(
    "researcher",
    metadata,
    _study_column(),
    Column("id", Text, primary_key=True),
    Column("role", Text, nullable=False),  # owner, editor or viewer
    Column("created", Double, nullable=False),
    Column("removed", Double),
)

link = Table(
    "link",
    metadata,
    Column("hash", Text, primary_key=True),  # hash of the token, which is not stored
    _study_column(primary=False),
    Column("kind", Text, nullable=False),  # annotator or researcher
    Column("who", Text, nullable=False),  # annotator or researcher ID
    Column("role", Text, nullable=False),  # role of a researcher
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("used", Double),  # time of last use; a researcher's link works once
    Column("revoked", Double),
    Index(None, "study", "kind", "who"),
)

session = Table(
    "session",
    metadata,
    Column("hash", Text, primary_key=True),  # hash of the token in the cookie
    _study_column(primary=False),
    Column("kind", Text, nullable=False),  # annotator or researcher
    Column("who", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("active", Double, nullable=False),  # time of last use, accurate to a few minutes
    Index(None, "study", "kind", "who"),
)

attempt = Table(  # sign-in attempts, counted across processes
    "attempt",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("kind", Text, nullable=False),  # wrong-link, join or code
    Column("address", Text, nullable=False),  # keyed hash of the IP address or of the worker
    Column("at", Double, nullable=False),
    Index(None, "study", "kind", "address"),
)

worker = Table(  # participants by a keyed hash, which `finecomb forget` keeps
    "worker",
    metadata,
    _study_column(),
    Column("hash", Text, primary_key=True),  # hash of platform and worker ID
    Column("annotator", Text, nullable=False),
    Column("device", Text, nullable=False),  # keyed hash of the first browser; empty when it was unbound
)

arrival = Table(  # only table with data from platforms and browsers; `finecomb forget` empties it
    "arrival",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("annotator", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("platform", Text, nullable=False),  # prolific or mturk; empty for other links
    Column("worker", Text, nullable=False),  # ID of the person on the platform
    Column("place", Text, nullable=False),  # ID of the study or HIT on the platform
    Column("session", Text, nullable=False),  # ID of the submission or assignment on the platform
    Column("device", Text, nullable=False),  # keyed hash of a random cookie
    Column("address", Text, nullable=False),  # keyed hash of the IP address
    Column("submit", Text, nullable=False),  # URL to which the platform expects the completed assignment
    Index(None, "study", "annotator"),
    Index(None, "study", "platform", "worker"),
)

audit = Table(
    "audit",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("did", Text, nullable=False),
    Column("about", Text, nullable=False),  # JSON
    Index(None, "study", "key"),
)
