"""Runs the tests of outages over and over beside busy processes: `python -m tests.browser.repeat_outage_tests --times
50`.

What guards work against loss must hold on a machine that is busy, every time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "test_outages.py"


class Repetition:
    """Does every test so many times, as long as there is time, and counts how each ended."""

    def __init__(self, times: int, seconds: float) -> None:
        self.times = times
        self.until = time.monotonic() + seconds
        self.ends: Counter[tuple[str, str]] = Counter()
        self.loads: list[float] = []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(self.times))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.name.rpartition("[")[2].zfill(9))  # all tests once, then all again

    def pytest_runtest_setup(self) -> None:
        if time.monotonic() > self.until:
            pytest.skip("no time left")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.loads.append(os.getloadavg()[0])
        if report.when == "call" or report.outcome == "failed":
            self.ends[report.nodeid.rpartition("::")[2].partition("[")[0], report.outcome] += 1


def _keep_busy() -> None:
    while True:
        sum(range(10_000))


def main(times: int, busy: int, seconds: float, only: str) -> int:
    """Run the tests so often, or for so long; how many runs failed."""
    processes = [multiprocessing.Process(target=_keep_busy, daemon=True) for _ in range(busy)]
    for process in processes:
        process.start()
    repetition = Repetition(times, seconds)
    words = ["-q", "-n", "0", "--tb=short", "-m", "long or not long", "-p", "no:cacheprovider", str(TESTS)]
    pytest.main([*words, *(["-k", only] if only else [])], plugins=[repetition])
    for process in processes:
        process.kill()
    for (name, outcome), count in sorted(repetition.ends.items()):
        print(f"{name}: {count} {outcome}, beside {busy} busy processes")
    if loads := repetition.loads:
        print(f"load of the machine meanwhile: {statistics.median(loads):.1f}, lowest {min(loads):.1f}")
    return sum(count for (_, outcome), count in repetition.ends.items() if outcome == "failed")


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", default="", help="as pytest's -k")
    arguments = parser.parse_args()
    sys.exit(main(arguments.times, arguments.busy, arguments.seconds, arguments.only) > 0)
