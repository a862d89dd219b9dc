"""Crashes, full disks and simultaneous writers leave the old or the new state of a study, never a mixture."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study, StudyItem
from finecomb.formats.study_writes import change_study, ensure_database
from tests.faults.server_processes import CONTEXT

KILLED = 9


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    fc.write(fc.demo(readers=1), tmp_path / "q")
    return tmp_path / "q"


def snapshot(path: Path) -> list[str]:
    return sorted(map(repr, fc.read(path).items()))


CHANGES = [{"id": "harbour-a", "text": "Other."}, {"id": "x", "text": "New."}]


def crash_at_step(change: str, path: str, steps: int) -> None:
    """Change a study, and end without clean-up at the n-th change of a file name."""
    remaining = [steps]

    def count_down(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if remaining[0] == 0:
                os._exit(KILLED)
            remaining[0] -= 1
            return function(*arguments, **named)

        return call

    for name in ("rename", "replace", "unlink", "mkdir"):
        setattr(Path, name, count_down(getattr(Path, name)))
    if change == "convert":
        ensure_database(Path(path))
    else:
        fc.edit(path, documents=CHANGES)


def run_until_crash(change: str, path: Path, steps: int) -> int:
    """Run `crash_at_step` in a process of its own, and return its exit code."""
    process = CONTEXT.Process(target=crash_at_step, args=(change, str(path), steps))
    process.start()
    process.join()
    assert process.exitcode in (0, KILLED)
    return int(process.exitcode)


def check_crash_during_conversion(demo: Path, steps: int) -> int:
    """Kill the change to a database at a step, check that nothing is lost, and return the exit code."""
    before, count = snapshot(demo), fc.read(demo).documents.height
    copy = Path(shutil.copytree(demo, demo.parent / f"crash-{steps}"))
    code = run_until_crash("convert", copy, steps)
    assert snapshot(copy) == before, steps
    ensure_database(copy)
    assert snapshot(copy) == before, steps
    names = {file.name for file in copy.iterdir()}
    assert names <= {"study.db", "study.db-wal", "study.db-shm", "original"}, (steps, names)
    assert fc.read(copy / "original").documents.height == count
    return code


@pytest.mark.parametrize("steps", [4, 6])
def test_a_kill_during_the_change_to_a_database_loses_nothing(demo: Path, steps: int) -> None:
    assert check_crash_during_conversion(demo, steps) == KILLED


@pytest.mark.long
def test_a_kill_at_any_step_of_the_change_to_a_database_loses_nothing(demo: Path) -> None:
    steps = 0
    while check_crash_during_conversion(demo, steps) == KILLED:
        steps += 1
    assert steps > 5  # several steps were interrupted


@pytest.mark.long
def test_a_kill_at_any_step_of_a_change_of_files_shows_the_old_or_the_new_study(demo: Path, tmp_path: Path) -> None:
    edited = Path(shutil.copytree(demo, tmp_path / "edited"))
    fc.edit(edited, documents=CHANGES)
    states = [snapshot(demo), snapshot(edited)]
    steps, code, seen = 0, KILLED, set()
    while code == KILLED:
        copy = Path(shutil.copytree(demo, tmp_path / f"crash-{steps}"))
        code = run_until_crash("edit", copy, steps)
        seen.add(states.index(snapshot(copy)))
        fc.edit(copy, documents=CHANGES)
        assert snapshot(copy) == states[1], steps
        steps += 1
    assert seen == {0, 1}


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.formats.study_writes import ensure_database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    ensure_database(Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
    sys.exit(1)
"""


@pytest.mark.parametrize("size", [1_000, 50_000, 100_000])
def test_a_full_disk_leaves_the_files_in_force(demo: Path, size: int) -> None:
    before = snapshot(demo)
    process = subprocess.run([sys.executable, "-c", _FULL_DISK, demo, str(size)], capture_output=True, text=True)
    assert process.returncode == 1, process.stderr
    assert snapshot(demo) == before
    assert not (demo / "study.db").exists()
    ensure_database(demo)
    assert snapshot(demo) == before


_ADD = """
import sys
from pathlib import Path
from finecomb.core.records import Annotation, Annotator
from finecomb.formats.study_writes import change_study, ensure_database
path, name = Path(sys.argv[1]), sys.argv[2]
for number in range(8):
    if name == "server" and number == 3:
        ensure_database(path)
    records = [
        Annotator(id=f"{name}-{number}", kind="human"),
        Annotation(id=f"{name}-{number}", document="harbour-a", annotator=f"{name}-{number}", protocol="scarecrow@2",
                   status="submitted"),
    ]
    change_study(path, lambda study: records, "test")
"""


def test_two_writers_at_once_and_a_conversion_in_between_lose_nothing(demo: Path) -> None:
    names = ("first", "server")
    processes = [subprocess.Popen([sys.executable, "-c", _ADD, demo, name]) for name in names]
    assert [process.wait(120) for process in processes] == [0, 0]
    ids = set(fc.read(demo).annotations["id"])
    assert {f"{name}-{number}" for name in names for number in range(8)} <= ids
    assert (demo / "study.db").exists()
    assert fc.check(demo).errors == []


def add_annotator(path: Path, name: str) -> None:
    def build(study: Study) -> list[StudyItem]:
        whose = {"document": "harbour-a", "annotator": name, "protocol": "scarecrow@2", "status": "submitted"}
        return [Annotator(id=name, kind="human"), Annotation(id=name, **whose)]

    change_study(path, build, "test")


def test_a_folder_copied_with_an_open_journal_has_the_last_or_an_earlier_state(demo: Path, tmp_path: Path) -> None:
    ensure_database(demo)
    store = open_store(parse_location(demo / "study.db"))  # keeps the journal open, as a server does
    try:
        store.read_data_version()
        states = [snapshot(demo)]
        for number in range(3):
            add_annotator(demo, f"late-{number}")
            states.append(snapshot(demo))
        assert (demo / "study.db-wal").stat().st_size > 0
        whole = Path(shutil.copytree(demo, tmp_path / "whole"))
        assert snapshot(whole) == states[-1]
        add_annotator(whole, "later")
        alone = Path(shutil.copytree(demo, tmp_path / "alone", ignore=shutil.ignore_patterns("*-wal", "*-shm")))
        assert snapshot(alone) in states
    finally:
        store.close()


def test_a_change_that_would_make_the_study_invalid_changes_nothing(demo: Path) -> None:
    for path in (demo, Path(shutil.copytree(demo, demo.parent / "served"))):
        if path != demo:
            ensure_database(path)
        before = snapshot(path)
        wrong = Annotation(id="w", document="no-such-text", annotator="nobody", protocol="scarecrow@2")
        with pytest.raises(fc.FinecombError, match="not in the study"):
            change_study(path, lambda study: [Annotator(id="somebody", kind="human"), wrong], "test")  # noqa: B023
        assert snapshot(path) == before


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_read_only_folder_can_be_read_and_refuses_changes_in_one_line(demo: Path) -> None:
    ensure_database(demo)
    script = """
import os, sys
import finecomb as fc
fc.read(sys.argv[1]), fc.edit  # imports everything before the rights are given up
if os.getuid() == 0:
    os.setuid(65534)
print(len(fc.read(sys.argv[1]).documents))
try:
    fc.edit(sys.argv[1], documents=[{"id": "x", "text": "New."}])
except fc.FinecombError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as temporary:
        study = Path(shutil.copytree(demo, Path(temporary) / "q"))
        for file in [study, *study.rglob("*")]:
            file.chmod(0o555 if file.is_dir() else 0o444)
        Path(temporary).chmod(0o755)
        process = subprocess.run([sys.executable, "-c", script, study], capture_output=True, text=True)
        for file in [study, *study.rglob("*")]:
            file.chmod(0o755 if file.is_dir() else 0o644)
    lines = process.stdout.splitlines()
    assert lines[:1] == ["16"], process.stderr
    assert len(lines) == 2, (lines, process.stderr)
    assert "read" in lines[1]
