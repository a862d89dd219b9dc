from __future__ import annotations

from finecomb.engine.processes import usable_core_count


def test_there_is_a_core() -> None:
    assert usable_core_count() >= 1
