"""What researchers look at, computed off the event loop on one moment's study and kept until work changes."""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import polars as pl

from finecomb.people.screening import Suggestion, screen
from finecomb.people.signals import noticed
from finecomb.server.researchers.documents import document_frame
from finecomb.server.researchers.export import exports
from finecomb.server.researchers.overview import overview
from finecomb.server.researchers.people import People
from finecomb.server.researchers.recruitment_schema import Noticed
from finecomb.server.researchers.schema import Export, Overview
from finecomb.server.researchers.snapshot import Snapshot
from finecomb.store import recruits
from finecomb.store.incremental_read import Seen, read_again
from finecomb.store.recruits import Arrival
from finecomb.store.store import Store

T = TypeVar("T")
FRESH = 10.0
"""Seconds for which pages may show the same moment while annotators go on saving."""


@dataclass(frozen=True)
class Made:
    """One moment, and what has been computed of it so far."""

    now: Snapshot
    tag: str
    """Changes with everything that is written."""
    came: tuple[Arrival, ...] = ()
    """Where people came from."""

    @functools.cached_property
    def noticed(self) -> Mapping[str, tuple[Noticed, ...]]:
        """What is worth a look about each person."""
        return noticed(self.now.study, self.came)

    @functools.cached_property
    def people(self) -> People:
        """All annotators."""
        return People(self.now)

    @functools.cached_property
    def overview(self) -> Overview:
        """The first page."""
        return overview(self.now, self.people)

    @functools.cached_property
    def documents(self) -> pl.DataFrame:
        """One row per document."""
        return document_frame(self.now)

    @functools.cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Work that one might not want to count."""
        return tuple(screen(self.now.study))

    @functools.cached_property
    def exports(self) -> tuple[Export, ...]:
        """What can be downloaded."""
        return tuple(exports(self.now.study))


class SnapshotCache:
    """Keeps the last moment. One page is computed at a time; those who wait get what was computed meanwhile."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._start = secrets.token_hex(4)
        self._seen: Seen | None = None
        self._made: Made | None = None
        self._commits = -1
        self._read = -FRESH

    def ask(self, page: Callable[[Made], T]) -> T:
        """What `page` makes of the study; slow, so never to be called on the event loop."""
        with self._lock:
            return page(self._latest())

    def forget(self) -> None:
        """A researcher changed something and must see it at once."""
        self._read = -FRESH

    def _latest(self) -> Made:
        commits, clock = self.store.commits, self.store.clock()
        stale = commits != self._commits and clock - self._read >= FRESH
        if self._made is None or stale:
            self._seen = read_again(self.store, self._seen)
            head = self.store.head
            now = Snapshot(self._seen.study, head.protocol, head.state, datetime.fromtimestamp(clock, UTC))
            with self.store.database.reading() as transaction:
                came = tuple(recruits.arrivals(self.store, transaction))
            self._made = Made(now, f"{self._start}-{commits}", came)
            self._commits, self._read = commits, clock
        return self._made
