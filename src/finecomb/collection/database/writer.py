"""Writer thread: queued changes are committed in batches and acknowledged once they are on disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from finecomb.collection.database.connection import Database, Transaction

log = logging.getLogger(__name__)
T = TypeVar("T")
Job = Callable[[Transaction], T]
"""Function that reads and writes within a transaction. An exception rolls its changes back."""
_MAX_JOBS_PER_COMMIT = 256  # limits the duration of a commit


@dataclass(slots=True)
class _PendingJob:
    job: Job[Any]
    answer: Callable[[Any, BaseException | None], None]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Thread that owns the only connection used for writing."""

    def __init__(
        self,
        database: Database,
        catch_up: Callable[[Transaction], None] | None = None,
        on_commit: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """Start the thread. Each transaction first calls `catch_up`, and finally `on_commit` with True on success."""
        self._database = database
        self._on_commit = on_commit
        self._catch_up = catch_up
        self._queue: queue.SimpleQueue[_PendingJob | None] = queue.SimpleQueue()
        self._connection: Any = None
        self._connect()
        self._thread = threading.Thread(target=self._run_loop, name="finecomb-writer", daemon=True)
        self.commits = 0
        self._thread.start()

    async def run_job(self, job: Job[T]) -> T:
        """Run a job, and return its result once the changes are on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def answer(result: T, error: BaseException | None) -> None:
            loop.call_soon_threadsafe(_resolve_future, future, result, error)

        self._queue.put(_PendingJob(job, answer))
        return await future

    def run_job_sync(self, job: Job[T]) -> T:
        """Run a job from synchronous code, and return its result once the changes are on disk."""
        future: Future[T] = Future()

        def answer(result: T, error: BaseException | None) -> None:
            _resolve_future(future, result, error)

        self._queue.put(_PendingJob(job, answer))
        return future.result()

    def close(self) -> None:
        """Finish pending jobs, then stop the thread."""
        self._queue.put(None)
        self._thread.join()
        if self._connection is not None:
            self._connection.close()

    def _run_loop(self) -> None:
        is_stopping = False
        while not is_stopping and (first := self._queue.get()) is not None:
            batch = [first]
            while not is_stopping and len(batch) < _MAX_JOBS_PER_COMMIT:
                try:
                    following = self._queue.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    is_stopping = True
                else:
                    batch.append(following)
            self._commit_batch(batch)
            for waiting in batch:
                try:
                    waiting.answer(waiting.result, waiting.error)
                except RuntimeError:  # the event loop was closed because the server is stopping
                    log.warning("a change was saved, but its sender is gone")

    def _commit_batch(self, batch: Iterable[_PendingJob]) -> None:
        try:
            if self._connection is None:
                self._connect()
            self._transaction.execute_sql(self._database.begin)
            if self._catch_up is not None:
                self._catch_up(self._transaction)
            for waiting in batch:
                # Each job runs in a savepoint, so that its failure does not affect the others.
                self._transaction.execute_sql("SAVEPOINT job")
                try:
                    waiting.result = waiting.job(self._transaction)
                except Exception as job_error:
                    waiting.error = job_error
                    self._transaction.execute_sql("ROLLBACK TO SAVEPOINT job")
                self._transaction.execute_sql("RELEASE SAVEPOINT job")
            self._transaction.execute_sql("COMMIT")
            self._database.check_file_not_replaced()  # a write to a file that was moved must not be acknowledged
            self.commits += 1
            self._on_commit(True)
        except Exception as error:  # e.g. the disk is full, or the database was restarted
            log.exception("commit failed; nothing was saved")
            self._on_commit(False)
            # The state of the connection is unknown. If it cannot be replaced now, the next job tries again.
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None
            try:
                self._connect()
            except Exception as connection_error:
                log.error("the database cannot be reached: %s", connection_error)
            for waiting in batch:
                waiting.error = waiting.error or error

    def _connect(self) -> None:
        self._connection = self._database.connect()
        self._transaction = Transaction(self._connection, self._database.compiled)


def _resolve_future(future: Any, result: object, error: BaseException | None) -> None:
    if future.done():
        return  # the sender is gone, e.g. the page was closed
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
