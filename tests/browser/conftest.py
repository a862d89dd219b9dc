"""One Chromium for the tests of this folder; skipped, visibly, where there is none.

It is closed after them, since its event loop would be in the way of others.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

import finecomb as fc
from finecomb.core.records import ONBOARDING_PHASES, Settings
from finecomb.core.study import Study
from tests.browser.live_server import CHROMIUM, CHROMIUM_ARGUMENTS, Server, serve_study
from tests.browser.studies import FERRY, make_document


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no Chromium found; install one or name it in FINECOMB_CHROMIUM")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def scarecrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One long text to mark by Scarecrow, for as many people as come."""
    protocol = fc.protocol("scarecrow")
    settings = Settings(protocols=(protocol.id,), annotators=60, skip=ONBOARDING_PHASES)
    document = make_document("d1", "\n\n".join([FERRY] * 12))
    with serve_study(
        Study.from_items([settings, protocol, document]), tmp_path_factory.mktemp("served") / "study"
    ) as it:
        yield it
