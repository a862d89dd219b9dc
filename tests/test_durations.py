from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.durations import describe_slow_tests


@dataclass
class Report:
    nodeid: str
    duration: float
    keywords: Mapping[str, int] = field(default_factory=dict)


def test_slow_tests_are_named_with_the_seconds_of_all_their_phases() -> None:
    reports = [Report("a", 12), Report("a", 9), Report("b", 19), Report("c", 90, {"long": 1}), Report("d", 40)]
    assert describe_slow_tests(reports) == [
        "40 s  d: make it smaller, or mark it long",
        "21 s  a: make it smaller, or mark it long",
    ]
