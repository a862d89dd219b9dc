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

from finecomb.collection import arrivals_storage, audit_log_storage
from finecomb.collection.arrivals import Arrival
from finecomb.collection.database.incremental_read import StudySnapshot, refresh_snapshot
from finecomb.collection.database.store import Store
from finecomb.collection.screening import ReviewSuggestion, screen_annotations
from finecomb.collection.screening_signals import ScreeningSignal, signals_by_annotator
from finecomb.server.researchers.annotator_table import AnnotatorTable
from finecomb.server.researchers.document_views import document_frame
from finecomb.server.researchers.overview import build_overview
from finecomb.server.researchers.schema import Export, Overview
from finecomb.server.researchers.snapshot import Snapshot
from finecomb.server.researchers.study_export import available_exports

T = TypeVar("T")
MAX_AGE_SECONDS = 10.0
"""Seconds for which pages may show the same moment while annotators go on saving."""


@dataclass(frozen=True)
class StudyPages:
    """The pages about one moment of a study, each computed when it is first asked for."""

    snapshot: Snapshot
    tag: str
    """Changes with everything that is written."""
    arrivals: tuple[Arrival, ...] = ()
    """Where people came from."""

    @functools.cached_property
    def signals(self) -> Mapping[str, tuple[ScreeningSignal, ...]]:
        """What is worth a look about each person."""
        return signals_by_annotator(self.snapshot.study, self.arrivals)

    @functools.cached_property
    def annotator_table(self) -> AnnotatorTable:
        """All annotators."""
        return AnnotatorTable(self.snapshot)

    @functools.cached_property
    def overview(self) -> Overview:
        """The first page."""
        return build_overview(self.snapshot, self.annotator_table)

    @functools.cached_property
    def documents(self) -> pl.DataFrame:
        """One row per document."""
        return document_frame(self.snapshot)

    @functools.cached_property
    def suggestions(self) -> tuple[ReviewSuggestion, ...]:
        """Work that one might not want to count."""
        return tuple(screen_annotations(self.snapshot.study))

    @functools.cached_property
    def exports(self) -> tuple[Export, ...]:
        """What can be downloaded."""
        return tuple(available_exports(self.snapshot.study))


class SnapshotCache:
    """Keeps the last moment. One page is computed at a time; those who wait get what was computed meanwhile."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._start = secrets.token_hex(4)
        self._read_study: StudySnapshot | None = None
        self._pages: StudyPages | None = None
        self._written = -1
        self._decided = 0
        self._read = -MAX_AGE_SECONDS

    def read(self, page: Callable[[StudyPages], T]) -> T:
        """What `page` makes of the study; slow, so never to be called on the event loop."""
        with self._lock:
            return page(self._latest_pages())

    def invalidate(self) -> None:
        """A researcher changed something and must see it at once."""
        self._read = -MAX_AGE_SECONDS

    def _latest_pages(self) -> StudyPages:
        written, clock, decided = self.store.data_version(), self.store.clock(), self._latest_audit_number()
        stale = written != self._written and (clock - self._read >= MAX_AGE_SECONDS or decided != self._decided)
        if self._pages is None or stale:
            self._read_study = refresh_snapshot(self.store, self._read_study)
            head = self.store.head
            snapshot = Snapshot(self._read_study.study, head.protocol, head.state, datetime.fromtimestamp(clock, UTC))
            with self.store.database.read_transaction() as transaction:
                arrivals = tuple(arrivals_storage.read_all_arrivals(self.store, transaction))
            self._pages = StudyPages(snapshot, f"{self._start}-{written}", arrivals)
            self._written, self._decided, self._read = written, decided, clock
        return self._pages

    def _latest_audit_number(self) -> int:
        """The number of what a researcher did last, perhaps in another process; 0 where there is no other."""
        if self.store.database.sqlite:
            return 0
        with self.store.database.read_transaction() as transaction:
            return audit_log_storage.latest_entry_number(self.store, transaction)
