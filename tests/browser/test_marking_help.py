"""What the marking page says about labels while words are selected, and the thread to earlier words."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.live_server import Server, join_new_annotator

pytestmark = pytest.mark.long


@pytest.mark.parametrize("width", [1440, 1024])
def test_labels_are_defined_beside_the_text_while_words_are_selected(
    browser: Browser, scarecrow: Server, width: int
) -> None:
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": 900})
    page, panel = reader.page, reader.page.locator("[data-definitions]")
    expect(panel).to_have_count(0)
    page.wait_for_load_state("networkidle")
    page.evaluate("() => document.fonts.ready")  # the text is measured once its letters have their final size
    before = page.locator("[data-text]").bounding_box()
    reader.select_quote("since 1911")
    expect(panel).to_contain_text("Cannot be true together with")
    page.locator("[data-label=self-contradiction]").first.hover()
    expect(page.locator("[data-definitions=self-contradiction]")).to_be_visible()
    expect(panel.locator("[data-near]")).to_have_count(2)
    assert all(text.strip() for text in panel.locator("dd").all_inner_texts())
    assert page.locator("[data-text]").bounding_box() == before
    reader.click_label("redundant")
    expect(panel).to_have_count(0)
    reader.expect_no_errors()


def test_a_thread_leads_to_the_earlier_words_in_the_labels_own_verb(browser: Browser, scarecrow: Server) -> None:
    reader = join_new_annotator(browser, scarecrow)
    page = reader.page
    reader.select_quote("fiftieth year")
    reader.click_label("self-contradiction")
    expect(page.locator("[data-question=antecedent]")).to_contain_text("This contradicts which earlier words?")
    expect(page.locator("[data-antecedent-line]")).to_have_count(0)
    reader.click_action("pick")
    expect(page.locator("[data-banner=pick]")).to_contain_text("that this contradicts")
    reader.select_quote("since 1911")
    reader.click_action("use")
    thread = page.locator("[data-antecedent-line]").bounding_box()
    text = page.locator("[data-text]").bounding_box()
    assert thread
    assert text
    assert thread["width"] > 40
    assert thread["x"] > text["x"] - 30
    expect(page.locator(".piece-flag.open").first).to_have_attribute("data-flag", "SC contradicts this")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("[data-antecedent-line]")).to_have_count(0)
    reader.expect_no_errors()
