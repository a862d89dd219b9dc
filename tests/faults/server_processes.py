"""Processes of `finecomb serve` that start quickly, as forks of a process with all imports."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_MODULES = ["finecomb.cli", "finecomb.cli.serve", "finecomb.server.study_server", "finecomb.server.app", "uvicorn"]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [*_MODULES, "finecomb.server.housekeeping", "finecomb.collection.database.store", "tests.faults.server_processes"]
)
MAX_START_SECONDS = 120.0
"""Maximum seconds for a server to start on a busy machine."""


@dataclass
class ServerProcess:
    """Server of a study that a test may kill, stop and start again."""

    study: Path
    db: str = ""
    most: int = 0
    """Maximum file size in bytes, to simulate a full disk; 0 for no limit."""
    as_nobody: bool = False
    """True to run without the rights of root, which ignore permissions."""
    offset: Any = None
    """Offset of the server's clock in seconds, as a shared value."""
    process: Any = None
    address: str = ""
    token: str = ""
    starts: int = field(default=0)

    @property
    def log(self) -> Path:
        """Return the output since the last start."""
        return self.study.parent / f"{self.study.name}-{self.starts}-{id(self)}.log"

    def start(self) -> ServerProcess:
        """Start the server, and wait until it responds."""
        self.launch()
        deadline = time.monotonic() + MAX_START_SECONDS
        while "Press Ctrl-C to stop" not in (output := self.log.read_text() if self.log.exists() else ""):
            assert self.process.is_alive(), output
            assert time.monotonic() < deadline, output
            time.sleep(0.02)
        link = next(line for line in output.splitlines() if "/join/" in line).split()[-1]
        self.address, _, self.token = link.partition("/join/")
        return self

    def launch(self) -> None:
        """Start the server without waiting."""
        self.starts += 1
        words = ["finecomb", "serve", str(self.study), "--port", "0", *(["--db", self.db] if self.db else [])]
        arguments = (words, str(self.log), self.most, self.as_nobody, self.offset)
        self.process = CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()

    def kill(self) -> None:
        """Kill the server, as a power cut would."""
        if self.process is not None:
            self.process.kill()  # SIGKILL; no effect when the process has just ended
        self.wait()

    def wait(self) -> int:
        """Wait until the server has ended, and return its exit code."""
        self.process.join(MAX_START_SECONDS)
        return int(self.process.exitcode or 0)

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


def _serve(words: list[str], log: str, max_file_bytes: int, as_nobody: bool, offset: Any) -> None:
    """Run the command in this process."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    if offset is not None:
        _shift_clock(offset)
    if max_file_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    if as_nobody and os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    from finecomb.cli import main

    sys.argv = words
    main()


def _shift_clock(offset: Any) -> None:
    from finecomb.collection.database import store

    module: Any = store
    make = store.open_store
    module.open_store = lambda place, items=None: make(place, items, lambda: time.time() + offset.value)
