"""Server metrics for Prometheus: requests, durations, commits and progress, without personal data."""

from __future__ import annotations

import bisect
import hmac
import ipaddress
import itertools
import math
import os
import time
from collections.abc import Iterator, MutableSequence

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.store import Store
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.core.errors import FinecombError
from finecomb.server.error_responses import ProblemError
from finecomb.server.logs import log_request
from finecomb.version import __version__

REQUEST_KINDS = ("save", "next", "join", "annotator", "researcher", "page", "other")
"""Kinds of requests. `save` covers everything that annotators save in a text or on a page."""
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper limits of the latency buckets in seconds. A further bucket counts all slower requests."""
CPU_SAMPLE_SECONDS = 0.25
"""Seconds between two samples of the CPU time."""
TOKEN_ENV = "FINECOMB_METRICS_TOKEN"
"""Name of the environment variable with the token that lets other machines read the metrics."""

_REQUESTS_OFFSET = 0
_BUCKETS_OFFSET = _REQUESTS_OFFSET + len(REQUEST_KINDS) * len(STATUS_CLASSES)
_SECONDS_OFFSET = _BUCKETS_OFFSET + len(REQUEST_KINDS) * (len(LATENCY_BUCKETS) + 1)
_CPU_OFFSET, _COMMITS_OFFSET, _FAILURES_OFFSET = range(
    _SECONDS_OFFSET + len(REQUEST_KINDS), _SECONDS_OFFSET + len(REQUEST_KINDS) + 3
)
ROW_WIDTH = _FAILURES_OFFSET + 1
"""Number of counters in the row of each process."""


def classify_request(method: str, path: str) -> str:
    """Classify a request for the metrics.

    >>> classify_request("PUT", "/api/tasks/x/marks/y"), classify_request("GET", "/api/admin/overview")
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
    """Counters of one process. They are one row of a table that all processes share.

    When a process ends, its row remains and the next process continues it, so that counters never decrease.
    """

    def __init__(self, cells: MutableSequence[float] | None = None, row: int = 0) -> None:
        self._cells: MutableSequence[float] = [0.0] * ROW_WIDTH if cells is None else cells
        self._start = row * ROW_WIDTH
        self._cpu_before = self._cells[self._start + _CPU_OFFSET]
        self._cpu_due = 0.0

    def count_request(self, kind: str, status: int, seconds: float) -> None:
        """Count a request with its status and duration."""
        place, cells = REQUEST_KINDS.index(kind), self._cells
        cells[self._start + _REQUESTS_OFFSET + place * len(STATUS_CLASSES) + min(max(status // 100, 2), 5) - 2] += 1
        bucket = bisect.bisect_left(LATENCY_BUCKETS, seconds)
        cells[self._start + _BUCKETS_OFFSET + place * (len(LATENCY_BUCKETS) + 1) + bucket] += 1
        cells[self._start + _SECONDS_OFFSET + place] += seconds
        if (now := time.monotonic()) >= self._cpu_due:  # reading the CPU time takes as long as validating a mark
            self._cpu_due = now + CPU_SAMPLE_SECONDS
            cells[self._start + _CPU_OFFSET] = self._cpu_before + time.process_time()

    def count_commit(self, is_kept: bool) -> None:
        """Count a successful or failed commit. Called by the writer thread only."""
        self._cells[self._start + (_COMMITS_OFFSET if is_kept else _FAILURES_OFFSET)] += 1

    def column_total(self, column: int) -> float:
        """Return the sum of a counter over all processes."""
        return sum(self._cells[column::ROW_WIDTH])

    def prometheus_lines(self) -> Iterator[str]:
        """Yield the counters in the Prometheus text format."""
        yield from _metric_header("finecomb_requests_total", "counter", "Requests by kind and status.")
        for (place, kind), (index, status) in itertools.product(enumerate(REQUEST_KINDS), enumerate(STATUS_CLASSES)):
            count = self.column_total(_REQUESTS_OFFSET + place * len(STATUS_CLASSES) + index)
            yield _metric_line("finecomb_requests_total", count, kind=kind, status=status)
        yield from _metric_header("finecomb_request_seconds", "histogram", "Duration of requests in seconds.")
        for place, kind in enumerate(REQUEST_KINDS):
            first = _BUCKETS_OFFSET + place * (len(LATENCY_BUCKETS) + 1)
            counts = [self.column_total(first + index) for index in range(len(LATENCY_BUCKETS) + 1)]
            for end, count in zip((*map(str, LATENCY_BUCKETS), "+Inf"), itertools.accumulate(counts), strict=True):
                yield _metric_line("finecomb_request_seconds_bucket", count, kind=kind, le=end)
            yield _metric_line("finecomb_request_seconds_sum", self.column_total(_SECONDS_OFFSET + place), kind=kind)
            yield _metric_line("finecomb_request_seconds_count", sum(counts), kind=kind)
        for name, column, about in (
            (
                "finecomb_cpu_seconds_total",
                _CPU_OFFSET,
                "Processor time of all serving processes, updated at most four times per second.",
            ),
            (
                "finecomb_commits_total",
                _COMMITS_OFFSET,
                "Commits to the database; one commit may contain many saves.",
            ),
            (
                "finecomb_commit_failures_total",
                _FAILURES_OFFSET,
                "Failed commits, whose saves were not acknowledged.",
            ),
        ):
            yield from _metric_header(name, "counter", about)
            yield _metric_line(name, self.column_total(column))


def _metric_header(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _metric_line(name: str, value: float, **labels: str) -> str:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return (
        f"{name}{{{inside}}} {value:g}"
        if inside
        else f"{name} {(str(int(value)) if value == int(value) else repr(value))}"
    )


# --- the study ---------------------------------------------------------------------------------------------------

_A, _P = tables.annotation.c, tables.annotator.c
_WORK_COUNTS_QUERY = (
    sa.select(_A.status, sa.func.count(), sa.func.count(sa.case((_A.lease > named_sql_placeholder("now"), 1))))
    .where(_A.study == named_sql_placeholder("study"), _A.phase == "work")
    .group_by(_A.status)
)
_ANNOTATOR_COUNT_QUERY = sa.select(sa.func.count()).where(
    _P.study == named_sql_placeholder("study"), _P.kind == "human"
)


def study_metric_lines(store: Store, transaction: Transaction) -> Iterator[str]:
    """Yield the progress of a study in the Prometheus text format."""
    work = {
        status: (count, kept)
        for status, count, kept in transaction.fetch_all(_WORK_COUNTS_QUERY, study=store.key, now=store.clock())
    }
    (people,) = transaction.fetch_first(_ANNOTATOR_COUNT_QUERY, study=store.key) or (0,)
    yield from _metric_header("finecomb_info", "gauge", "Version of Finecomb and state of the study.")
    yield _metric_line("finecomb_info", 1, version=__version__, state=store.head.state)
    for name, value, about in (
        ("finecomb_texts", len(store.assignment_plan().documents), "Texts that can be assigned."),
        ("finecomb_annotators", people, "People who joined or have a link."),
        ("finecomb_leases", work.get("draft", (0, 0))[1], "Texts reserved for an annotator."),
    ):
        yield from _metric_header(name, "gauge", about)
        yield _metric_line(name, value)
    yield from _metric_header("finecomb_annotations", "gauge", "Annotations by status.")
    for status in ("draft", "submitted"):
        yield _metric_line("finecomb_annotations", work.get(status, (0, 0))[0], status=status)


# --- routes ------------------------------------------------------------------------------------------------------

router = APIRouter(include_in_schema=False)


_WRITE_CHECK_SECONDS = 5.0  # seconds for which a successful write counts


def _check_writable(store: Store, transaction: Transaction) -> None:
    """Write a row and read it back. The transaction is committed like a save, and the row is gone afterwards."""
    columns = tables.attempt.c
    values = {"study": store.key, "kind": "health", "address": "", "at": store.clock()}
    transaction.execute(sa.insert(tables.attempt).values(**values))
    mine = (columns.study == store.key, columns.kind == "health")
    if transaction.fetch_first(sa.select(columns.at).where(*mine)) is None:
        raise FinecombError("the database does not return what was written to it")
    transaction.execute(sa.delete(tables.attempt).where(*mine))


@router.get("/health")
def health(request: Request) -> Response:
    """Report whether the server can write to its database and read from it."""
    store: Store = request.app.state.store
    try:
        store.refresh_and_check_current()
        # Anyone may ask, so the disk is not made to work more than once in a few seconds.
        if time.monotonic() - getattr(request.app.state, "last_write_check", -math.inf) > _WRITE_CHECK_SECONDS:
            store.run_job_sync(_check_writable)
            request.app.state.last_write_check = time.monotonic()
    except Exception as error:  # each driver raises its own exceptions
        if not isinstance(error, FinecombError) and type(error).__module__.split(".")[0] not in ("sqlite3", "psycopg"):
            raise
        return JSONResponse({"status": "unavailable"}, 503)
    return JSONResponse({"status": "ok"})


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Return metrics for Prometheus, to local clients or with a token."""
    if token := os.environ.get(TOKEN_ENV, ""):
        sent = request.headers.get("authorization", "")
        if not hmac.compare_digest(sent.encode(), f"Bearer {token}".encode()):
            raise ProblemError("not-allowed", f"Send the value of {TOKEN_ENV} as a bearer token to read the metrics.")
    else:
        try:
            is_local = ipaddress.ip_address(request.client.host if request.client else "").is_loopback
        except ValueError:
            is_local = False
        if not is_local:
            raise ProblemError(
                "not-allowed",
                f"Metrics are available only on the server's machine. Set {TOKEN_ENV} to allow other machines.",
            )
    store: Store = request.app.state.store
    meter: Meter = request.app.state.meter
    with store.database.read_transaction() as transaction:
        lines = [*meter.prometheus_lines(), *study_metric_lines(store, transaction)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


class MeterMiddleware:
    """Middleware that counts requests and logs each one when JSON logging is on."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self.app, self.meter = app, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and count it after the response."""
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
            self.meter.count_request(classify_request(scope["method"], scope["path"]), status, seconds)
            log_request(scope, status, seconds)
