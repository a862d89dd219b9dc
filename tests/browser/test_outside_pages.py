"""Pages outside the work look alike: links that lead nowhere, signing in, and steps on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from tests.browser.live_server import Server, serve_study
from tests.browser.onboarding_session import onboarding_study, open_join_page
from tests.browser.studies import BOX, REPORT, make_document

pytestmark = pytest.mark.long

_CARD = """() => {
  const heading = document.querySelector("h1");
  const card = heading.parentElement;
  const box = card.getBoundingClientRect();
  const { padding, borderRadius } = getComputedStyle(card);
  const { fontSize, lineHeight } = getComputedStyle(heading);
  const middle = Math.abs((box.top + box.bottom) / 2 - innerHeight / 2) < 2;
  const brand = getComputedStyle(document.querySelector("main .brand")).fontSize;
  return [Math.round(box.width), padding, borderRadius, fontSize, lineHeight, brand, middle].join(" ");
}"""


@pytest.mark.parametrize("width", [1440, 360])
def test_pages_outside_the_study_look_alike(browser: Browser, scarecrow: Server, width: int) -> None:
    """Signed out, the logo touched the edge of the window and the words stood in a small box at the top."""
    looks = {}
    for path in ("/join/nobody-knows-this", "/nowhere", "/admin", "/sign-in/nobody-knows-this"):
        page = browser.new_context(viewport={"width": width, "height": 740}, is_mobile=width < 720).new_page()
        page.goto(f"{scarecrow.address}{path}")
        expect(page.locator("h1")).to_be_visible(timeout=20_000)
        looks[path] = page.evaluate(_CARD)
        page.context.close()
    assert len(set(looks.values())) == 1, looks


def test_the_step_one_is_at_stands_out(browser: Browser, tmp_path: Path) -> None:
    """All steps in the top bar looked the same, so that nobody saw where they were."""
    study = onboarding_study(fc.protocol("accuracy"), make_document("r1", REPORT, data=BOX))
    with serve_study(study, tmp_path / "study") as server:
        page = open_join_page(browser, server).page
        page.locator("[data-action=start]").click()
        now = page.locator(".step-list [aria-current=step]")
        expect(now).to_have_css("font-weight", "600", timeout=20_000)
        expect(page.locator(".step-list li:not([aria-current])").first).to_have_css("font-weight", "400")
