"""Commands that write no output, killed in the middle: the same command again does what is left and prints the same."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_ray import ENVIRONMENT, PATIENCE, finished, wait_for
from tests.test_cli import run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="signals differ"),
    pytest.mark.filterwarnings("ignore"),
]

SLOW: dict[str, list[str]] = {
    "agree": ["agree", "study", "--measure", "gamma,gamma-cat", "--gamma", "samples=40", "--draws", "50"],
    "test": ["test", "study", "--measure", "count", "--each-label", "--draws", "100000"],
}
"""Commands of which each part takes long enough to be killed in the middle."""
ENGINES = ["local", pytest.param("ray", marks=pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="no Ray"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("killed")
    run("demo", place / "study")
    return place


def started(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """A command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from finecomb.cli import main; main()", *words],
        env=ENVIRONMENT,
        cwd=folder,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SLOW)
def test_a_command_that_is_killed_is_started_again_and_does_only_what_is_left(
    name: str, engine: str, folder: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    words = [*SLOW[name], "--json"]
    spread_out = [*words, "--engine", engine, "--workers", "2", "--partitions", str(kept)]
    first = started(spread_out, folder)
    wait_for(kept, 3, first)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate(timeout=PATIENCE)
    before = finished(kept)
    whole, _ = started([*words, "--workers", "1"], folder).communicate(timeout=PATIENCE)
    again = started(spread_out, folder)
    wait_for(kept, len(before) + 1, again)
    assert before.items() <= finished(kept).items()  # not written again
    printed, complaint = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, complaint.decode()[-2000:]
    result, expected = json.loads(printed), json.loads(whole)
    assert result.pop("notes") != expected.pop("notes")  # the first says how much was reused
    assert result == expected
    assert (
        f"{len(before)} {'texts' if name == 'agree' else 'comparisons'} reused from an interrupted run"
        in complaint.decode()
    )
    assert not kept.exists()
