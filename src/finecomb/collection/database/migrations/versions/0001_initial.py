"""Initial tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "study",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("imported", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("joining", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=("study_primary")),
        sa.UniqueConstraint("name", name=("study_name")),
    )
    op.create_table(
        "annotation",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("protocol", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("excluded", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("lease", sa.Double(), nullable=True),
        sa.Column("started", sa.Text(), nullable=True),
        sa.Column("submitted", sa.Text(), nullable=True),
        sa.Column("active", sa.Double(), nullable=True),
        sa.Column("rest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("annotation_study")),
        sa.PrimaryKeyConstraint("key", name=("annotation_primary")),
        sa.UniqueConstraint(
            "study",
            "document",
            "annotator",
            "protocol",
            "round",
            "about",
            name=("annotation_study_document_annotator_protocol_round_about"),
        ),
        sa.UniqueConstraint("study", "id", name=("annotation_study_id")),
    )
    op.create_index(
        ("annotation_study_annotator_protocol"), "annotation", ["study", "annotator", "protocol"], unique=False
    )
    op.create_table(
        "annotator",
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("condition", sa.Text(), nullable=False),
        sa.Column("excluded", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("annotator_study")),
        sa.PrimaryKeyConstraint("study", "id", name=("annotator_primary")),
    )
    op.create_table(
        "audit",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("did", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("audit_study")),
        sa.PrimaryKeyConstraint("key", name=("audit_primary")),
    )
    op.create_index(("audit_study_key"), "audit", ["study", "key"], unique=False)
    op.create_table(
        "document",
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("document_study")),
        sa.PrimaryKeyConstraint("study", "id", name=("document_primary")),
    )
    op.create_table(
        "link",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=True),
        sa.Column("used", sa.Double(), nullable=True),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("link_study")),
        sa.PrimaryKeyConstraint("hash", name=("link_primary")),
    )
    op.create_index(("link_study_kind_who"), "link", ["study", "kind", "who"], unique=False)
    op.create_table(
        "protocol",
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("protocol_study")),
        sa.PrimaryKeyConstraint("study", "id", name=("protocol_primary")),
    )
    op.create_table(
        "researcher",
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("removed", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("researcher_study")),
        sa.PrimaryKeyConstraint("study", "id", name=("researcher_primary")),
    )
    op.create_table(
        "session",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("session_study")),
        sa.PrimaryKeyConstraint("hash", name=("session_primary")),
    )
    op.create_index(("session_study_kind_who"), "session", ["study", "kind", "who"], unique=False)
    op.create_table(
        "change",
        sa.Column("annotation", _KEY, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["annotation"], ["annotation.key"], name=("change_annotation")),
        sa.PrimaryKeyConstraint("annotation", "id", name=("change_primary")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "entry",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("annotation", _KEY, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["annotation"], ["annotation.key"], name=("entry_annotation")),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name=("entry_study")),
        sa.PrimaryKeyConstraint("key", name=("entry_primary")),
        sa.UniqueConstraint("annotation", "kind", "id", name=("entry_annotation_kind_id")),
    )
    op.create_index(
        "entry_marks",
        "entry",
        ["study", "id"],
        unique=True,
        sqlite_where=sa.text("kind = 'mark'"),
        postgresql_where=sa.text("kind = 'mark'"),
    )
