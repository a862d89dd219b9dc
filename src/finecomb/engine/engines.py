"""Engines that run work on local processes or on a Ray cluster. The result depends only on the items."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param, shorten
from finecomb.core.optional_packages import import_optional_package
from finecomb.engine.isolation import isolated_children
from finecomb.engine.processes import usable_core_count
from finecomb.engine.user_code import allow_user_code, allowed_code_paths, allowed_modules

Item = TypeVar("Item")
Result = TypeVar("Result")

_SERIAL_SECONDS = 2.0  # seconds of work in this process after which it pays off to start worker processes
_ITEMS_PER_WORKER = 3  # items in flight per worker, so that memory does not grow with the corpus
_MAX_TRIES = 2  # attempts per item, each in a new process, before the item counts as lost
_CONNECT_TIMEOUT = 10.0  # seconds to wait for a connection to a cluster
_RAY_RETRIES = 2  # retries of a Ray task after its worker dies, before its item counts as lost


@dataclass(frozen=True, slots=True)
class LostItem:
    """Placeholder for the result of an item whose worker process died on every attempt."""

    reason: str


class Engine(typing.Protocol):
    """Interface of engines, which apply a function to items and yield the results in the order of the items."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | LostItem]:
        """Yield `work(item)` for each item, or a `LostItem`. Exceptions raised by `work` propagate.

        Items are consumed lazily, a few per worker at a time. `work` and the items must be picklable.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Engine of local worker processes. With one worker, or for the first two seconds, work runs in this process.

    Work whose `uses_all_cores` is True, such as a neural model, stays in this process unless the user sets `workers`.
    """

    workers: int = 1
    alone: float = _SERIAL_SECONDS
    """Seconds before worker processes start; 0 if the user sets `workers`."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | LostItem]:
        """Yield results in the order of the items (see `Engine.map`)."""
        remaining, began = iter(items), time.monotonic()
        if self.workers < 2 or (self.alone and getattr(work, "uses_all_cores", False)):
            yield from map(work, remaining)
            return
        while time.monotonic() - began < self.alone:
            item = next(remaining, _NO_ITEM)
            if item is _NO_ITEM:
                return
            yield work(typing.cast(Item, item))
        first = next(remaining, _NO_ITEM)
        if first is _NO_ITEM:
            return
        remaining = itertools.chain([typing.cast(Item, first)], remaining)
        problem = ""
        try:
            pickle.dumps(work)
        except Exception as error:  # e.g. a class defined in a function; user-defined classes can raise anything here
            problem = shorten(str(error), 120) or type(error).__name__
        if problem:
            if not self.alone:
                raise FinecombError(
                    f"the computation cannot be sent to other processes ({problem}); omit {param('workers')}"
                )
            yield from map(work, remaining)
            return
        while time.monotonic() - began < self.alone:
            item = next(remaining, _NO_ITEM)
            if item is _NO_ITEM:
                return
            yield work(typing.cast(Item, item))
        first = next(remaining, _NO_ITEM)
        if first is _NO_ITEM:
            return
        remaining = itertools.chain([typing.cast(Item, first)], remaining)
        try:
            pickle.dumps(work)
        except Exception as error:  # e.g. a class defined in a function; user-defined classes can raise anything here
            if not self.alone:
                problem = shorten(str(error), 120)
                raise FinecombError(
                    f"the computation cannot be sent to other processes ({problem}); omit {param('workers')}"
                ) from None
            yield from map(work, remaining)
            return
        yield from _RestartingPool(work, self.workers).iter_results(remaining)


_NO_ITEM = object()


_WORKER_FUNCTION: list[Callable[[Any], Any]] = []
"""Function that this pool process applies to items, sent once at the start because a fitted model can be large."""


def _start_worker(code_paths: Sequence[Path], pickled: bytes) -> None:
    """Prepare a pool process. The work is unpickled here, after code that the user allowed can be imported."""
    allow_user_code(code_paths)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _WORKER_FUNCTION[:] = [pickle.loads(pickled)]


def _exit_with_parent() -> None:
    """Exit if the parent process is killed; otherwise, a pool process would wait forever for its next item."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_work(item: Any) -> Any:
    return _WORKER_FUNCTION[0](item)


def _submit(pool: ProcessPoolExecutor, item: Any) -> Future[Any]:
    with isolated_children():  # the first item starts the processes
        return pool.submit(_run_work, item)


@dataclass
class _RestartingPool:
    """Process pool that restarts when one of its processes dies."""

    work: Callable[[Any], Any]
    workers: int
    others: set[Any] = field(default_factory=lambda: set(multiprocessing.active_children()))

    def iter_results(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield results in order. When a process dies, retry the items in flight one at a time."""
        remaining = iter(items)
        flight: deque[tuple[Any, Future[Any]]] = deque()
        pool = self._start_pool(self.workers)
        try:
            while True:
                for item in itertools.islice(remaining, self.workers * _ITEMS_PER_WORKER - len(flight)):
                    flight.append((item, _submit(pool, item)))
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
                child.terminate()  # shutdown alone would first finish the items in flight
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _start_pool(self, workers: int) -> ProcessPoolExecutor:
        spawning = multiprocessing.get_context("spawn")  # a fork would copy locks held by threads of other libraries
        arguments = (allowed_code_paths(), pickle.dumps(self.work))
        with isolated_children():  # the pool's queues start the process that tracks semaphores
            return ProcessPoolExecutor(workers, spawning, initializer=_start_worker, initargs=arguments)

    def _retry_one_by_one(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield results of items, each run alone in a process, so that a crash can be attributed to one item."""
        pool = self._start_pool(1)
        try:
            for item in items:
                result: Any = LostItem(f"its worker process died {_MAX_TRIES} times")
                for _ in range(_MAX_TRIES):
                    try:
                        result = _submit(pool, item).result()
                        break
                    except BrokenProcessPool:
                        pool.shutdown()
                        pool = self._start_pool(1)
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class RayEngine:
    """Engine that uses the workers of a Ray cluster: an existing cluster at `address`, or a new one on this machine."""

    address: str = ""
    """Address for `ray.init`, e.g. `auto`, `10.0.0.5:6379` or `ray://head:10001`; empty to start a local cluster."""
    workers: int = 2
    """Number of worker processes if a cluster is started here. An existing cluster reports its own number."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | LostItem]:
        """Yield results in the order of the items (see `Engine.map`). Ray reruns tasks whose worker or machine dies."""
        with self.open_connection() as ray:
            yield from self._iter_results(ray, work, items)

    @contextmanager
    def open_connection(self) -> Iterator[Any]:
        """Yield the `ray` module, connected to the cluster. The outermost caller closes the connection."""
        ray = _import_ray()
        if ray.is_initialized():
            yield ray
            return
        if self.address and not _is_listening(self.address):  # Ray itself would retry for minutes
            raise FinecombError(
                f"{param('engine', f'ray:{self.address}')}: no Ray cluster is listening at this address; check the "
                "address, or start the cluster"
            )
        local_settings: dict[str, Any] = {"num_cpus": self.workers, "include_dashboard": False}
        connection: dict[str, Any] = (
            {"address": self.address} if self.address else {"address": "local", **local_settings}
        )
        try:
            ray.init(**connection, log_to_driver=False, configure_logging=False, namespace="finecomb")
        except Exception as error:  # Ray raises plain exceptions, e.g. if a new cluster does not start in time
            engine_name = f"ray:{self.address}" if self.address else "ray"
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "; if the cluster requires a token, set RAY_AUTH_TOKEN_PATH" if self.address else ""
            raise ParameterError(
                f"{param('engine', engine_name)}: cannot connect to a Ray cluster: {reason}{hint}", parameter="engine"
            ) from None
        try:
            yield ray
        finally:
            ray.shutdown()

    def _iter_results(self, ray: Any, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for module in allowed_modules():  # Ray's workers import only what is installed
            ray.cloudpickle.register_pickle_by_value(module)
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
                result = LostItem(f"its worker process died {times} times")
            yield result
            flight.popleft()


def _is_listening(address: str) -> bool:
    """Return True if a server listens at HOST:PORT, or if the address has another form that Ray resolves (`auto`)."""
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
    return import_optional_package(f"{param('engine', 'ray')} requires", "ray")


@contextmanager
def keep_ray_connected(engine: Engine) -> Iterator[None]:
    """Keep one connection to a Ray cluster open for all tables of a command. Other engines need no connection."""
    with engine.open_connection() if isinstance(engine, RayEngine) else nullcontext():
        yield


ENGINE_NAMES = ("local", "ray")


def parse_engine(text: str, workers: int | None = None) -> Engine:
    """Return the engine named by `--engine`: `local`, `ray` or `ray:ADDRESS`.

    With an explicit number of workers, all work runs in worker processes, so that a crash cannot end this process.
    """
    name, _, address = text.partition(":")
    if name == "local" and not address:
        return LocalEngine(workers, alone=0.0) if workers else LocalEngine(usable_core_count())
    if name == "ray":
        if address and workers:
            raise ParameterError(
                f"{param('workers')} cannot be used with {param('engine', text)}; "
                "the cluster sets the number of workers",
                parameter="workers",
            )
        _import_ray()
        return RayEngine(address, workers or usable_core_count())
    suggestion = did_you_mean(name, ENGINE_NAMES)
    raise ParameterError(f"{param('engine', text)}: expected local, ray or ray:ADDRESS{suggestion}", parameter="engine")
