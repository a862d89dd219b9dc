"""The check of benchmarks: what is worse than the ratios that are kept is named, and every table has its place."""

from __future__ import annotations

import re
from pathlib import Path

import benchmarks
import pytest
from benchmarks import _docs
from benchmarks._ratios import RATIOS_FILE, describe_conditions, describe_regressions, read_stored_ratios, store_ratios

KEPT_RATIOS = {"reading": 3.0, "server": 1.5}


def test_a_ratio_that_grew_beyond_the_tolerance_is_named() -> None:
    assert describe_regressions({"reading": 4.6, "server": 1.5}, KEPT_RATIOS) == [
        "reading: 4.6 times the peer's cost, 3 before"
    ]


def test_noise_improvements_and_new_ratios_are_no_regression() -> None:
    assert describe_regressions({"reading": 4.4, "server": 0.2, "new": 99.0}, KEPT_RATIOS) == []
    assert describe_regressions({"reading": 3.2}, KEPT_RATIOS, tolerance=1.05) != []


def test_kept_ratios_of_other_benchmarks_stay(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    store_ratios(KEPT_RATIOS, file)
    store_ratios({"server": 1.23456}, file)
    assert read_stored_ratios(file) == {"reading": 3.0, "server": 1.235}


def test_the_repository_has_ratios() -> None:
    assert all(ratio > 0 for ratio in read_stored_ratios(RATIOS_FILE).values())
    assert len(read_stored_ratios(RATIOS_FILE)) >= 8


def test_conditions_say_versions_machine_and_load() -> None:
    assert re.fullmatch(
        r"\d+ \w+ \d{4}; Python 3\S+, numpy \S+; \d+ cores, \S+, load average \d+\.\d\.", describe_conditions("numpy")
    )


def test_every_table_that_a_benchmark_writes_has_a_place_in_its_page() -> None:
    """A run of hours must not end with a table that has nowhere to go."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(benchmarks.__path__[0]).glob("*.py"))
    named = set(re.findall(r'write_table\(\s*"performance\.md", "([^"]+)"', code))
    page = (_docs.DOCS / "performance.md").read_text(encoding="utf-8")
    assert named >= {
        "server",
        "crowd",
        "reading",
        "streaming",
        "statistics",
        "score",
        "sections",
        "topic models",
        "n-grams",
    }
    assert [name for name in named if f"<!-- measured: {name} -->" not in page] == []


def test_no_table_of_the_performance_page_is_written_by_hand() -> None:
    page = (_docs.DOCS / "performance.md").read_text(encoding="utf-8")
    rest = re.sub(r"<!-- (measured|table): .*?<!-- end -->", "", page, flags=re.DOTALL)
    assert [
        line
        for line in rest.splitlines()
        if line.startswith("|") and not line.startswith(("| `", "| benchmark", "|---"))
    ] == []


def test_a_table_replaces_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_docs, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- measured: x -->\nold\n<!-- end -->\nb\n", encoding="utf-8")
    _docs.write_table("page.md", "x", _docs.markdown_table(("h",), [("1",)]), "Today.")
    assert (
        page.read_text(encoding="utf-8")
        == "a\n<!-- measured: x -->\nToday.\n\n| h |\n| --- |\n| 1 |\n<!-- end -->\nb\n"
    )
