"""Acknowledged saves are never lost or applied twice, whatever happens around a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.scenarios import SCENARIOS, kill_server


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_and_nothing_counts_twice(name: str, tmp_path: Path) -> None:
    result = SCENARIOS[name](tmp_path)
    assert (result.lost, result.doubled) == (0, 0)
    assert result.acknowledged == result.tries
    assert result.acknowledged >= (0 if name == "read-only" else 50)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_what_was_acknowledged_survives_a_kill(kind: str, tmp_path: Path) -> None:
    result = kill_server(tmp_path, kind, times=1)
    assert (result.lost, result.doubled, result.acknowledged) == (0, 0, result.tries)
