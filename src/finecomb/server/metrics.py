"""What a server has done, as numbers for Prometheus: requests, times, commits, progress. Nobody is named."""

from __future__ import annotations

import bisect
import hmac
import ipaddress
import itertools
import multiprocessing
import os
import time
from collections.abc import Iterator, MutableSequence
from typing import Any, cast

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.store import Store
from finecomb.collection.database.tables import bind_parameter
from finecomb.core.errors import FinecombError
from finecomb.server.error_responses import ProblemError
from finecomb.server.logs import log_request
from finecomb.version import __version__

REQUEST_KINDS = ("save", "next", "join", "annotator", "researcher", "page", "other")
"""What a request is for: `save` is anything that an annotator does in a text or on a page."""
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper ends in seconds; one more bucket has the rest."""
CPU_SAMPLE_SECONDS = 0.25
"""Seconds between two looks at the processor time."""
TOKEN_ENV = "FINECOMB_METRICS_TOKEN"
"""The environment variable with the token by which other machines may read the numbers."""

_REQUESTS_OFFSET = 0
_BUCKETS_OFFSET = _REQUESTS_OFFSET + len(REQUEST_KINDS) * len(STATUS_CLASSES)
_SECONDS_OFFSET = _BUCKETS_OFFSET + len(REQUEST_KINDS) * (len(LATENCY_BUCKETS) + 1)
_CPU_OFFSET, _COMMITS_OFFSET, _FAILURES_OFFSET = range(
    _SECONDS_OFFSET + len(REQUEST_KINDS), _SECONDS_OFFSET + len(REQUEST_KINDS) + 3
)
ROW_WIDTH = _FAILURES_OFFSET + 1
"""How many numbers a process keeps."""


def request_kind(method: str, path: str) -> str:
    """What a request is for.

    >>> request_kind("PUT", "/api/tasks/x/marks/y"), request_kind("GET", "/api/admin/overview")
    ('save', 'researcher')
    """
    if path.startswith(("/api/tasks/", "/api/steps/")) and method == "PUT":
        return "save"
    if path == "/api/next":
        return "next"
    if path.startswith(("/api/join/", "/join/")):
        return "join"
    if path.startswith(("/api/admin", "/sign-in/", "/admin")):
        return "researcher"
    if path.startswith("/api/"):
        return "annotator"
    return "page" if path == "/" or path.startswith("/static/") else "other"


class Meter:
    """The numbers of a process, beside those of the others that serve the study: each has a row and writes there only.

    A row stays when its process ends, so that counts never go back; the next process goes on with it.
    """

    def __init__(self, cells: MutableSequence[float] | None = None, row: int = 0) -> None:
        self._cells: MutableSequence[float] = [0.0] * ROW_WIDTH if cells is None else cells
        self._start = row * ROW_WIDTH
        self._cpu_before = self._cells[self._start + _CPU_OFFSET]
        self._cpu_due = 0.0

    def count_request(self, kind: str, status: int, seconds: float) -> None:
        """One more request was answered."""
        place, cells = REQUEST_KINDS.index(kind), self._cells
        cells[self._start + _REQUESTS_OFFSET + place * len(STATUS_CLASSES) + min(max(status // 100, 2), 5) - 2] += 1
        bucket = bisect.bisect_left(LATENCY_BUCKETS, seconds)
        cells[self._start + _BUCKETS_OFFSET + place * (len(LATENCY_BUCKETS) + 1) + bucket] += 1
        cells[self._start + _SECONDS_OFFSET + place] += seconds
        if (now := time.monotonic()) >= self._cpu_due:  # asking for it costs as much as checking a mark
            self._cpu_due = now + CPU_SAMPLE_SECONDS
            cells[self._start + _CPU_OFFSET] = self._cpu_before + time.process_time()

    def count_commit(self, is_kept: bool) -> None:
        """One more commit was written, or failed; called by the writer only."""
        self._cells[self._start + (_COMMITS_OFFSET if is_kept else _FAILURES_OFFSET)] += 1

    def column_total(self, column: int) -> float:
        """A number over all processes."""
        return sum(self._cells[column::ROW_WIDTH])

    def prometheus_lines(self) -> Iterator[str]:
        """What was counted, in Prometheus' text format."""
        yield from _metric_header(
            "finecomb_requests_total", "counter", "Requests by what they are for and how they ended."
        )
        for (place, kind), (at, status) in itertools.product(enumerate(REQUEST_KINDS), enumerate(STATUS_CLASSES)):
            count = self.column_total(_REQUESTS_OFFSET + place * len(STATUS_CLASSES) + at)
            yield _metric_line("finecomb_requests_total", count, kind=kind, status=status)
        yield from _metric_header(
            "finecomb_request_seconds", "histogram", "Seconds from a request to the end of its answer."
        )
        for place, kind in enumerate(REQUEST_KINDS):
            first = _BUCKETS_OFFSET + place * (len(LATENCY_BUCKETS) + 1)
            counts = [self.column_total(first + at) for at in range(len(LATENCY_BUCKETS) + 1)]
            for end, count in zip((*map(str, LATENCY_BUCKETS), "+Inf"), itertools.accumulate(counts), strict=True):
                yield _metric_line("finecomb_request_seconds_bucket", count, kind=kind, le=end)
            yield _metric_line("finecomb_request_seconds_sum", self.column_total(_SECONDS_OFFSET + place), kind=kind)
            yield _metric_line("finecomb_request_seconds_count", sum(counts), kind=kind)
        for name, column, about in (
            (
                "finecomb_cpu_seconds_total",
                _CPU_OFFSET,
                "Processor time of all processes that answer, up to a quarter of a second before their last answer.",
            ),
            (
                "finecomb_commits_total",
                _COMMITS_OFFSET,
                "Commits to the database; one holds all saves that waited for it.",
            ),
            (
                "finecomb_commit_failures_total",
                _FAILURES_OFFSET,
                "Commits that failed; nobody was told that they were kept.",
            ),
        ):
            yield from _metric_header(name, "counter", about)
            yield _metric_line(name, self.column_total(column))


def _metric_header(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _metric_line(name: str, value: float, **labels: str) -> str:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value:g}" if inside else f"{name} {_format_number(value)}"


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


# --- the study ---------------------------------------------------------------------------------------------------

_A, _P = tables.annotation.c, tables.annotator.c
_WORK_COUNTS_QUERY = (
    sa.select(_A.status, sa.func.count(), sa.func.count(sa.case((_A.lease > bind_parameter("now"), 1))))
    .where(_A.study == bind_parameter("study"), _A.phase == "work")
    .group_by(_A.status)
)
_ANNOTATOR_COUNT_QUERY = sa.select(sa.func.count()).where(_P.study == bind_parameter("study"), _P.kind == "human")


def study_metric_lines(store: Store, transaction: Transaction) -> Iterator[str]:
    """How far a study is, in Prometheus' text format: counts only."""
    work = {
        status: (count, kept)
        for status, count, kept in transaction.all(_WORK_COUNTS_QUERY, study=store.key, now=store.clock())
    }
    (people,) = transaction.one(_ANNOTATOR_COUNT_QUERY, study=store.key) or (0,)
    yield from _metric_header("finecomb_info", "gauge", "The version and the state of the study.")
    yield _metric_line("finecomb_info", 1, version=__version__, state=store.head.state)
    for name, value, about in (
        ("finecomb_texts", len(store.assignment_plan().documents), "Texts that are given out."),
        ("finecomb_annotators", people, "People who joined or have a link."),
        ("finecomb_leases", work.get("draft", (0, 0))[1], "Texts that are kept for somebody who is at work."),
    ):
        yield from _metric_header(name, "gauge", about)
        yield _metric_line(name, value)
    yield from _metric_header("finecomb_annotations", "gauge", "Annotations by how far they are.")
    for status in ("draft", "submitted"):
        yield _metric_line("finecomb_annotations", work.get(status, (0, 0))[0], status=status)


# --- routes ------------------------------------------------------------------------------------------------------

router = APIRouter(include_in_schema=False)


@router.get("/health")
def health(request: Request) -> Response:
    """Whether the server can read its database; says nothing else."""
    store: Store = request.app.state.store
    try:
        store.is_current()
    except Exception as error:  # whatever a driver raises
        if not isinstance(error, FinecombError) and not _is_database_driver_error(error):
            raise
        return JSONResponse({"status": "unavailable"}, 503)
    return JSONResponse({"status": "ok"})


def _is_database_driver_error(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("sqlite3", "psycopg")


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Numbers for Prometheus; for this machine, and for who has the token."""
    if not _can_read_metrics(request):
        raise ProblemError("not-allowed", f"Numbers are for this machine, or for a token: set {TOKEN_ENV}.")
    store: Store = request.app.state.store
    meter: Meter = request.app.state.meter
    with store.database.read_transaction() as transaction:
        lines = [*meter.prometheus_lines(), *study_metric_lines(store, transaction)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _can_read_metrics(request: Request) -> bool:
    token = os.environ.get(TOKEN_ENV, "")
    if token:
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), f"Bearer {token}".encode())
    try:
        return ipaddress.ip_address(request.client.host if request.client else "").is_loopback
    except ValueError:
        return False


class MeterMiddleware:
    """Counts requests, and writes a line of the log about each where that is asked for."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self.app, self.meter = app, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and count when the answer is complete."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_and_record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_record_status)
        finally:
            seconds = time.perf_counter() - start
            self.meter.count_request(request_kind(scope["method"], scope["path"]), status, seconds)
            log_request(scope, status, seconds)


def shared_counters(rows: int) -> MutableSequence[float]:
    """Numbers that several processes can write, so many rows of them."""
    cells: Any = multiprocessing.get_context("spawn").RawArray("d", rows * ROW_WIDTH)
    return cast(MutableSequence[float], cells)
