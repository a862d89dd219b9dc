"""Running coroutines from synchronous code, also inside a running event loop, with support for interruption."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from queue import Queue
from typing import Any, TypeVar

T = TypeVar("T")


class RunInterrupted(KeyboardInterrupt):
    """Error for an interrupted run. `result` holds the annotations so far, and repeating the call resumes the run."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion, even if an event loop is already running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    results: list[T] = []
    errors: list[BaseException] = []
    tasks: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Queue()

    async def report_task() -> T:
        tasks.put((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def run() -> None:
        try:
            results.append(asyncio.run(report_task()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    loop, task = tasks.get()
    try:
        thread.join()
    except KeyboardInterrupt:  # only the main thread receives it; without this, paid calls would continue
        if task and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]
