"""Alembic environment. The connection is passed in, and no configuration file is read."""

from __future__ import annotations

from alembic import context

from finecomb.collection.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
