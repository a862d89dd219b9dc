from __future__ import annotations

from finecomb.engine.process_pool import usable_core_count


def test_there_is_a_core() -> None:
    assert usable_core_count() >= 1
