"""A real Ray of two workers on this machine: worker, driver and texts go wrong, and the result is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.engine.works import MischiefOptions, documents, marked

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="signals differ"),
    pytest.mark.filterwarnings("ignore"),
]
pytest.importorskip("ray")

ROOT = Path(__file__).parents[2]
COUNT = 160


def expected(place: Path) -> dict[str, pl.DataFrame]:
    """What one process makes of the same texts, without a cluster."""
    corpus = marked("local", documents(COUNT, d3="poison here"), place / "alone", MischiefOptions(), workers=1)
    return {name: corpus.table(name).collect() for name in ("annotations", "marks", "units")}


def started(folder: Path, seconds: float, diary: Path) -> subprocess.Popen[bytes]:
    """A driver in a process of its own, with its own Ray."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    words = ["ray", str(COUNT), str(folder), str(seconds), str(diary)]
    return subprocess.Popen(
        [sys.executable, "-c", "from tests.engine.works import main; main()", *words],
        env={**os.environ, "PYTHONPATH": paths, "RAY_DISABLE_IMPORT_WARNING": "1"},
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finished(folder: Path) -> dict[str, int]:
    """The partitions that are finished, by name, with their place on the disk."""
    return {path.name: path.stat().st_ino for path in folder.glob("0*")} if folder.is_dir() else {}


def wait_for(folder: Path, partitions: int) -> None:
    until = time.monotonic() + 50
    while len(finished(folder)) < partitions:
        assert time.monotonic() < until, "no partition was finished"
        time.sleep(0.05)


def assert_same(folder: Path, wanted: dict[str, pl.DataFrame]) -> None:
    for name, table in wanted.items():
        files = sorted(folder.glob(f"0*/{name}.parquet"))
        assert pl.concat([pl.read_parquet(file) for file in files]).equals(table)
    reasons = wanted["annotations"].filter(pl.col("excluded").is_not_null())
    assert reasons["document"].to_list() == ["d3"]
    assert "ValueError: this text is poisoned" in reasons["excluded"][0]


def ended(run: subprocess.Popen[bytes]) -> None:
    assert run.stderr is not None
    with run.stderr:
        complaint = run.stderr.read()
    assert run.wait(timeout=50) == 0, complaint.decode()[-2000:]


def test_a_worker_that_is_killed_changes_nothing_and_a_poisoned_text_is_set_aside(tmp_path: Path) -> None:
    folder, diary = tmp_path / "partitions", tmp_path / "diary"
    run = started(folder, 0.03, diary)
    wait_for(folder, 1)
    victim = int(diary.read_text().splitlines()[-1].split()[0])
    os.kill(victim, signal.SIGKILL)
    ended(run)
    workers = {line.split()[0] for line in diary.read_text().splitlines()}
    assert len(workers) > 2  # another one took the dead one's place
    assert_same(folder, expected(tmp_path))


def test_a_driver_that_is_killed_is_started_again_and_does_only_what_is_left(tmp_path: Path) -> None:
    folder, diary = tmp_path / "partitions", tmp_path / "diary"
    run = started(folder, 0.05, diary)
    wait_for(folder, 2)
    os.kill(run.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert run.stderr is not None
    run.stderr.close()
    before, second = finished(folder), tmp_path / "second"
    assert 2 <= len(before) < COUNT // 16
    again = started(folder, 0.0, second)
    ended(again)
    assert before.items() <= finished(folder).items()  # not written again
    done_again = {line.split()[1] for line in second.read_text().splitlines()}
    assert len(done_again) == COUNT - 16 * len(before)
    assert_same(folder, expected(tmp_path))
