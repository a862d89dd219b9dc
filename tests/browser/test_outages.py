"""Nothing is lost: reloads, a killed server, no network, two tabs, an expired place, a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Response, expect

from tests.browser.live_server import BrowserAnnotator, join_new_annotator, serve_study
from tests.browser.studies import (
    FERRY,
    PROMPT,
    REPORT,
    SECRET,
    STORY,
    describe_marks,
    make_document,
    marking_study,
    submitted_annotations,
)

pytestmark = pytest.mark.long


def test_a_reload_in_the_middle_changes_nothing(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("scarecrow", make_document("d1", FERRY)), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote("carry")
        reader.click_label("grammar-usage")
        reader.answer_question("explanation", "half typed")
        reader.page.reload()  # at once, while the save may still be on its way
        reader.wait_for_text()
        reader.page.locator("[data-list=marks] button").first.click()
        expect(reader.page.locator("[data-question=explanation] textarea")).to_have_value("half typed")
        reader.page.locator("[data-text]").focus()
        reader.press_keys("Control+z")  # undo also covers what was done before the reload
        reader.wait_until_saved()
        reader.expect_no_errors()


def test_work_goes_on_while_the_server_is_dead_and_arrives_when_it_is_back(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("accuracy", make_document("r1", REPORT)), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote("104")
        reader.click_label("number")
        reader.wait_until_saved()
        server.kill()
        reader.select_quote("27")
        reader.click_label("number")
        reader.answer_question("correction", "24")
        reader.select_quote("Saturday")
        reader.click_label("name")
        expect(reader.page.locator("[data-state=queued], [data-state=unreachable]")).to_be_visible(timeout=20_000)
        context = reader.page.context
        reader.page.close()  # the page itself cannot come back without the server; what was marked can
        server.start()
        reader = BrowserAnnotator(context.new_page(), server.address)
        reader.wait_for_text()
        reader.wait_until_saved()
        expect(reader.page.locator("[data-list=marks] button")).to_have_count(3)
        reader.click_finish()
        reader.expect_last_page()
        (annotation,) = submitted_annotations(server)
    assert [quotes for _, quotes, _ in describe_marks(annotation)] == [("Saturday",), ("104",), ("27",)]
    assert {mark.quotes: mark.answers for mark in annotation.marks}[("27",)] == {"correction": "24"}


def test_the_next_part_comes_when_the_server_is_back(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("snac", make_document("s1", "\n".join(STORY))), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        before = reader.text
        server.kill()
        reader.click_finish()
        expect(reader.page.locator("[data-action=finish]")).to_be_disabled()
        assert reader.text == before
        server.start()
        expect(reader.page.locator("[data-action=finish]")).to_be_enabled(timeout=60_000)
        assert reader.text != before
        reader.wait_until_saved()
        reader.expect_no_errors()


def test_finishing_without_a_network_waits_and_is_sent_once(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("accuracy", make_document("r1", REPORT)), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.page.context.set_offline(True)
        reader.select_quote("27")
        reader.click_label("number")
        expect(reader.page.locator("[data-state=offline]")).to_be_visible(timeout=20_000)
        reader.click_finish()
        reader.page.context.set_offline(False)
        reader.expect_last_page()
        (annotation,) = submitted_annotations(server)
    assert [mark.quotes for mark in annotation.marks] == [("27",)]


def test_two_tabs_show_the_same_and_neither_loses_anything(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("accuracy", make_document("r1", REPORT)), tmp_path / "study") as server:
        first = join_new_annotator(browser, server)
        second = BrowserAnnotator(first.page.context.new_page(), server.address)
        second.wait_for_text()
        first.select_quote("27")
        first.click_label("number")
        first.wait_until_saved()
        expect(second.page.locator("[data-list=marks] button")).to_have_count(1, timeout=20_000)
        second.select_quote("Saturday")
        second.click_label("name")
        second.wait_until_saved()
        expect(first.page.locator("[data-list=marks] button")).to_have_count(2, timeout=20_000)
        first.click_finish()
        first.expect_last_page()
        (annotation,) = submitted_annotations(server)
        first.expect_no_errors()
        second.expect_no_errors()
    assert sorted(mark.quotes for mark in annotation.marks) == [("27",), ("Saturday",)]


def test_the_browser_never_receives_the_model_or_the_document(browser: Browser, tmp_path: Path) -> None:
    """Everything that goes over the wire to an annotator is read, not only what is shown."""
    documents = [
        make_document(f"{SECRET}-{number}", FERRY, context={"prompt": PROMPT}, references=[SECRET]) for number in (1, 2)
    ]
    received: list[str] = []
    with serve_study(marking_study("accuracy", *documents), tmp_path / "study") as server:
        page = browser.new_context().new_page()
        page.on("response", lambda response: received.append(response.url))
        page.on("response", lambda response: received.append(_body(response)))
        reader = BrowserAnnotator(page, server.open_link)
        reader.join()
        for _ in documents:
            reader.select_quote("carry")
            reader.click_label("word")
            reader.wait_until_saved()
            before = page.locator("[data-task]").get_attribute("data-task") or ""
            reader.click_finish()
            expect(page.locator(f"[data-task='{before}']")).to_have_count(0, timeout=20_000)
        reader.expect_last_page()
        received += [page.content(), page.title(), page.url]
    assert any("carry" in each for each in received)
    assert not [each for each in received if SECRET in each]


def _body(response: Response) -> str:
    try:
        return response.text()
    except (Error, UnicodeDecodeError):
        return ""  # a redirect has no body, a picture no text
