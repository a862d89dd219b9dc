"""Engines: the same results in the same order, whoever works and whoever dies."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from finecomb.core.errors import FinecombError
from finecomb.engine.engines import LocalEngine, LostItem, RayEngine, parse_engine
from finecomb.engine.processes import usable_core_count
from tests.engine.crashing_work import square_or_crash


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_whoever_makes_them(workers: int) -> None:
    engine = LocalEngine(workers, alone=0.0)
    assert list(engine.map(math.sqrt, [0, 1, 4, 9, 16])) == [0, 1, 2, 3, 4]
    assert list(engine.map(math.sqrt, [])) == []


def test_short_work_starts_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: pytest.fail("started"))
    assert list(LocalEngine(2).map(math.sqrt, [1, 4])) == [1, 2]


def test_errors_of_workers_arrive() -> None:
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        list(LocalEngine(2, alone=0.0).map(math.sqrt, [1, -1]))


def test_items_are_taken_only_a_few_ahead_of_the_results() -> None:
    endless = itertools.count()
    results = LocalEngine(2, alone=0.0).map(math.sqrt, endless)
    assert [next(results) for _ in range(3)] == [0.0, 1.0, math.sqrt(2)]
    results.close()  # type: ignore[attr-defined]
    assert next(endless) < 20


@pytest.mark.long
def test_only_the_item_that_kills_its_worker_is_lost() -> None:
    results = list(LocalEngine(2, alone=0.0).map(square_or_crash, range(8)))
    assert results[:3] + results[4:] == [number * number for number in range(8) if number != 3]
    assert isinstance(results[3], LostItem)
    assert "died" in results[3].reason


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        ("spark", None, "expected local, ray or ray:ADDRESS"),
        ("local:8", None, "expected local, ray or ray:ADDRESS"),
        ("rai", None, "did you mean 'ray'"),
    ],
)
def test_engines_that_are_not_there_are_refused(name: str, workers: int | None, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        parse_engine(name, workers)


def test_an_engine_is_named() -> None:
    assert parse_engine("local", 3) == LocalEngine(3, alone=0.0)
    pytest.importorskip("ray")
    assert parse_engine("ray:10.0.0.5:6379") == RayEngine("10.0.0.5:6379", usable_core_count())
    with pytest.raises(FinecombError, match=r"^workers cannot be used with engine=ray:auto"):
        parse_engine("ray:auto", 2)


def test_an_address_where_nobody_listens_is_said_at_once() -> None:
    pytest.importorskip("ray")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(FinecombError, match=f"engine=ray:{address}: no Ray cluster is listening"):
            list(parse_engine(f"ray:{address}").map(math.sqrt, [1]))


SLEEPER = """
    import os, time
    from finecomb.engine.engines import LocalEngine

    def sleep(_):
        os.write(1, b"started\\n")  # in one piece: two processes write at the same time
        time.sleep(600)

    if __name__ == "__main__":
        list(LocalEngine(2, alone=0.0).map(sleep, range(4)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_an_interrupt_stops_all_processes_at_once(tmp_path: Path) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text(textwrap.dedent(SLEEPER))
    run = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "started\n"
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=60) != 0
    with pytest.raises(ProcessLookupError):
        _wait_until_gone(run.pid)
    run.stdout.close()


def _wait_until_gone(group: int) -> None:
    """Returns after a minute; raises ProcessLookupError as soon as no process of the group is left."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        os.killpg(group, 0)
        time.sleep(0.05)
