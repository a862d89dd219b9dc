"""Every promise of the threat model names a test, and that test exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "threat-model.md").read_text("utf-8")


def test_every_promise_is_kept_by_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (?!promise|who|---)(.+?) \| (.*`test_.+) \|$", PAGE, re.MULTILINE)
    named = {name for _, cell in rows for name in re.findall(r"`(test_\w+)`", cell)}
    defined = {
        name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    }
    assert len(rows) > 20
    assert named - defined == set()


def test_no_promise_stands_without_a_test() -> None:
    section = PAGE.partition("## Durability of work")[2].partition("## Worker IDs")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "kept by" not in line]
    assert [line for line in lines if "`test_" not in line] == []
