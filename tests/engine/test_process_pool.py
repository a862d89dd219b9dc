from __future__ import annotations

from finecomb.engine.process_pool import cores


def test_there_is_a_core() -> None:
    assert cores() >= 1
