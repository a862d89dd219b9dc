"""Several processes that answer on one port: started, watched over, and replaced one after another without a gap."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Collection, MutableSequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import uvicorn

from finecomb.collection.database.location import StudyLocation
from finecomb.collection.database.store import open_store
from finecomb.core.errors import FinecombError
from finecomb.server.app import create_app
from finecomb.server.connections import maximise_open_file_limit, uvicorn_config
from finecomb.server.logs import LogFormat, configure_logging
from finecomb.server.metrics import Meter, shared_counters

log = logging.getLogger(__name__)
START_SECONDS = 120.0
"""Within which a new worker has to answer."""
STOP_SECONDS = 30.0
"""After which a worker that was asked to stop is ended."""
_POLL_SECONDS = 0.2  # seconds between two looks at the workers
_MAX_FAILURES_PER_MINUTE = 5  # workers that ended within a minute, until the server gives up
_SPAWN_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class WorkerSettings:
    """All that a worker needs to serve a study; goes to another process as it is."""

    location: StudyLocation
    public_url: str = ""
    hosts: frozenset[str] | None = None
    runs: Path | None = None
    key_envs: Collection[str] = ()
    log_format: LogFormat = "text"


@dataclass
class WorkerProcess:
    """A process that answers requests."""

    process: BaseProcess
    is_ready: Event
    row: int
    """Where it counts what it does."""

    def stop(self) -> None:
        """Let it finish the requests under way, and wait until it has ended."""
        self.process.terminate()
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def wait_until_ready(self) -> bool:
        """Wait until it answers; says whether it does."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.is_alive():
            if self.is_ready.wait(_POLL_SECONDS):
                return True
        return False


class WorkerPool:
    """So many workers behind one listening socket, which stays open while they come and go.

    A worker that ends by itself is replaced. `restart` replaces all of them, one after another: the new one answers
    before the old one stops. Connections that nobody has accepted yet wait in the socket meanwhile.
    """

    def __init__(self, settings: WorkerSettings, listening: socket.socket, count: int) -> None:
        self.settings, self.listening, self.count = settings, listening, count
        self.workers: list[WorkerProcess] = []
        self._over, self._restart = threading.Event(), threading.Event()
        self._ends: list[float] = []
        self._cells = shared_counters(2 * count)  # a new worker counts while the old one still answers

    def _start_worker(self) -> WorkerProcess:
        row = min(set(range(2 * self.count)) - {worker.row for worker in self.workers})
        is_ready = _SPAWN_CONTEXT.Event()
        arguments = (self.settings, self.listening, is_ready, self._cells, row)
        process = _SPAWN_CONTEXT.Process(target=_run_worker, args=arguments)
        process.start()
        return WorkerProcess(process, is_ready, row)

    def start(self) -> None:
        """Start all and wait until they answer."""
        for _ in range(self.count):
            self.workers.append(self._start_worker())
        if not all(worker.wait_until_ready() for worker in self.workers):
            self.close()
            raise FinecombError("a worker did not start; the lines above say why")

    def request_stop(self) -> None:
        """Let `watch` come to its end."""
        self._over.set()

    def request_restart(self) -> None:
        """Let `watch` replace every worker, e.g. after an update."""
        self._restart.set()

    def supervise(self) -> None:
        """Replace workers that end, or all when asked to, until the end is asked for; then stop all."""
        try:
            while not self._over.wait(_POLL_SECONDS):
                if self._restart.is_set():
                    self._restart.clear()
                    self._replace_all()
                self._replace_ended()
        finally:
            self.close()

    def _replace_all(self) -> None:
        for at, old in enumerate(self.workers):
            new = self._start_worker()
            if not new.wait_until_ready():
                new.stop()
                log.error("a new worker did not start; the old ones go on")
                return
            self.workers[at] = new
            old.stop()
        log.warning("all %d workers were replaced", self.count)

    def _replace_ended(self) -> None:
        """Start a new worker for each that has ended; too many of them within a minute are an error."""
        for at, worker in enumerate(self.workers):
            if worker.process.is_alive():
                continue
            now = time.monotonic()
            self._ends = [*(end for end in self._ends if now - end < 60), now]
            if len(self._ends) > _MAX_FAILURES_PER_MINUTE:
                raise FinecombError("workers end again and again; the lines above say why")
            log.error("a worker ended (%s); another one starts", worker.process.exitcode)
            self.workers[at] = self._start_worker()

    def close(self) -> None:
        """Stop all, side by side."""
        stops = [threading.Thread(target=worker.stop) for worker in self.workers]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        self.workers = []


# --- inside a worker ---------------------------------------------------------------------------------------------


def _run_worker(
    settings: WorkerSettings, listening: socket.socket, is_ready: Event, cells: MutableSequence[float], row: int
) -> None:
    """Serve the study until the process is asked to stop, or whoever started it is gone."""
    signal.signal(signal.SIGTERM, _exit_process)  # once uvicorn has stopped, and before it has begun
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the first one decides
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    configure_logging(settings.log_format)
    maximise_open_file_limit()
    store = open_store(settings.location)
    try:
        meter = Meter(cells, row)
        app = create_app(store, settings.public_url, settings.hosts, settings.runs, settings.key_envs, meter)
        server = _ReadyServer(uvicorn_config(app, settings.public_url, settings.log_format), is_ready)
        threading.Thread(target=_stop_with_parent, args=(server,), daemon=True).start()
        server.run(sockets=[listening])
    finally:
        store.close()


def _exit_process(*_: object) -> None:
    raise SystemExit(0)


class _ReadyServer(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, is_ready: Event) -> None:
        super().__init__(config)
        self._is_ready = is_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_ready.set()


def _stop_with_parent(server: uvicorn.Server) -> None:
    """Stop when whoever started this process is gone: nobody would replace or stop it any more."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        server.should_exit = True
