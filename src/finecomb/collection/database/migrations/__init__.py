"""How the tables came to be what they are: one step per version, run by Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from finecomb.collection.database.connection import Database

READABLE_VERSIONS = ("2", "3", "4")
"""Versions whose studies can be read as they are: what later ones added is not needed for reading."""


def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def latest_version() -> str:
    """The version that this Finecomb works with."""
    return ScriptDirectory.from_config(_alembic_config()).get_current_head() or ""


def current_version(database: Database) -> str:
    """The version of a database; empty when it has no tables yet."""
    engine = database.create_engine()
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() or ""
    finally:
        engine.dispose()


def is_known_version(version: str) -> bool:
    """Whether this Finecomb knows a version; it does not know those of later ones."""
    return version in {"", *(each.revision for each in ScriptDirectory.from_config(_alembic_config()).walk_revisions())}


def upgrade(database: Database, version: str = "head") -> None:
    """Run the steps that are missing up to a version, all or none."""
    config = _alembic_config()
    engine = database.create_engine()
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, version)
    finally:
        engine.dispose()
