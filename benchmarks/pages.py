"""Researcher pages with 13,000 annotations: CPU time per page, and the delay of saves meanwhile.

Times are CPU seconds, because the clock is affected by other programs. The delay is that of an event loop that wakes up
every 5 ms while a thread computes the overview.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._corpus import simulate_corpus
from finecomb.collection import researcher_actions_storage
from finecomb.collection.database.incremental_read import refresh_snapshot
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.store import Store, open_store
from finecomb.server.researchers.document_views import DocumentQuery, build_document_list, build_document_page
from finecomb.server.researchers.snapshot_cache import SnapshotCache

CHANGED_ANNOTATION = "d00500/reader-3"


def print_time(what: str, run: Callable[[], object]) -> None:
    before, start = time.process_time(), time.perf_counter()
    run()
    busy, took = time.process_time() - before, time.perf_counter() - start
    print(f"  {what:42} {busy:6.2f} s of CPU time, {took:6.2f} s", flush=True)


def toggle_exclusion(store: Store, desk: SnapshotCache) -> None:
    """Exclude or restore one annotation, which is as large a change as one submission."""
    excluded = bool(store.read_study().annotations.filter(id=CHANGED_ANNOTATION)["excluded"][0])
    undo = researcher_actions_storage.restore_annotation, ("bench", CHANGED_ANNOTATION)
    do = researcher_actions_storage.exclude_annotation, ("bench", CHANGED_ANNOTATION, "to see")
    job, asked = undo if excluded else do
    store.run_study_change_sync(job, *asked)
    desk.invalidate()


async def wakeup_delays(compute: Callable[[], object]) -> np.ndarray:
    """Return how late, in milliseconds, an event loop wakes up while `compute` runs in a thread."""
    thread = threading.Thread(target=compute)
    late = []
    thread.start()
    while thread.is_alive():
        start = time.perf_counter()
        await asyncio.sleep(0.005)
        late.append(1000 * (time.perf_counter() - start) - 5)
    return np.array(late)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(parse_location(Path(folder) / DATABASE_FILENAME), simulate_corpus())
        desk = SnapshotCache(store)
        first = refresh_snapshot(store)
        print(first.study)
        print_time("reading the study at first", lambda: refresh_snapshot(store))
        toggle_exclusion(store, desk)
        print_time("reading it again after one change", lambda: refresh_snapshot(store, first))
        print_time("overview at first", lambda: desk.compute_page(lambda made: made.overview))
        toggle_exclusion(store, desk)
        print_time("overview after one change", lambda: desk.compute_page(lambda made: made.overview))
        print_time("overview when nothing changed", lambda: desk.compute_page(lambda made: made.overview))
        print_time(
            "documents, first page",
            lambda: desk.compute_page(lambda made: build_document_list(made.documents, DocumentQuery())),
        )
        search = DocumentQuery(search="zuver", show="disputed")
        print_time(
            "documents, searched and filtered",
            lambda: desk.compute_page(lambda made: build_document_list(made.documents, search)),
        )
        print_time(
            "one document",
            lambda: desk.compute_page(lambda pages: build_document_page(pages.snapshot, pages.documents, "d00500")),
        )
        print_time(
            "one annotator at first",
            lambda: desk.compute_page(lambda made: made.annotator_table.annotator_page("reader-1")),
        )
        print_time(
            "another annotator", lambda: desk.compute_page(lambda made: made.annotator_table.annotator_page("reader-2"))
        )
        toggle_exclusion(store, desk)
        late = asyncio.run(wakeup_delays(lambda: desk.compute_page(lambda made: made.overview)))
        half, most = np.quantile(late, [0.5, 0.99])
        print(f"  event loop delay meanwhile: median {half:.1f} ms, 99% {most:.1f} ms, maximum {late.max():.1f} ms")
        store.close()
