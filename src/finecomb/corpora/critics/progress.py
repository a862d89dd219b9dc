"""Progress of long work, for whoever wants to show it: nothing is shown unless a watcher is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Watcher = Callable[[Iterable[T], str, int | None], Iterable[T]]
"""Passes items on unchanged; takes what is being done in words, and how many items there are where that is known."""


def _no_progress(items: Iterable[T], words: str, total: int | None) -> Iterable[T]:
    return items


_watcher: ContextVar[Watcher[object]] = ContextVar("watcher", default=_no_progress)


def track(items: Iterable[T], words: str, total: int | None = None) -> Iterator[T]:
    """The same items, watched."""
    yield from _watcher.get()(items, words, total)  # type: ignore[misc]


@contextlib.contextmanager
def use_progress_watcher(watcher: Watcher[object]) -> Iterator[None]:
    """Within, every `track` is shown by `watcher`."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
