"""The researcher's page about a judge: may it stand in for people?"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import serve_study
from tests.server.researchers.test_calibration_routes import with_judge

pytestmark = pytest.mark.long


def test_a_judge_is_checked_from_the_page(browser: Browser, tmp_path: Path) -> None:
    with serve_study(Study.from_items(with_judge(fc.demo(readers=4))), tmp_path / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        expect(page.get_by_role("link", name="Runs")).to_be_visible(timeout=60_000)
        page.goto(f"{server.address}/admin#/calibrate/judge")
        page.locator("[data-action=check]").click(timeout=30_000)
        expect(page.locator("[data-judge=judge] h1")).to_contain_text("judge may", timeout=60_000)
        for heading in ("Agreement by label", "Person by person", "Label bias", "Contract"):
            expect(page.get_by_role("heading", name=heading)).to_be_visible()
        assert axe_violations(page) == []
        page.locator("[data-action=use]").click()
        expect(page.get_by_role("dialog", name="Use it")).to_contain_text("finecomb estimate STUDY --judge judge")
        assert axe_violations(page) == []
        page.keyboard.press("Escape")
        for width in (1024, 768, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
