"""The cell of a study's design that somebody was assigned to, and until when their place in it is held."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Give annotators the columns `cell` and `held`."""
    op.add_column("annotator", sa.Column("cell", sa.Text(), nullable=False, server_default=""))
    op.add_column("annotator", sa.Column("held", sa.Double(), nullable=True))
    op.create_index("annotator_study_cell", "annotator", ["study", "cell"], unique=False)
