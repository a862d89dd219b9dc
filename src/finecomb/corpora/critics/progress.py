"""Progress of long-running work; nothing is shown unless a watcher is set."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Watcher = Callable[[Iterable[T], str, int | None], Iterable[T]]
"""Function that passes items through, given a description and the number of items, if known."""


def _pass_items_through(items: Iterable[T], words: str, total: int | None) -> Iterable[T]:
    return items


_watcher: ContextVar[Watcher[object]] = ContextVar("watcher", default=_pass_items_through)


def track_progress(items: Iterable[T], words: str, total: int | None = None) -> Iterator[T]:
    """Yield the items unchanged while the current watcher shows progress."""
    yield from _watcher.get()(items, words, total)  # type: ignore[misc]


@contextlib.contextmanager
def use_progress_watcher(watcher: Watcher[object]) -> Iterator[None]:
    """Use `watcher` to show the progress of all `track_progress` calls within the context."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
