"""The tables. Values are text, whole numbers and doubles only, so that both databases give back what they were given.

Records are kept as JSON; what is searched, counted or unique has columns of its own. Times that only the server
compares are seconds since 1970; those of records are ISO 8601, as in files.
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
_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up an INTEGER only


def bind_parameter(name: str) -> Any:
    """A value that is bound by name when a statement runs."""
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
    Column("imported", Text, nullable=False),  # the settings as last read from the study's folder
    Column("secret", Text, nullable=False),  # signs cookies and makes the open link
    Column("joining", Integer, nullable=False),  # counts open links; the last works unless negative
    Column("changed", Integer, nullable=False),  # counts changes that every process that serves it must hear of
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
    Column("excluded", Integer, nullable=False),  # 1 when all their work is set aside
    Column("cell", Text, nullable=False, server_default=""),  # of the study's design; empty without one
    Column("held", Double),  # until when a place in that cell is held for somebody who does nothing
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
    Column("about", Text, nullable=False),  # empty when absent, so that the key below is unique for both databases
    Column("phase", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("excluded", Integer, nullable=False),  # 1 when set aside
    Column("number", Integer),  # in the annotator's order; absent for work that was not given out here
    Column("lease", Double),  # until when a draft is kept for its annotator
    Column("started", Text),
    Column("submitted", Text),
    Column("active", Double),
    Column("rest", Text, nullable=False),  # the record's other fields
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
    Column("kind", Text, nullable=False),  # mark, unit, answers or decision
    Column("id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", Text),  # absent when it was deleted
    UniqueConstraint("annotation", "kind", "id"),
)
Index("entry_marks", entry.c.study, entry.c.id, unique=True, sqlite_where=entry.c.kind == "mark",
      postgresql_where=entry.c.kind == "mark")  # fmt: skip

change = Table(
    "change",
    metadata,
    Column("annotation", _Key, ForeignKey("annotation.key"), primary_key=True, autoincrement=False),
    Column("id", Text, primary_key=True),  # made by the browser: the same change counts once
    Column("version", Integer, nullable=False),  # of the entry after it
    Column("digest", Text, nullable=False),  # of what it asked for; empty for changes of an earlier Finecomb
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
    Column("hash", Text, primary_key=True),  # of the token, which is nowhere kept
    _study_column(primary=False),
    Column("kind", Text, nullable=False),  # annotator or researcher
    Column("who", Text, nullable=False),  # id of either
    Column("role", Text, nullable=False),  # of a researcher
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("used", Double),  # when last; a researcher's link works once
    Column("revoked", Double),
    Index(None, "study", "kind", "who"),
)

session = Table(
    "session",
    metadata,
    Column("hash", Text, primary_key=True),  # of the token in the cookie
    _study_column(primary=False),
    Column("kind", Text, nullable=False),  # annotator or researcher
    Column("who", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("active", Double, nullable=False),  # when it was last used, give or take some minutes
    Index(None, "study", "kind", "who"),
)

attempt = Table(  # tries to come in, so that several processes count them together
    "attempt",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("kind", Text, nullable=False),  # wrong-link or join
    Column("address", Text, nullable=False),  # keyed hash of the internet address
    Column("at", Double, nullable=False),
    Index(None, "study", "kind", "address"),
)

worker = Table(  # who took part, by a keyed hash: stays when `finecomb forget` removes the rest
    "worker",
    metadata,
    _study_column(),
    Column("hash", Text, primary_key=True),  # of platform and worker id
    Column("annotator", Text, nullable=False),
    Column("device", Text, nullable=False),  # keyed hash of the browser that began; empty when it was let go
)

arrival = Table(  # the one place for what platforms and browsers tell about a person; `finecomb forget` empties it
    "arrival",
    metadata,
    Column("key", _Key, primary_key=True),
    _study_column(primary=False),
    Column("annotator", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("platform", Text, nullable=False),  # prolific or mturk; empty for those who came by a link of ours
    Column("worker", Text, nullable=False),  # the platform's id of the person
    Column("place", Text, nullable=False),  # its id of the study or HIT
    Column("session", Text, nullable=False),  # its id of this person's part in it
    Column("device", Text, nullable=False),  # keyed hash of a random cookie
    Column("address", Text, nullable=False),  # keyed hash of the internet address
    Column("submit", Text, nullable=False),  # where the platform wants to be told of the end
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
