"""Migrations of the database tables, run by Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from finecomb.collection.database.connection import Database

READABLE_VERSIONS = ("2", "3", "4")
"""Table versions that can be read without an upgrade, because reading does not need the later additions."""


def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def latest_version() -> str:
    """Return the table version that this version of Finecomb uses."""
    return ScriptDirectory.from_config(_alembic_config()).get_current_head() or ""


def current_version(database: Database) -> str:
    """Return the version of a database's tables, or an empty string when the database has no version."""
    engine = database.create_engine()
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() or ""
    finally:
        engine.dispose()


def is_known_version(version: str) -> bool:
    """Return whether this release knows a table version. It does not know the versions of later releases."""
    return version in {
        "",
        *(script.revision for script in ScriptDirectory.from_config(_alembic_config()).walk_revisions()),
    }


def upgrade(database: Database, version: str = "head") -> None:
    """Upgrade the tables to the given version in one transaction."""
    config = _alembic_config()
    engine = database.create_engine()
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, version)
    finally:
        engine.dispose()
