"""One Chromium for the tests of this folder; skipped, visibly, where there is none.

It is closed after them, since its event loop would be in the way of others.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.served import CHROMIUM, QUIET


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no Chromium found; install one or name it in FINECOMB_CHROMIUM")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()
