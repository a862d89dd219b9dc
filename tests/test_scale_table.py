"""The table of how commands grow with a study: made from measurements that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import scale
from benchmarks.scale import ResourceUse, growth_table, read_measurements, store_measurement


def test_measurements_of_other_sizes_and_commands_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "MEASUREMENTS_FILE", tmp_path / "scale.json")
    first, second = ResourceUse(2.0, 1.0, 100, "2026-11-01", 0.5), ResourceUse(4.0, 2.0, 150, "2026-11-02", 3.0)
    store_measurement(2_000, "stats", second)
    store_measurement(1_000, "stats", second)
    store_measurement(1_000, "stats", first)
    assert read_measurements() == {"1000": {"stats": first}, "2000": {"stats": second}}


def test_the_table_has_a_column_for_each_size_and_says_when_it_was_measured() -> None:
    uses = {
        "10000": {"stats": ResourceUse(9.0, 20.0, 1500, "2026-11-02", 3.2)},
        "2000": {
            "stats": ResourceUse(4.0, 2.0, 150, "2026-11-01", 0.5),
            "measure": ResourceUse(4.0, 3.0, 90, "2026-11-03", 7.6),
        },
    }
    head, _, stats, measure, *_, when = growth_table(uses).splitlines()
    assert head == "| marks | 2,000 | 10,000 |"
    assert stats == "| `stats` | 2.0 s, 150 MB | 20.0 s, 1,500 MB |"
    assert measure == "| `measure` | 3.0 s, 90 MB |  |"
    assert when == "| measured, load | 2026-11-01 to 2026-11-03, 0 to 8 | 2026-11-02, 3 to 3 |"


def test_every_command_that_is_measured_has_a_row() -> None:
    assert {*scale.COMMANDS, "import", "pandas"} == set(scale.TITLES)
