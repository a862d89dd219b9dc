"""Arrivals of annotators, stored separately from their annotations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SOURCE_COLUMNS = ("platform", "worker", "place", "session", "device", "address", "submit")


def upgrade() -> None:
    """Create the table `arrival`."""
    op.create_table(
        "arrival",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("study", _KEY, autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _SOURCE_COLUMNS),
        sa.ForeignKeyConstraint(["study"], ["study.key"], name="arrival_study"),
        sa.PrimaryKeyConstraint("key", name="arrival_primary"),
    )
    op.create_index("arrival_study_annotator", "arrival", ["study", "annotator"], unique=False)
    op.create_index("arrival_study_platform_worker", "arrival", ["study", "platform", "worker"], unique=False)
