"""The one writer: changes wait in a queue and are committed together; nobody is told before they are on disk."""

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
"""A change: reads and writes in the transaction it is given; raising undoes all that it did."""
_MAX_JOBS_PER_COMMIT = 256  # changes in one commit


@dataclass(slots=True)
class _PendingJob:
    job: Job[Any]
    answer: Callable[[Any, BaseException | None], None]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """A thread with the only connection that writes."""

    def __init__(
        self,
        database: Database,
        catch_up: Callable[[Transaction], None] | None = None,
        on_commit: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`refresh_study` is called at the beginning of every transaction; `on_commit` at its end: whether it was
        kept.
        """
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
        """Run `job` and wait until what it did is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def answer(result: T, error: BaseException | None) -> None:
            loop.call_soon_threadsafe(_resolve_future, future, result, error)

        self._queue.put(_PendingJob(job, answer))
        return await future

    def run_job_sync(self, job: Job[T]) -> T:
        """The same for code that is not asynchronous."""
        future: Future[T] = Future()

        def answer(result: T, error: BaseException | None) -> None:
            _resolve_future(future, result, error)

        self._queue.put(_PendingJob(job, answer))
        return future.result()

    def close(self) -> None:
        """Write what is waiting, then stop."""
        self._queue.put(None)
        self._thread.join()
        if self._connection is not None:
            self._connection.close()

    def _run_loop(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = self._collect_batch(first)
            self._commit_batch(batch)
            for waiting in batch:
                _deliver_result(waiting)
            if last:
                return

    def _collect_batch(self, first: _PendingJob) -> tuple[list[_PendingJob], bool]:
        """Whatever is waiting by now, and whether the writer is to stop after it."""
        batch = [first]
        while len(batch) < _MAX_JOBS_PER_COMMIT:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return batch, True
            batch.append(following)
        return batch, False

    def _commit_batch(self, batch: Iterable[_PendingJob]) -> None:
        try:
            if self._connection is None:
                self._connect()
            self._transaction.command(self._database.begin)
            if self._catch_up is not None:
                self._catch_up(self._transaction)
            for waiting in batch:
                self._run_in_savepoint(waiting)
            self._transaction.command("COMMIT")
            self._database.check_file()  # what is written to a file that was moved away is not acknowledged
            self.commits += 1
            self._on_commit(True)
        except Exception as error:  # e.g. the disk is full, or the database was restarted
            log.exception("a commit failed; nothing of it was kept")
            self._on_commit(False)
            self._reconnect()
            for waiting in batch:
                waiting.error = waiting.error or error

    def _run_in_savepoint(self, waiting: _PendingJob) -> None:
        """One change in a savepoint, so that a failing one does not take the others with it."""
        self._transaction.command("SAVEPOINT job")
        try:
            waiting.result = waiting.job(self._transaction)
        except Exception as error:
            waiting.error = error
            self._transaction.command("ROLLBACK TO SAVEPOINT job")
        self._transaction.command("RELEASE SAVEPOINT job")

    def _connect(self) -> None:
        self._connection = self._database.connect()
        self._transaction = Transaction(self._connection, self._database.compiled)

    def _reconnect(self) -> None:
        """A fresh connection, where the old one may be anything; the next change tries again if there is none yet."""
        with contextlib.suppress(Exception):
            self._connection.close()
        self._connection = None
        try:
            self._connect()
        except Exception as error:
            log.error("the database cannot be reached: %s", error)


def _deliver_result(waiting: _PendingJob) -> None:
    try:
        waiting.answer(waiting.result, waiting.error)
    except RuntimeError:  # the event loop that waited is closed: the server is being stopped
        log.warning("nobody is left to hear that a change was written")


def _resolve_future(future: Any, result: object, error: BaseException | None) -> None:
    if future.done():
        return  # whoever waited has gone away, e.g. closed the page
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
