"""On paper: the text with its marks and flags, a legend, all marks with their severities, and nothing to operate."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.live_server import Server, join_new_annotator

pytestmark = pytest.mark.long
WHITE = "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [1440, 1024])
def test_a_marked_text_is_printed_with_legend_and_severities(browser: Browser, scarecrow: Server, width: int) -> None:
    """A dark screen gave dark paper, and a tablet printed its form in place of the list of marks."""
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": 900}, color_scheme="dark")
    page = reader.page
    reader.select_quote("fiftieth year")
    reader.click_label("self-contradiction")
    reader.answer_question("severity", "3")
    reader.wait_until_saved()
    page.emulate_media(media="print")
    assert page.locator(".sheet").evaluate("each => getComputedStyle(each).backgroundColor") == WHITE
    piece = page.locator(".text-body .piece").first
    assert piece.evaluate("each => getComputedStyle(each).printColorAdjust") == "exact"
    assert piece.evaluate("each => getComputedStyle(each).backgroundImage") != "none"
    expect(page.locator(".palette .name:visible")).to_have_count(10)
    (row,) = page.locator("[data-list=marks] button:visible").all()
    expect(row).to_contain_text("fiftieth year")
    expect(row.locator("[role=img]")).to_be_visible()
    assert page.locator(".btn:visible, .form:visible, .footer:visible").count() == 0
    page.emulate_media(media="screen")
    expect(page.locator("[data-action=finish]")).to_be_visible()
    reader.expect_no_errors()
