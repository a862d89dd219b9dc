from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.durations import describe_slow_tests

EXAMPLES = {"default": 30, "ci": 60, "long": 1000}
for profile, examples in EXAMPLES.items():
    settings.register_profile(
        profile, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data named by FINECOMB_DATA; without it the test is skipped, visibly."""
    place = os.environ.get("FINECOMB_DATA", "")
    if not place:
        pytest.skip("FINECOMB_DATA is not set")
    return Path(place)


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what commands remember about the user, such as confirmed addresses, apart from the developer's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that take too long for `make test`."""
    reports = (report for kind in terminalreporter.stats.values() for report in kind)
    lines = describe_slow_tests(report for report in reports if isinstance(report, pytest.TestReport))
    if lines:
        terminalreporter.section("slow tests")
        terminalreporter.write("\n".join([*lines, ""]))
