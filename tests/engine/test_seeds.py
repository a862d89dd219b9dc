from __future__ import annotations

from finecomb.engine.seeds import seeded_generator


def test_generators_depend_on_their_parts_alone() -> None:
    assert seeded_generator(1, "d").random() == seeded_generator(1, "d").random()
    assert len({seeded_generator(*parts).random() for parts in [(1, "d"), (1, "e"), (2, "d"), ("1d",)]}) == 4
