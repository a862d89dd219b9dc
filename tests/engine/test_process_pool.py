from __future__ import annotations

from finecomb.engine.process_pool import core_count


def test_there_is_a_core() -> None:
    assert core_count() >= 1
