"""Which tests take so long that they should be made smaller or marked `long`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

SLOW_SECONDS = 20.0
"""Seconds, on any machine: a summary line then names the test."""


class PhaseReport(Protocol):
    """The part of pytest's report on one phase of a test that is read here."""

    nodeid: str
    duration: float
    keywords: Mapping[str, Any]


def describe_slow_tests(reports: Iterable[PhaseReport]) -> list[str]:
    """A line for each test that is not marked `long` and took more than `SLOW` seconds, the slowest first."""
    seconds: dict[str, float] = defaultdict(float)
    for report in reports:
        if "long" not in report.keywords:
            seconds[report.nodeid] += report.duration
    slow = sorted(((total, test) for test, total in seconds.items() if total > SLOW_SECONDS), reverse=True)
    return [f"{total:.0f} s  {test}: make it smaller, or mark it long" for total, test in slow]
