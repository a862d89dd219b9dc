"""Design cell of each annotator, and the time until which a place in it is held."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add the columns `cell` and `held` to annotators."""
    op.add_column("annotator", sa.Column("cell", sa.Text(), nullable=False, server_default=""))
    op.add_column("annotator", sa.Column("held", sa.Double(), nullable=True))
    op.create_index("annotator_study_cell", "annotator", ["study", "cell"], unique=False)
