from __future__ import annotations

from finecomb.engine.seeds import generator


def test_generators_depend_on_their_parts_alone() -> None:
    assert generator(1, "d").random() == generator(1, "d").random()
    assert len({generator(*parts).random() for parts in [(1, "d"), (1, "e"), (2, "d"), ("1d",)]}) == 4
