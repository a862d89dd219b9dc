"""Pages in other languages: the study's own, or the one that somebody prefers; what is not translated is in English."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import BrowserAnnotator, serve_study
from tests.browser.studies import FERRY, make_document, marking_study, submitted_annotations

pytestmark = pytest.mark.long


def test_a_german_study_is_marked_in_german(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("scarecrow").model_copy(update={"name": "vogelscheuche", "language": "de"})
    with serve_study(marking_study(protocol, make_document("d1", FERRY)), tmp_path / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        reader = BrowserAnnotator(page, server.open_link)
        expect(page.locator("html")).to_have_attribute("lang", "de")
        expect(page.locator("[data-action=start]")).to_contain_text("Starten")
        reader.join()
        expect(page.locator("body")).to_contain_text("Wörter auswählen, dann einen Buchstaben drücken.")
        reader.select_quote("fiftieth year")
        expect(page.locator("[data-definitions]")).to_contain_text("Welche Fehlerart passt?")
        reader.click_label("grammar-usage")
        expect(page.locator("[data-state=saved]")).to_contain_text("Gespeichert")
        expect(page.locator("[data-action=finish]")).to_contain_text("Fertig, letzter Text")
        assert axe_violations(page) == []
        reader.answer_question("severity", "2")
        reader.answer_question("explanation", "Seit 1911 sind es mehr als fünfzig Jahre.")
        reader.wait_until_saved()
        reader.click_finish()
        expect(page.get_by_role("heading", name="Das war der letzte Text. Vielen Dank.")).to_be_visible(timeout=20_000)
        reader.expect_no_errors()
        assert len(submitted_annotations(server)[0].marks) == 1


def test_somebody_prefers_another_language(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("scarecrow", make_document("d1", FERRY)), tmp_path / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        reader = BrowserAnnotator(page, server.open_link)
        reader.join()
        expect(page.locator("html")).to_have_attribute("lang", "en")
        reader.click_action("settings")
        page.locator("#set-language").select_option("de")
        expect(page.locator("body")).to_contain_text("Noch keine Markierungen", timeout=20_000)
        reader.click_action("settings")
        page.locator("#set-language").select_option("en")
        expect(page.locator("body")).to_contain_text("No marks yet", timeout=20_000)
        reader.expect_no_errors()
