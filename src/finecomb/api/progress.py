"""Progress of long work: a bar on standard error, a callback, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
Progress = bool | Callable[[int, int | None], None]
"""True for a bar on standard error, False for nothing, or a function of steps done and in total (None if unknown)."""


@contextlib.contextmanager
def steps(progress: Progress, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of steps just finished.

    >>> calls = []
    >>> with steps(lambda done, total: calls.append((done, total)), "texts", 3) as advance:
    ...     advance(2)
    >>> calls
    [(2, 3)]
    """
    if progress is False:
        yield lambda count: None
        return
    if callable(progress):
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress(done, total)

        yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    count = "{task.completed:,} of {task.total:,}" if total is not None else "{task.completed:,}"
    columns = (
        BarColumn() if total is not None else SpinnerColumn(),
        TextColumn(f"{count} {unit}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda count: bar.advance(task, count)


def track(items: Iterable[T], progress: Progress, unit: str, total: int | None = None) -> Iterator[T]:
    """Pass items on and count each as one step."""
    with steps(progress, unit, total) as advance:
        for item in items:
            yield item
            advance(1)


def track_counts(counts: Iterable[int], progress: Progress, unit: str, total: int | None = None) -> Iterator[int]:
    """Pass counts on and report each as that many steps."""
    with steps(progress, unit, total) as advance:
        for count in counts:
            advance(count)
            yield count


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion, even inside a running event loop such as a notebook's.

    >>> async def answer() -> int:
    ...     return 42
    >>> run_blocking(answer())
    42
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:  # two event loops cannot run in one thread
        return thread.submit(asyncio.run, work).result()


def resume_note(count: int, unit: str) -> list[str]:
    """Return a note about the items that an interrupted earlier run had finished, if there are any.

    >>> resume_note(2, "text"), resume_note(0, "text")
    (['2 texts reused from an interrupted run'], [])
    """
    return [f"{count:,} {unit}{'' if count == 1 else 's'} reused from an interrupted run"] if count else []
