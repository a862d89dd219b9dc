"""Answers are there without scrolling where two long texts, or a text with somebody's marks, are judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import finecomb as fc
from finecomb.core.records import ONBOARDING_PHASES, Settings
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import Server, serve_study
from tests.browser.studies import FERRY, PROMPT, make_document, marking_study

pytestmark = pytest.mark.long
LONG = " ".join([FERRY] * 20)


def opened(browser: Browser, server: Server, width: int = 1440, height: int = 900) -> Page:
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    page.goto(server.open_link)
    page.locator("[data-action=start]").click()
    expect(page.locator("[data-question]").first).to_be_visible(timeout=20_000)
    return page


def stands_above_the_fold(page: Page) -> None:
    for each in (*page.locator("[data-question] input").all(), page.locator("[data-action=finish]")):
        box = each.locator("xpath=..").bounding_box()
        assert box
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= page.evaluate("innerHeight")
    assert axe_violations(page) == []


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (768, 1024)])
def test_a_preference_is_answered_above_the_fold(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    pair = make_document("p1", "", context={"prompt": PROMPT, "a": LONG, "b": LONG.upper()})
    with serve_study(marking_study("preference", pair), tmp_path / "study") as server:
        page = opened(browser, server, width, height)
        stands_above_the_fold(page)
        scrolls = page.locator(".pair .sheet").evaluate_all("all => all.map((e) => e.scrollHeight > e.clientHeight)")
        assert scrolls == [True, True]


def test_an_audit_is_answered_above_the_fold(browser: Browser, tmp_path: Path) -> None:
    demo, audit = fc.demo(), fc.protocol("audit")
    made = next(each for each in demo.iter_annotations() if each.marks and each.annotator == "reader-1")
    document = demo.document(made.document)
    longer = document.model_copy(update={"text": f"{document.text}\n\n{LONG}"})
    person = next(each for each in demo.iter_annotators() if each.id == made.annotator)
    settings = Settings(protocols=(audit.id,), annotators=1, skip=ONBOARDING_PHASES)
    study = Study.from_items([settings, audit, *demo.protocols.values(), longer, person, made])
    with serve_study(study, tmp_path / "study") as server:
        stands_above_the_fold(opened(browser, server))
