"""The researcher's pages: what they show, and whom they let in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from finecomb.core.study import Study
from finecomb.simulate.demo import demo_study
from tests.browser.accessibility import violations
from tests.browser.served import Server, serving
from tests.browser.studies import REPORT, study_of, text

pytestmark = pytest.mark.long


@pytest.fixture
def running(browser: Browser, tmp_path: Path) -> Iterator[tuple[Page, Server]]:
    """The demo study with simulated annotators, and a researcher who has signed in."""
    with serving(Study.from_items(demo_study(5, 0)), tmp_path / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        expect(page.get_by_role("heading", name="Progress by model")).to_be_visible(timeout=60_000)
        yield page, server


def test_the_researcher_sees_everything_and_can_get_it_out(running: tuple[Page, Server]) -> None:
    page, server = running
    assert violations(page) == []
    for name in ("Documents", "Annotators", "Settings"):
        page.get_by_role("link", name=name).first.click()
        page.wait_for_load_state("networkidle")
        assert violations(page) == []
    page.goto(server.admin_link)  # the link worked once
    expect(page.locator("body")).to_contain_text("This link was used")


def test_admin_pages_need_the_link(browser: Browser, tmp_path: Path) -> None:
    with serving(study_of("accuracy", text("r1", REPORT)), tmp_path / "study") as server:
        page = browser.new_context().new_page()
        page.goto(f"{server.address}/admin")
        page.wait_for_load_state("networkidle")
        assert "r1" not in page.content()
        assert page.request.get(f"{server.address}/api/admin/overview").status == 401
