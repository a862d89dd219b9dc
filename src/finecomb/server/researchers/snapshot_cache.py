"""Cache of the study snapshot and of the pages computed from it outside the event loop."""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Concatenate, ParamSpec, TypeVar

import polars as pl

from finecomb.collection import arrivals_storage, audit_log_storage
from finecomb.collection.arrivals import Arrival
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.incremental_read import StudySnapshot, refresh_snapshot
from finecomb.collection.database.store import Store
from finecomb.collection.screening import ReviewSuggestion, screen_annotations
from finecomb.collection.screening_signals import ScreeningSignal, signals_by_annotator
from finecomb.server.researchers.annotator_table import AnnotatorTable
from finecomb.server.researchers.document_views import build_document_frame
from finecomb.server.researchers.overview import build_overview
from finecomb.server.researchers.schema import Export, Overview
from finecomb.server.researchers.snapshot import Snapshot
from finecomb.server.researchers.study_export import available_exports

T = TypeVar("T")
P = ParamSpec("P")
MAX_AGE_SECONDS = 10.0
"""Maximum age of a snapshot in seconds while annotators keep saving."""


@dataclass(frozen=True)
class StudyPages:
    """Pages derived from one snapshot. Each page is computed on first use."""

    snapshot: Snapshot
    tag: str
    """ETag of the snapshot, which changes with every write."""
    arrivals: tuple[Arrival, ...] = ()
    """Arrivals of all annotators."""

    @functools.cached_property
    def signals(self) -> Mapping[str, tuple[ScreeningSignal, ...]]:
        """Screening signals, by annotator."""
        return signals_by_annotator(self.snapshot.study, self.arrivals)

    @functools.cached_property
    def annotator_table(self) -> AnnotatorTable:
        """Table of all annotators."""
        return AnnotatorTable(self.snapshot)

    @functools.cached_property
    def overview(self) -> Overview:
        """Overview page."""
        return build_overview(self.snapshot, self.annotator_table)

    @functools.cached_property
    def documents(self) -> pl.DataFrame:
        """Frame with one row per document."""
        return build_document_frame(self.snapshot)

    @functools.cached_property
    def suggestions(self) -> tuple[ReviewSuggestion, ...]:
        """Suggested exclusions."""
        return tuple(screen_annotations(self.snapshot.study))

    @functools.cached_property
    def exports(self) -> tuple[Export, ...]:
        """Available export formats."""
        return tuple(available_exports(self.snapshot.study))


class SnapshotCache:
    """Cache of the latest snapshot. Pages are computed one at a time, and requests waiting for one share its result."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._start = secrets.token_hex(4)
        self._read_study: StudySnapshot | None = None
        self._pages: StudyPages | None = None
        self._written = -1
        self._decided = 0
        self._read = -MAX_AGE_SECONDS

    def compute_page(self, page: Callable[[StudyPages], T]) -> T:
        """Compute a page from the latest snapshot. This is slow and must not run on the event loop."""
        with self._lock:
            written, clock = self.store.read_data_version(), self.store.clock()
            decided = self.store.read(audit_log_storage.read_latest_entry_number)  # also by commands, other processes
            stale = written != self._written and (clock - self._read >= MAX_AGE_SECONDS or decided != self._decided)
            if self._pages is None or stale:
                self._read_study = refresh_snapshot(self.store, self._read_study)
                head = self.store.head
                snapshot = Snapshot(
                    self._read_study.study, head.protocol, head.state, datetime.fromtimestamp(clock, UTC)
                )
                arrivals = tuple(self.store.read(arrivals_storage.read_all_arrivals))
                self._pages = StudyPages(snapshot, f"{self._start}-{written}", arrivals)
                self._written, self._decided, self._read = written, decided, clock
            return page(self._pages)

    async def change_study(
        self, job: Callable[Concatenate[Store, Transaction, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run a job that changes the study, invalidate the snapshot, and return the job's result."""
        result = await self.store.run_study_change(job, *args, **named)
        self.invalidate()
        return result

    def invalidate(self) -> None:
        """Invalidate the snapshot, so that researchers see their changes at once."""
        self._read = -MAX_AGE_SECONDS
