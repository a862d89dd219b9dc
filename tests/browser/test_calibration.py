"""The calibration page of a judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.accessibility import axe_violations
from tests.browser.live_server import serve_study
from tests.statistics.judges.judge_studies import make_crowd_study

pytestmark = pytest.mark.long


def test_a_judge_is_checked_from_the_page(browser: Browser, tmp_path: Path) -> None:
    with serve_study(make_crowd_study(150), tmp_path / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        expect(page.get_by_role("link", name="Runs")).to_be_visible(timeout=60_000)
        page.goto(f"{server.address}/admin#/calibrate/judge")
        page.locator("[data-action=check]").click(timeout=30_000)
        expect(page.locator("[data-judge=judge] h1")).to_contain_text("judge can", timeout=60_000)
        for heading in ("Agreement by label", "Alternative annotator test", "Label bias", "Validity"):
            expect(page.get_by_role("heading", name=heading)).to_be_visible()
        assert axe_violations(page) == []
        page.locator("[data-action=use]").click()
        expect(page.get_by_role("dialog", name="Use the judge")).to_contain_text(
            "finecomb estimate STUDY --judge judge"
        )
        assert axe_violations(page) == []
        page.keyboard.press("Escape")
        for width in (1024, 768, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
