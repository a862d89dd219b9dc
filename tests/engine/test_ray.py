"""Work that is cut short on this machine: by a pool, a Ray of our own, and a cluster that is there already."""

from __future__ import annotations

import io
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from finecomb.engine.partitions import Executor
from tests.engine.faulty_work import PARTITION_COUNT, WORK_KINDS, FaultOptions, make_poisoned_texts

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="signals differ"),
    pytest.mark.filterwarnings("ignore"),
]
pytest.importorskip("ray")

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # of the clusters of these tests alone: nobody else may use them
}
PATIENCE = 180
"""Seconds that a step may take on a busy machine."""


def expected(name: str) -> pl.DataFrame:
    """What one process makes of the same texts, without a cluster."""
    return WORK_KINDS[name].result(make_poisoned_texts(name), Executor(), FaultOptions())


def started(
    name: str, engine: str, folder: Path, seconds: float, diary: Path, workers: int = 2
) -> subprocess.Popen[bytes]:
    """A driver in a process of its own."""
    words = [name, engine, str(folder), str(seconds), str(diary), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-c", "from tests.engine.faulty_work import main; main()", *words],
        env=ENVIRONMENT,
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finished(folder: Path) -> dict[str, int]:
    """The partitions that are finished, by name, with their place on the disk."""
    return {path.name: path.stat().st_ino for path in folder.glob("0*")} if folder.is_dir() else {}


def wait_for(folder: Path, partitions: int, run: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while len(finished(folder)) < partitions:
        assert run.poll() is None, run.communicate()[1].decode()[-2000:]
        assert time.monotonic() < until, "no partition was finished"
        time.sleep(0.02)


def result(run: subprocess.Popen[bytes]) -> pl.DataFrame:
    """What a driver printed at its end."""
    printed, complaint = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, complaint.decode()[-2000:]
    return pl.read_json(io.BytesIO(printed.splitlines()[-1]), schema_overrides={"problem": pl.String})


def assert_same(table: pl.DataFrame, name: str) -> None:
    assert table.equals(expected(name))
    bad = table.filter(pl.col("problem").is_not_null())
    assert bad["id"].to_list() == ["d3"]
    assert "ValueError: this text is poisoned" in bad["problem"][0]


def wait_until_gone(processes: set[int]) -> None:
    """Nobody is left behind who waits for work that never comes."""
    until = time.monotonic() + PATIENCE
    while any(map(is_alive, processes)):
        assert time.monotonic() < until, "workers outlive their driver"
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def workers_of(diary: Path) -> list[int]:
    return [int(line.split()[0]) for line in diary.read_text().splitlines()]


@pytest.mark.parametrize("name", WORK_KINDS)
def test_a_worker_that_is_killed_changes_nothing_and_a_poisoned_text_is_set_aside(name: str, tmp_path: Path) -> None:
    folder, diary = tmp_path / "partitions", tmp_path / "diary"
    run = started(name, "ray", folder, 0.5 / WORK_KINDS[name].rows, diary)
    wait_for(folder, 1, run)
    victim = workers_of(diary)[-1]
    os.kill(victim, signal.SIGKILL)
    assert len(finished(folder)) < PARTITION_COUNT  # in the middle
    assert_same(result(run), name)
    assert set(workers_of(diary)) > {victim}


@pytest.mark.parametrize("engine", ["local", "ray"])
@pytest.mark.parametrize("name", WORK_KINDS)
def test_a_driver_that_is_killed_is_started_again_and_does_only_what_is_left(
    name: str, engine: str, tmp_path: Path
) -> None:
    folder, diary = tmp_path / "partitions", tmp_path / "diary"
    rows = WORK_KINDS[name].rows
    run = started(name, engine, folder, 0.8 / rows, diary)
    wait_for(folder, 2, run)
    os.kill(run.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    for stream in (run.stdout, run.stderr):
        assert stream is not None
        stream.close()
    if engine == "local":
        wait_until_gone(set(workers_of(diary)))
    before, second = finished(folder), tmp_path / "second"
    assert 2 <= len(before) < PARTITION_COUNT
    again = started(name, engine, folder, 0.0, second)
    assert_same(result(again), name)
    assert before.items() <= finished(folder).items()  # not written again
    done_again = {line.split()[1] for line in second.read_text().splitlines()}
    assert len(done_again) == rows * (PARTITION_COUNT - len(before))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two workers that somebody else has started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray = Path(sys.executable).with_name("ray")
    words = ["start", "--head", f"--port={port}", "--num-cpus=2", "--include-dashboard=false", "--block"]
    head = subprocess.Popen(
        [str(ray), *words, "--disable-usage-stats"],
        env=ENVIRONMENT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + PATIENCE
        while not _answers(port):
            assert head.poll() is None, "the cluster did not start"
            assert time.monotonic() < until, "the cluster did not answer"
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(head.pid, signal.SIGTERM)
        head.wait(timeout=PATIENCE)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("name", WORK_KINDS)
def test_a_cluster_that_is_there_is_used_by_its_address_and_left_running(
    name: str, cluster: str, tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    run = started(name, f"ray:{cluster}", tmp_path / "partitions", 0.0, diary, workers=0)
    assert_same(result(run), name)
    assert run.pid not in workers_of(diary)
    assert _answers(int(cluster.rpartition(":")[2]))
