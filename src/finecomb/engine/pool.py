"""Work on many items by the cores of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")

_ALONE = 2.0  # seconds of work before other processes are worth starting


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[Item], Done], items: Sequence[Item], workers: int = 1) -> Iterator[Done]:
    """`work` of each item, in their order, by so many processes.

    The first items are done here: what takes no longer than it would take to start others needs none. When the
    consumer stops, by Ctrl-C as well, so do they, at once. `work` is a function of a module, items can be pickled, and
    a script that asks for more than one worker keeps its own doings under `if __name__ == "__main__"`.
    """
    began, done = time.monotonic(), 0
    while done < len(items) and (workers < 2 or time.monotonic() - began < _ALONE):
        yield work(items[done])
        done += 1
    if done < len(items):
        yield from _elsewhere(work, items[done:], workers)


def _elsewhere(work: Callable[[Item], Done], items: Sequence[Item], workers: int) -> Iterator[Done]:
    others = set(multiprocessing.active_children())
    spawning = multiprocessing.get_context("spawn")  # a fork would copy the locks of other libraries' threads
    pool = ProcessPoolExecutor(min(workers, len(items)), spawning, initializer=_ignore_interrupts)
    try:
        yield from pool.map(work, items)
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()  # a pool that is shut down would first finish what it has begun
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C is for the process that people see; it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
