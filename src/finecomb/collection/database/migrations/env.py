"""Run by Alembic: the connection is passed in, nothing is read from files."""

from __future__ import annotations

from alembic import context

from finecomb.collection.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
