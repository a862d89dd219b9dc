"""Daily maintenance of the server: deletion of old change records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from finecomb.collection import task_storage
from finecomb.collection.database.store import Store
from finecomb.core.errors import FinecombError

SECONDS_PER_DAY = 24 * 3600.0
log = logging.getLogger(__name__)


@contextmanager
def run_housekeeping(store: Store, every: float = SECONDS_PER_DAY) -> Iterator[None]:
    """Delete old change records at the start, and then every `every` seconds while the study is served."""
    stop_event = threading.Event()
    keeper = threading.Thread(
        target=_forget_changes_periodically, args=(store, every, stop_event), name="housekeeping", daemon=True
    )
    keeper.start()
    try:
        yield
    finally:
        stop_event.set()
        keeper.join(timeout=30)


def _forget_changes_periodically(store: Store, every: float, stop_event: threading.Event) -> None:
    while not stop_event.is_set():
        try:
            store.run_job_sync(task_storage.forget_old_changes)
        except FinecombError as error:  # the database may be unavailable for a while; the next run will try again
            log.warning("old changes were not deleted: %s", error)
        stop_event.wait(every)
