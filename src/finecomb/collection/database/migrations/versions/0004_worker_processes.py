"""State shared by several server processes, the browser of each platform worker, and digests of changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables `attempt` and `worker`, and add the related columns."""
    op.add_column("study", sa.Column("changed", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("change", sa.Column("digest", sa.Text(), nullable=False, server_default=""))
    op.add_column("session", sa.Column("active", sa.Double(), nullable=False, server_default="0"))
    op.execute("UPDATE session SET active = created")
    op.create_table(
        "attempt",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name="attempt_study"),
        sa.PrimaryKeyConstraint("key", name="attempt_primary"),
    )
    op.create_index("attempt_study_kind_address", "attempt", ["study", "kind", "address"], unique=False)
    op.create_table(
        "worker",
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name="worker_study"),
        sa.PrimaryKeyConstraint("study", "hash", name="worker_primary"),
    )
