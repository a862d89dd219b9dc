"""Worker processes that share one port. They are supervised, and can be replaced one by one without downtime."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, MutableSequence, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, cast

import uvicorn

from finecomb.collection.database.location import StudyLocation
from finecomb.collection.database.store import open_store
from finecomb.core.errors import FinecombError
from finecomb.engine.isolation import isolated_children
from finecomb.server.app import create_app
from finecomb.server.connections import LOCAL_PROXIES, build_uvicorn_config, maximise_open_file_limit
from finecomb.server.logs import LogFormat, configure_logging
from finecomb.server.metrics import ROW_WIDTH, Meter

log = logging.getLogger(__name__)
START_TIMEOUT_SECONDS = 120.0
"""Maximum seconds until a new worker responds."""
STOP_TIMEOUT_SECONDS = 30.0
"""Seconds after which a worker that does not stop on request is killed."""
_POLL_SECONDS = 0.2  # seconds between checks of the workers
_MAX_FAILURES_PER_MINUTE = 5  # the server stops after more failures
_SPAWN_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class WorkerSettings:
    """Settings that a worker process needs to serve a study."""

    location: StudyLocation
    public_url: str = ""
    hosts: frozenset[str] | None = None
    runs: Path | None = None
    key_envs: Collection[str] = ()
    log_format: LogFormat = "text"
    trusted_proxies: Sequence[str] = LOCAL_PROXIES


@dataclass
class WorkerProcess:
    """Worker process that handles requests."""

    process: BaseProcess
    is_ready: Event
    row: int
    """Row of this worker in the shared table of counters."""

    def stop(self) -> None:
        """Let the worker finish its current requests, stop it, and wait until it has ended."""
        self.process.terminate()
        self.process.join(STOP_TIMEOUT_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def wait_until_ready(self) -> bool:
        """Wait until the worker responds, and return whether it did."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline and self.process.is_alive():
            if self.is_ready.wait(_POLL_SECONDS):
                return True
        return False


class WorkerPool:
    """Workers behind one listening socket, which stays open while they are replaced.

    A worker that ends is replaced. `request_restart` replaces all workers one by one. Each old worker stops only after
    its replacement responds. Connections that have not been accepted yet wait in the socket.
    """

    def __init__(self, settings: WorkerSettings, listening: socket.socket, count: int) -> None:
        self.settings, self.listening, self.count = settings, listening, count
        self.workers: list[WorkerProcess] = []
        self._over, self._restart = threading.Event(), threading.Event()
        self._ends: list[float] = []
        cells: Any = multiprocessing.get_context("spawn").RawArray("d", (2 * count) * ROW_WIDTH)
        self._cells = cast(MutableSequence[float], cells)  # during a restart, old and new workers both count

    def _spawn_worker_process(self) -> WorkerProcess:
        row = min(set(range(2 * self.count)) - {worker.row for worker in self.workers})
        with isolated_children():  # the first event starts the process that tracks semaphores
            is_ready = _SPAWN_CONTEXT.Event()
        arguments = (self.settings, self.listening, is_ready, self._cells, row)
        process = _SPAWN_CONTEXT.Process(target=_run_worker, args=arguments)
        with isolated_children():
            process.start()
        return WorkerProcess(process, is_ready, row)

    def start(self) -> None:
        """Start all workers, and wait until they respond."""
        for _ in range(self.count):
            self.workers.append(self._spawn_worker_process())
        if not all(worker.wait_until_ready() for worker in self.workers):
            self.close()
            raise FinecombError("a worker did not start; see the messages above")

    def request_stop(self) -> None:
        """Make `supervise` stop all workers and return."""
        self._over.set()

    def request_restart(self) -> None:
        """Make `supervise` replace all workers, e.g. after an update."""
        self._restart.set()

    def supervise(self) -> None:
        """Replace workers that end, and all workers on request, until a stop is requested."""
        try:
            while not self._over.wait(_POLL_SECONDS):
                if self._restart.is_set():
                    self._restart.clear()
                    for index, old in enumerate(self.workers):
                        new = self._spawn_worker_process()
                        if not new.wait_until_ready():
                            new.stop()
                            log.error("a new worker did not start; the old ones continue")
                            break
                        self.workers[index] = new
                        old.stop()
                    else:
                        log.warning("all %d workers were replaced", self.count)
                for index, worker in enumerate(self.workers):
                    if worker.process.is_alive():
                        continue
                    now = time.monotonic()
                    self._ends = [*(end for end in self._ends if now - end < 60), now]
                    if len(self._ends) > _MAX_FAILURES_PER_MINUTE:
                        raise FinecombError("workers keep failing; see the messages above")
                    log.error("a worker ended (exit code %s); starting another one", worker.process.exitcode)
                    self.workers[index] = self._spawn_worker_process()
        finally:
            self.close()

    def close(self) -> None:
        """Stop all workers in parallel."""
        stops = [threading.Thread(target=worker.stop) for worker in self.workers]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        self.workers = []


# --- worker process ----------------------------------------------------------------------------------------------


def _run_worker(
    settings: WorkerSettings, listening: socket.socket, is_ready: Event, cells: MutableSequence[float], row: int
) -> None:
    """Serve the study until the process is asked to stop or its parent process ends."""
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # applies before uvicorn installs its handlers, and after uvicorn has stopped
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes in the terminal; the parent decides
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    configure_logging(settings.log_format)
    maximise_open_file_limit()
    store = open_store(settings.location)
    try:
        meter = Meter(cells, row)
        app = create_app(store, settings.public_url, settings.hosts, settings.runs, settings.key_envs, meter)
        server = _ReadyServer(
            build_uvicorn_config(app, settings.public_url, settings.log_format, settings.trusted_proxies), is_ready
        )
        threading.Thread(target=_stop_with_parent, args=(server,), daemon=True).start()
        server.run(sockets=[listening])
    finally:
        store.close()


class _ReadyServer(uvicorn.Server):
    """Uvicorn server that signals when it is ready."""

    def __init__(self, config: uvicorn.Config, is_ready: Event) -> None:
        super().__init__(config)
        self._is_ready = is_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_ready.set()


def _stop_with_parent(server: uvicorn.Server) -> None:
    """Stop the server when its parent process ends, because no other process would replace or stop it."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        server.should_exit = True
