"""Saves per second of the study server compared with a minimal Starlette and SQLite floor, both with durable commits.

Annotators are asyncio clients on loopback, each on its own connection, which send a save after each response. The floor
does the minimum of any server: it parses the same body and commits it, one commit per save, with the same pragmas.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psutil

from benchmarks._docs import markdown_table, write_table
from benchmarks._postgres import temporary_postgresql
from benchmarks._potato import POTATO_VERSION, convert_save_body, serve_potato
from benchmarks._ratios import describe_conditions, record_ratio
from finecomb import formats, protocols
from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.core.records import ONBOARDING_PHASES, Document, Settings
from finecomb.core.tokens import word_offsets

ROUND_SECONDS = 6.0
TEXT = "The ferry was built by seven men in a week, and it has crossed the harbour every morning since then. " * 10
WORD_OFFSETS = word_offsets(TEXT).tolist()


# --- the floor ---------------------------------------------------------------------------------------------------


def serve_floor(file: str) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE entry (task, id, version, body, PRIMARY KEY (task, id))")

    async def save(request: Request) -> JSONResponse:
        change = await request.json()
        values = (
            request.path_params["task"],
            request.path_params["id"],
            change["base"] + 1,
            json.dumps(change["body"]),
        )
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", values)
        connection.execute("COMMIT")
        return JSONResponse({"change": change["change"], "version": change["base"] + 1})

    app = Starlette(routes=[Route("/api/tasks/{task}/marks/{id}", save, methods=["PUT"])])
    config: Any = uvicorn.Config(app, port=0, log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)

    async def run() -> None:
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", flush=True)
        await running

    asyncio.run(run())


# --- annotators --------------------------------------------------------------------------------------------------


class HttpClient:
    """HTTP client with one connection and a minimal subset of the protocol."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.headers = ""
        self.writer: asyncio.StreamWriter | None = None

    async def connect(self) -> HttpClient:
        if self.writer is not None:
            self.writer.close()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def send(
        self, method: str, path: str, body: str = "", kind: str = "application/json"
    ) -> tuple[dict[str, str], Any]:
        assert self.writer is not None
        content = body.encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: {kind}\r\n"
        self.writer.write(f"{head}{self.headers}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
        headers = dict(pairs)
        headers["cookies"] = "; ".join(value.partition(";")[0] for name, value in pairs if name == "set-cookie")
        answer = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if not status.startswith(("HTTP/1.1 200", "HTTP/1.1 302")):
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return headers, json.loads(answer or "null") if headers.get("content-type") == "application/json" else None

    async def save(self, task: str, id: str, body: str) -> None:
        """Save one change of one mark."""
        await self.send("PUT", f"/api/tasks/{task}/marks/{id}", body)


class PotatoClient(HttpClient):
    """Client for potato's URL, which closes the connection after each response."""

    async def save(self, task: str, id: str, body: str) -> None:
        await self.connect()
        await self.send("POST", "/updateinstance", convert_save_body(body))

    @classmethod
    async def sign_in(cls, port: int, name: str) -> PotatoClient:
        browser = cls(port)
        form = "application/x-www-form-urlencoded"
        for method, path, body in (("POST", "/auth", f"email={name}&pass=&action=login"), ("GET", "/annotate", "")):
            await browser.connect()
            headers, _ = await browser.send(method, path, body, form)
            browser.headers = f"Cookie: {headers['cookies']}\r\n"
        return browser


async def join_study(port: int, link: str) -> tuple[HttpClient, str]:
    """Sign in an annotator and get a task."""
    browser = await HttpClient(port).connect()
    headers, me = await browser.send("POST", f"/api/join/{link}")
    browser.headers = f"Cookie: {headers['cookies']}\r\nX-Finecomb-Token: {me['csrf']}\r\n"
    _, found = await browser.send("POST", "/api/next")
    return browser, found["task"]["id"]


def iter_saves(who: int) -> Iterator[tuple[str, str]]:
    """Yield path and body of successive saves: a new mark, its severity, its explanation, and so on."""
    for number in itertools.count():
        first = number % 180
        start, end = (
            WORD_OFFSETS[first][0],
            WORD_OFFSETS[first + 1 + number // 180 % 9][1],
        )  # enough values that few are equal
        mark = {"spans": [[start, end]], "quotes": [TEXT[start:end]], "label": "incoherent"}
        for base, answers in enumerate(({}, {"severity": 2}, {"severity": 2, "explanation": "It cannot be so. " * 4})):
            change = {
                "change": f"{who}-{number}-{base}",
                "base": base,
                "body": mark | {"answers": answers},
                "active": number,
            }
            yield f"mark-{who}-{number}", json.dumps(change)


async def save_repeatedly(browser: HttpClient, task: str, who: int, until: float, pause: float) -> list[float]:
    took: list[float] = []
    await asyncio.sleep(pause * random.Random(who).random())  # annotators do not start simultaneously
    for id, body in iter_saves(who):
        start = time.perf_counter()
        if start > until:
            return took
        await browser.save(task, id, body)
        took.append(time.perf_counter() - start)
        if pause:
            await asyncio.sleep(max(0.0, pause - took[-1]))
    return took


# --- measuring ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SaveStatistics:
    rate: float
    p50: float
    p99: float
    cpu: float
    """CPU milliseconds of the server per save."""

    @classmethod
    def median_of_rounds(cls, rounds: list[SaveStatistics]) -> SaveStatistics:
        return cls(*(statistics.median(getattr(each, name.name) for each in rounds) for name in fields(cls)))

    def format_cells(self) -> tuple[str, ...]:
        return f"{self.rate:,.0f}", f"{1000 * self.p50:.0f} ms", f"{1000 * self.p99:.0f} ms", f"{self.cpu:.2f} ms"


def cpu_seconds(process: psutil.Process) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in [process, *process.children(recursive=True)])


async def measure_round(
    process: psutil.Process, people: list[tuple[HttpClient, str]], round: int, pause: float
) -> SaveStatistics:
    for browser, _ in people:
        await browser.connect()  # servers close idle connections
    before, start = cpu_seconds(process), time.perf_counter()
    until = start + ROUND_SECONDS
    took = await asyncio.gather(
        *(
            save_repeatedly(browser, task, 1000 * round + who, until, pause)
            for who, (browser, task) in enumerate(people)
        )
    )
    every = sorted(itertools.chain.from_iterable(took))
    seconds = time.perf_counter() - start
    p99 = every[int(0.99 * len(every))]
    return SaveStatistics(
        len(every) / seconds, statistics.median(every), p99, 1000 * (cpu_seconds(process) - before) / len(every)
    )


def start_finecomb(*words: str) -> subprocess.Popen[str]:
    """Start `finecomb` as a separate process."""
    program = [sys.executable, "-c", "from finecomb.cli import main; main()"]
    return subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True)


def read_startup_lines(process: subprocess.Popen[str]) -> list[str]:
    """Return the lines that a server prints until it is ready."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or not ("Stop with" in lines[-1] or lines[-1].startswith("http:")):
        lines.append(process.stdout.readline())
        assert lines[-1], "the server did not start"
    return lines


def stop_server(process: subprocess.Popen[str]) -> None:
    """Stop a server."""
    process.terminate()
    process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


@contextlib.contextmanager
def run_server(process: subprocess.Popen[str]) -> Iterator[tuple[psutil.Process, list[str]]]:
    """Run a server and yield it with the lines it prints when ready."""
    try:
        yield psutil.Process(process.pid), read_startup_lines(process)
    finally:
        stop_server(process)


def make_study(folder: Path) -> None:
    asked = protocols.load("scarecrow")
    texts = [Document(id=f"text-{number}", text=TEXT) for number in range(50)]
    formats.save_records(
        [Settings(protocols=(asked.id,), annotators=1000, skip=ONBOARDING_PHASES), asked, *texts], folder
    )


@dataclass(frozen=True)
class Setup:
    """Configuration of our server."""

    title: str
    url: str = ""
    """URL of a PostgreSQL server; empty for SQLite."""
    workers: int = 1

    def serve_options(self) -> tuple[str, ...]:
        """Return the options of `finecomb serve`, with a new study each time."""
        return ("--db", f"{self.url}#{uuid.uuid4().hex}", "--workers", str(self.workers)) if self.url else ()


async def compare_with_floor(
    annotators: int, pause: float, setup: Setup
) -> tuple[SaveStatistics, SaveStatistics, float]:
    """Alternate our server and the floor, and return the ratio of CPU time per save; medians of three rounds."""
    with tempfile.TemporaryDirectory() as temporary:
        study = Path(temporary) / "study"
        make_study(study)
        bare_server = [sys.executable, "-m", "benchmarks.server", str(Path(temporary) / "floor.db")]
        with (
            run_server(start_finecomb("serve", str(study), "--port", "0", *setup.serve_options())) as (ours, lines),
            run_server(subprocess.Popen(bare_server, stdout=subprocess.PIPE, text=True)) as (bare, (url,)),
        ):
            address, _, link = lines[2].split()[-1].partition("/join/")
            people = [await join_study(int(address.rpartition(":")[2]), link) for _ in range(annotators)]
            port = int(url.strip().rpartition(":")[2])
            others = [(await HttpClient(port).connect(), f"task-{who}") for who in range(annotators)]
            rounds = [
                (await measure_round(ours, people, round, pause), await measure_round(bare, others, round, pause))
                for round in range(3)
            ]
        if not setup.url:
            integrity = sqlite3.connect(study / DATABASE_FILENAME).execute("PRAGMA integrity_check").fetchone()[0]
            assert integrity == "ok", integrity
    ratio = statistics.median(one.cpu / other.cpu for one, other in rounds)
    return (
        SaveStatistics.median_of_rounds([one for one, _ in rounds]),
        SaveStatistics.median_of_rounds([other for _, other in rounds]),
        ratio,
    )


async def measure_potato(annotators: int, pause: float, process: psutil.Process, port: int) -> SaveStatistics:
    """Measure potato with the same saves and new annotators in each round; the median of three rounds."""
    names = [f"{uuid.uuid4().hex[:8]}-{who}" for who in range(annotators)]
    people: list[tuple[HttpClient, str]] = [(await PotatoClient.sign_in(port, name), "") for name in names]
    return SaveStatistics.median_of_rounds([await measure_round(process, people, round, pause) for round in range(3)])


def potato_rows(costs: Mapping[str, float]) -> Iterator[tuple[str, ...]]:
    """Return the table rows of potato, compared with the CPU time per save of our server at the same pace."""
    with serve_potato(TEXT) as (server, port):
        for annotators, pause in LOADS:
            pace = _describe_load(annotators, pause)
            theirs = asyncio.run(measure_potato(annotators, pause, psutil.Process(server.pid), port))
            ratio = record_ratio(f"server: CPU per save, SQLite beside potato, {pace}", costs[pace], theirs.cpu)
            yield (pace, f"potato {POTATO_VERSION}", *theirs.format_cells(), f"ours / potato {ratio:.2f}")


def _describe_load(annotators: int, pause: float) -> str:
    return f"{annotators}, {f'together {annotators / pause:,.0f} saves/s' if pause else 'as fast as it goes'}"


TABLE_HEADER = ("annotators", "server", "saves/s", "p50", "p99", "CPU per save", "ours / floor, CPU")
LOADS = ((20, 0.0), (100, 0.0), (100, 100 / 300))


def table_rows(setups: Sequence[Setup], costs: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """Return the table rows of each setup and the floor; record the first setup's CPU time per save by pace."""
    for annotators, pause in LOADS:
        pace = _describe_load(annotators, pause)
        for setup in setups:
            ours, floor_, ratio = asyncio.run(compare_with_floor(annotators, pause, setup))
            record_ratio(f"server: CPU per save, {setup.title}, annotators: {pace}", ratio, 1.0)
            costs.setdefault(pace, ours.cpu)
            yield (pace, f"ours, {setup.title}", *ours.format_cells(), f"{ratio:.2f}")
            yield ("", "floor", *floor_.format_cells(), "")


def main() -> None:
    """Compare SQLite, PostgreSQL and PostgreSQL with two workers with the floor, then with potato."""
    costs: dict[str, float] = {}
    with temporary_postgresql() as url:
        setups = [
            Setup("SQLite"),
            Setup("PostgreSQL", url),
            Setup("PostgreSQL, 2 workers", url, 2),
        ]
        ours = [*table_rows(setups, costs)]
    table = markdown_table(TABLE_HEADER, [*ours, *potato_rows(costs)])
    write_table("performance.md", "server", table, describe_conditions("uvicorn", "starlette", "psycopg"))


if __name__ == "__main__":
    serve_floor(sys.argv[1])
