"""What was acknowledged survives power cuts that drop or tear every write that was not synced."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store, read_study_records
from finecomb.core.records import Annotation
from tests.faults.power_cut import build_library, replay
from tests.faults.scenarios import kill_server

CUTS = 20


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="gcc is not installed")
def test_nothing_acknowledged_is_lost_by_20_power_cuts(tmp_path: Path) -> None:
    library, log = build_library(tmp_path), tmp_path / "log"
    (tmp_path / "live").mkdir()
    database = tmp_path / "live" / "study.db"
    command = [sys.executable, "-m", "tests.faults.power_cut", str(database), str(tmp_path / "acks"), "60"]
    environment = {**os.environ, "LD_PRELOAD": str(library), "POWER_CUT_LOG": str(log)}
    subprocess.run(command, env=environment, check=True, cwd=Path(__file__).parents[2], timeout=300)
    acknowledged = {name: int(size) for name, size in map(str.split, (tmp_path / "acks").read_text().splitlines())}
    first, last = min(acknowledged.values()), log.stat().st_size
    for number in range(CUTS):
        rng = random.Random(number)
        cut = rng.randint(first, last)
        folder = tmp_path / f"cut-{number}"
        folder.mkdir()
        replay(log, cut, folder, rng)
        open_store(parse_location(folder / "study.db")).close()  # as a restarted server does
        found = Counter(
            item.id for item in read_study_records(parse_location(folder / "study.db")) if isinstance(item, Annotation)
        )
        expected = {name for name, size in acknowledged.items() if size <= cut}
        assert expected <= found.keys()
        assert max(found.values()) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_by_50_kills(kind: str, tmp_path: Path) -> None:
    result = kill_server(tmp_path, kind, times=50)
    assert (result.lost, result.doubled, result.acknowledged) == (0, 0, result.tries)
