"""What a server does by itself once a day: forget changes that nobody can send again."""

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
    """Forget old changes now and then again every so many seconds, for as long as the study is served."""
    over = threading.Event()
    keeper = threading.Thread(
        target=_forget_changes_periodically, args=(store, every, over), name="housekeeping", daemon=True
    )
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join(timeout=30)


def _forget_changes_periodically(store: Store, every: float, over: threading.Event) -> None:
    while not over.is_set():
        try:
            store.run_job_sync(task_storage.forget_old_changes)
        except FinecombError as error:  # a database that is away comes back; tomorrow is early enough
            log.warning("old changes were not forgotten: %s", error)
        over.wait(every)
