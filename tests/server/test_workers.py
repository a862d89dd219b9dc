"""Tests of several workers on one port: a study can be completed through all of them, and a restart loses nothing."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psutil
import pytest
from typer.testing import CliRunner

from finecomb import formats
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.cli import app
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.store import Store, open_store
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import Settings
from finecomb.server.rehearsal import RehearsalClock, simulate_concurrent_visits
from tests.databases import demo_items, postgresql_url
from tests.faults.saving_people import (
    count_losses,
    join_all,
    make_countdown,
    make_people,
    resend_unanswered,
    save_while,
)

START = 120.0


@dataclass
class ServedByWorkers:
    """Study served by the real command with several workers."""

    process: subprocess.Popen[str]
    address: str
    token: str
    where: StudyLocation
    log: Path

    @property
    def workers(self) -> list[psutil.Process]:
        """Return the worker processes."""
        return [child for child in psutil.Process(self.process.pid).children() if _is_worker(child)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:  # the process is just ending
        return False


@contextmanager
def serve_with_workers(folder: Path, annotators: int, *options: str, texts: int = 1000) -> Iterator[ServedByWorkers]:
    """Serve the demo texts for `annotators` people each, on PostgreSQL with two workers."""
    settings, *rest = demo_items()
    assert isinstance(settings, Settings)
    kept = [item for item in rest if not hasattr(item, "text")]
    documents = [item for item in rest if hasattr(item, "text")][:texts]
    formats.save_records([settings.model_copy(update={"annotators": annotators}), *kept, *documents], folder / "study")
    where = parse_location(f"{postgresql_url()}#{folder.name}-{time.time_ns()}")
    db = f"{where.url}#{where.study}"
    words = ["serve", str(folder / "study"), "--port", "0", "--db", db, "--workers", "2", *options]
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", "from finecomb.cli import main; main()", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or "Press Ctrl-C to stop" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], log.read_text()
        link = next(line for line in lines if "/join/" in line).split()[-1]
        address, _, token = link.partition("/join/")
        yield ServedByWorkers(process, address, token, where, log)
    finally:
        process.terminate()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def open_stored_study(where: StudyLocation) -> Iterator[Store]:
    store = open_store(where)
    try:
        yield store
    finally:
        store.close()


@pytest.mark.long
def test_many_people_finish_a_study_on_two_workers(tmp_path: Path) -> None:
    """Every text has exactly its number of people, and no text is annotated twice or reassigned."""
    with serve_with_workers(tmp_path, 3, texts=8) as study, open_stored_study(study.where) as store:
        port = int(study.address.rpartition(":")[2])
        visits = simulate_concurrent_visits(store, RehearsalClock(), CrowdTraits(), port, people=24, at_once=24, seed=1)
        assert len(study.workers) == 2
        busy = [sum(worker.cpu_times()[:2]) for worker in study.workers]
        annotations = [one for one in store.read_study().iter_annotations() if one.status == "submitted"]
        drafts = [one for one in store.read_study().iter_annotations() if one.status == "draft"]
        assert "failed" not in study.log.read_text()
    people = Counter(one.document for one in annotations)
    assert set(people.values()) == {3}
    assert len(people) == 8
    assert max(Counter((one.document, one.annotator) for one in annotations).values()) == 1
    assert drafts == []
    assert sum(visit.texts for visit in visits) == len(annotations)
    assert min(busy) > 0


@pytest.mark.long
def test_a_rolling_restart_loses_no_save(tmp_path: Path) -> None:
    people = make_people(8)
    with serve_with_workers(tmp_path, 1000) as study:
        asyncio.run(join_all(study.address, study.token, people))
        before = {worker.pid for worker in study.workers}
        is_over = threading.Event()

        def restart() -> None:
            study.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + START
            while before & {worker.pid for worker in study.workers} or len(study.workers) != 2:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            is_over.set()

        replacement = threading.Thread(target=restart)
        replacement.start()
        end = make_countdown(START)
        asyncio.run(save_while(study.address, people, lambda: not is_over.is_set() and end(), patient=True, pause=0.1))
        replacement.join()
        assert is_over.is_set()
        asyncio.run(save_while(study.address, people, make_countdown(1), patient=True))
        asyncio.run(resend_unanswered(study.address, people))
        assert count_losses(study.where, people) == (0, 0)
        assert sum(person.saves for person in people) == sum(person.tries for person in people) > 50


def logged_requests(log: Path) -> list[dict[str, Any]]:
    """Return the requests in a JSON log."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
    return [line for line in lines if line["logger"] == "finecomb.requests"]


@pytest.mark.long
def test_a_worker_that_dies_is_replaced_and_counts_and_logs_go_on(tmp_path: Path) -> None:
    people = make_people(6)
    with serve_with_workers(tmp_path, 1000, "--log-format", "json") as study:
        asyncio.run(join_all(study.address, study.token, people))
        asyncio.run(save_while(study.address, people, make_countdown(1), patient=True))
        answered = {line["process"] for line in logged_requests(study.log)}
        gone = next(
            worker for worker in study.workers if worker.pid in answered
        )  # one worker may have got all connections
        gone.kill()
        asyncio.run(save_while(study.address, people, make_countdown(2), patient=True))
        asyncio.run(resend_unanswered(study.address, people))
        deadline = time.monotonic() + START
        while gone.pid in {worker.pid for worker in study.workers} or len(study.workers) != 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert count_losses(study.where, people) == (0, 0)
        assert httpx.get(f"{study.address}/health").json() == {"status": "ok"}
        page = httpx.get(f"{study.address}/metrics").text
        counted = next(
            line for line in page.splitlines() if line.startswith('finecomb_requests_total{kind="save",status="2xx"')
        )
        saves = sum(person.saves for person in people)
        assert saves - len(people) <= float(counted.split()[-1]) <= saves + len(people)  # except requests in progress
    asked = logged_requests(study.log)
    assert {line["process"] for line in asked} >= {gone.pid}
    assert len({line["process"] for line in asked}) >= 2
    assert "/api/tasks/{task}/marks/{id}" in {line["path"] for line in asked}
    assert study.token not in study.log.read_text()


def test_several_workers_are_refused_on_sqlite(tmp_path: Path) -> None:
    formats.save_records(demo_items(), tmp_path / "study")
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "study"), "--workers", "2"])
    assert isinstance(result.exception, FinecombError)
    printed = result.exception.format_message(format_as_flag)  # as printed on the command line
    assert re.match(r"--workers 2: .* is a SQLite file, which only one process can serve; .*--db", printed)
