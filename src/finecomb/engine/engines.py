"""Engines: who does the work, the processes of this machine or a Ray cluster. What is worked on decides the result."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import socket
import threading
import time
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param, shorten
from finecomb.core.optional_packages import optional_package
from finecomb.engine.process_pool import ignore_interrupts, usable_core_count

Item = TypeVar("Item")
Result = TypeVar("Result")

_SERIAL_SECONDS = 2.0  # seconds of work before other processes are worth starting
_ITEMS_PER_WORKER = 3  # items in flight for each worker: memory is bounded by them, not by the corpus
_MAX_TRIES = 2  # times that a worker may die over an item that nobody else is working beside
_CONNECT_TIMEOUT = 10.0  # seconds for a connection to a cluster
_RAY_RETRIES = 2  # of a task whose worker died, before its items are looked at one by one


@dataclass(frozen=True, slots=True)
class LostItem:
    """What comes in place of a result when every process that worked on an item has died."""

    reason: str


class Engine(typing.Protocol):
    """Does work on items somewhere; results come in the order of the items, whoever is done first."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | LostItem]:
        """`work` of each item, or a `LostItem`; an exception that `work` raises is raised here.

        Items are taken as they are needed, a few for each worker at a time. `work` and items can be pickled.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Processes of this machine; with one worker, or for the first two seconds, this process itself.

    Work with a true `uses_all_cores`, as of a neural model, stays in this process unless somebody says how many work.
    """

    workers: int = 1
    alone: float = _SERIAL_SECONDS
    """Seconds before other processes are started; 0 where somebody said how many work."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | LostItem]:
        """See `Engine`."""
        remaining, began = iter(items), time.monotonic()
        if self.workers < 2 or (self.alone and getattr(work, "uses_all_cores", False)):
            yield from map(work, remaining)
            return
        while time.monotonic() - began < self.alone:
            item = next(remaining, _END)
            if item is _END:
                return
            yield work(typing.cast(Item, item))
        first = next(remaining, _END)
        if first is _END:
            return
        remaining = itertools.chain([typing.cast(Item, first)], remaining)
        if problem := _pickling_problem(work):
            if not self.alone:
                raise FinecombError(
                    f"this work cannot be sent to other processes ({problem}); leave {param('workers')} out"
                )
            yield from map(work, remaining)
            return
        yield from _RestartingPool(work, self.workers).iter_results(remaining)


_END = object()


def _pickling_problem(work: Callable[..., Any]) -> str:
    """Why work cannot be pickled, e.g. since somebody's class is defined in a function; empty where it can."""
    try:
        pickle.dumps(work)
    except Exception as error:  # whatever a class may raise when it is pickled
        return shorten(str(error), 120)
    return ""


_WORKER_FUNCTION: list[Callable[[Any], Any]] = []
"""The work of this process of a pool: sent once, since a fitted model may be large."""


def _start_worker(work: Callable[[Any], Any]) -> None:
    ignore_interrupts()
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _WORKER_FUNCTION[:] = [work]


def _exit_with_parent() -> None:
    """Leave when whoever started this process was killed: a pool's process would wait for its next item for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_work(item: Any) -> Any:
    return _WORKER_FUNCTION[0](item)


@dataclass
class _RestartingPool:
    """A pool of processes that is started again when one of them dies."""

    work: Callable[[Any], Any]
    workers: int
    others: set[Any] = field(default_factory=lambda: set(multiprocessing.active_children()))

    def iter_results(self, items: Iterable[Any]) -> Iterator[Any]:
        """Results in order; when a process dies, what was in flight is done again, one item at a time."""
        remaining = iter(items)
        flight: deque[tuple[Any, Future[Any]]] = deque()
        pool = self._start_pool(self.workers)
        try:
            while True:
                for item in itertools.islice(remaining, self.workers * _ITEMS_PER_WORKER - len(flight)):
                    flight.append((item, pool.submit(_run_work, item)))
                if not flight:
                    return
                try:
                    yield flight[0][1].result()
                    flight.popleft()
                except BrokenProcessPool:
                    pool.shutdown(cancel_futures=True)
                    yield from self._retry_one_by_one([item for item, _ in flight])
                    flight.clear()
                    pool = self._start_pool(self.workers)
        except BaseException:
            for child in set(multiprocessing.active_children()) - self.others:
                child.terminate()  # a pool that is shut down would first finish what it has begun
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _start_pool(self, workers: int) -> ProcessPoolExecutor:
        spawning = multiprocessing.get_context("spawn")  # a fork would copy the locks of other libraries' threads
        return ProcessPoolExecutor(workers, spawning, initializer=_start_worker, initargs=(self.work,))

    def _retry_one_by_one(self, items: Iterable[Any]) -> Iterator[Any]:
        """Results of items that have a process to themselves, so that a death is their own doing."""
        pool = self._start_pool(1)
        try:
            for item in items:
                result: Any = LostItem(f"the process that worked on it died, {_MAX_TRIES} times out of {_MAX_TRIES}")
                for _ in range(_MAX_TRIES):
                    try:
                        result = pool.submit(_run_work, item).result()
                        break
                    except BrokenProcessPool:
                        pool.shutdown()
                        pool = self._start_pool(1)
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class RayEngine:
    """Workers of a Ray cluster: an existing one by its address, or one that is started on this machine."""

    address: str = ""
    """As `ray.init` takes it, e.g. `auto`, `10.0.0.5:6379` or `ray://head:10001`; empty for one of our own."""
    workers: int = 2
    """Processes of a cluster of our own; of an existing one, how many it has."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | LostItem]:
        """See `Engine`; a task whose worker or machine dies is done again elsewhere."""
        with self.open_connection() as ray:
            yield from self._iter_results(ray, work, items)

    @contextmanager
    def open_connection(self) -> Iterator[Any]:
        """The module `ray`, connected to the cluster; whoever connects first lets go of it, and ends one of our own."""
        ray = _import_ray()
        if ray.is_initialized():
            yield ray
            return
        self._init_ray(ray)
        try:
            yield ray
        finally:
            ray.shutdown()

    def _init_ray(self, ray: Any) -> None:
        if self.address and not _is_listening(self.address):  # Ray itself would try for minutes
            raise FinecombError(
                f"{param('engine', f'ray:{self.address}')}: no cluster answers there: nobody listens at that address"
            )
        local_settings: dict[str, Any] = {"num_cpus": self.workers, "include_dashboard": False}
        place: dict[str, Any] = {"address": self.address} if self.address else {"address": "local", **local_settings}
        try:
            ray.init(**place, log_to_driver=False, configure_logging=False, namespace="finecomb")
        except Exception as error:  # Ray raises a bare one where a cluster of our own does not start in time
            engine_name = f"ray:{self.address}" if self.address else "ray"
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "; one that asks for a token gets it from RAY_AUTH_TOKEN_PATH" if self.address else ""
            raise ParameterError(
                f"{param('engine', engine_name)}: no cluster answers there: {reason}{hint}", parameter="engine"
            ) from None

    def _iter_results(self, ray: Any, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        shared = ray.put(work)
        task = ray.remote(max_retries=_RAY_RETRIES, num_cpus=1)(_call_work)
        ahead = max(self.workers, int(ray.cluster_resources().get("CPU", 1))) * _ITEMS_PER_WORKER
        remaining, flight = iter(items), deque[Any]()
        while True:
            flight.extend(
                task.remote(shared, item) for item in itertools.islice(remaining, max(0, ahead - len(flight)))
            )
            if not flight:
                return
            try:
                result = ray.get(flight[0])
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(getattr(error, "cause", None), Exception) else error from None
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.ObjectLostError):
                times = _RAY_RETRIES + 1
                result = LostItem(f"the process that worked on it died, {times} times out of {times}")
            yield result
            flight.popleft()


def _is_listening(address: str) -> bool:
    """Whether there is a server at HOST:PORT; an address of another form, as `auto`, is for Ray to understand."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


def _call_work(work: Callable[[Any], Any], item: Any) -> Any:
    return work(item)


def _import_ray() -> Any:
    return optional_package(f"{param('engine', 'ray')} needs", "ray")


@contextmanager
def keep_ray_connected(engine: Engine) -> Iterator[None]:
    """Within, a cluster is started or connected to once, and not anew for every table that is worked on."""
    with engine.open_connection() if isinstance(engine, RayEngine) else nullcontext():
        yield


ENGINE_NAMES = ("local", "ray")


def parse_engine(text: str, workers: int | None = None) -> Engine:
    """The engine that `--engine` names: `local`, `ray`, or `ray:ADDRESS`.

    Where somebody says how many workers there are, all work is theirs, so that none can take this process with it.
    """
    name, _, address = text.partition(":")
    if name == "local" and not address:
        return LocalEngine(workers, alone=0.0) if workers else LocalEngine(usable_core_count())
    if name == "ray":
        if address and workers:
            raise ParameterError(
                f"{param('workers')} does not apply to {param('engine', text)}: the cluster says how many it has",
                parameter="workers",
            )
        _import_ray()
        return RayEngine(address, workers or usable_core_count())
    near = did_you_mean(name, ENGINE_NAMES)
    raise ParameterError(f"{param('engine', text)}: expected local, ray or ray:ADDRESS{near}", parameter="engine")
