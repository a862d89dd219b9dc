from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from finecomb.engine import pool
from finecomb.engine.pool import cores, spread
from finecomb.engine.seeds import generator


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_results_come_in_order_whoever_makes_them(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_ALONE", 0.0)
    assert list(spread(math.sqrt, [0, 1, 4, 9, 16], workers)) == [0, 1, 2, 3, 4]
    assert list(spread(math.sqrt, [], workers)) == []


def test_short_work_starts_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: pytest.fail("started"))
    assert list(spread(math.sqrt, [1, 4], 2)) == [1, 2]


def test_errors_of_workers_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_ALONE", 0.0)
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        list(spread(math.sqrt, [1, -1], 2))


def test_there_is_a_core() -> None:
    assert cores() >= 1


def test_generators_depend_on_their_parts_alone() -> None:
    assert generator(1, "d").random() == generator(1, "d").random()
    assert len({generator(*parts).random() for parts in [(1, "d"), (1, "e"), (2, "d"), ("1d",)]}) == 4


SLEEPER = """
    import os, time
    from finecomb.engine import pool

    def sleep(_):
        os.write(1, b"started\\n")  # in one piece: two processes write at the same time
        time.sleep(600)

    if __name__ == "__main__":
        pool._ALONE = 0.0
        list(pool.spread(sleep, range(4), 2))
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
