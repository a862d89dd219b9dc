"""What the marking page sends is what was meant: no tap, key or press of Finish changes or hides anything unseen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

import finecomb as fc
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Mark, Offer, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.browser.live_server import FIND, BrowserAnnotator, Server, join_new_annotator, serve_study
from tests.browser.studies import REPORT, SECRET, make_document

pytestmark = pytest.mark.long

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def suggesting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A text for which a machine suggests one mark."""
    guess = Mark(id="guess", spans=(Span(63, 65),), quotes=("27",), label="number")
    guesses = Annotation(id="g", document="r1", annotator=SECRET, protocol="accuracy@2", marks=(guess,))
    settings = Settings(
        protocols=("accuracy@2",), annotators=9, offer=Offer(annotator=SECRET, blind=0), skip=ONBOARDING_PHASES
    )
    machine = Annotator(id=SECRET, kind="detector")
    study = Study.from_items([settings, fc.protocol("accuracy"), make_document("r1", REPORT), machine, guesses])
    with serve_study(study, tmp_path_factory.mktemp("served") / "study") as it:
        yield it


def rows(reader: BrowserAnnotator) -> Locator:
    return reader.page.locator("[data-list=marks] button")


def grammar_mark(reader: BrowserAnnotator, nth: int) -> None:
    """Mark `carry` with a severity."""
    reader.select_quote("carry", nth)
    reader.click_label("grammar-usage")
    reader.answer_question("severity", "2")


def test_the_tap_that_opens_the_tray_does_nothing_else(browser: Browser, scarecrow: Server) -> None:
    """The tray of a mark came up under the finger, and the same tap deleted the mark or changed its severity."""
    reader = join_new_annotator(browser, scarecrow, **PHONE)
    page = reader.page
    reader.long_press("carry", 6)
    reader.click_label("grammar-usage")
    reader.answer_question("severity", "3")
    reader.click_action("done")
    reader.wait_until_saved()
    chosen = page.locator("[data-question=severity] input:checked")
    for at in range(336, 660, 24):
        left, top, right, _ = page.evaluate(FIND, ["text", "carry", 6])
        page.evaluate("by => document.querySelector('.stage').scrollBy(0, by)", top - at)
        left, top, right, _ = page.evaluate(
            FIND.replace('scrollIntoView({ block: "center" })', "id"), ["text", "carry", 6]
        )
        if page.evaluate("([x, y]) => !document.elementFromPoint(x, y)?.closest('.surface')", [left + 2, top]):
            continue  # below the tray of the next step
        page.touchscreen.tap((left + right) / 2, top)
        expect(page.locator("[data-tray=mark]")).to_be_visible()
        expect(chosen).to_have_value("3")
        reader.click_action("done")
    reader.wait_until_saved()
    reader.click_action("list")
    expect(rows(reader)).to_have_count(1)


def test_deleting_by_touch_can_be_taken_back(browser: Browser, scarecrow: Server) -> None:
    reader = join_new_annotator(browser, scarecrow, **PHONE)
    reader.long_press("carry")
    reader.click_label("grammar-usage")
    reader.page.locator("[data-tray=mark] [data-action=delete]").tap()
    reader.page.locator("[data-action=toast-undo]").tap()
    reader.click_action("list")
    expect(rows(reader)).to_have_count(1)
    reader.wait_until_saved()


def test_a_half_mark_is_shown_although_the_text_cannot_be_judged(browser: Browser, scarecrow: Server) -> None:
    """Finish did nothing and said nothing: the server declined, and the page did not tell."""
    reader = join_new_annotator(browser, scarecrow)
    grammar_mark(reader, 1)  # without its explanation
    reader.click_action("cannot")
    reader.page.locator("#because").fill("It stops in the middle.")
    reader.click_action("cannot-save")
    reader.wait_until_saved()
    reader.click_finish()
    field = reader.page.locator("[data-question=explanation] textarea")
    expect(field).to_be_focused()
    field.fill("carries")
    reader.wait_until_saved()
    reader.click_finish()
    reader.expect_last_page()
    reader.expect_no_errors()


def test_what_the_server_misses_is_said(browser: Browser, scarecrow: Server) -> None:
    """Whatever the page overlooks, the server's answer is shown with a way to mend it."""
    reader = join_new_annotator(browser, scarecrow)
    grammar_mark(reader, 1)
    reader.answer_question("explanation", "carries")
    reader.wait_until_saved()
    mark = rows(reader).first.get_attribute("data-mark")
    declined = {"code": "incomplete", "say": "", "missing": [f"marks/{mark}: explanation"]}
    reader.page.route("**/finish", lambda route: route.fulfill(status=409, json=declined))
    reader.click_finish()
    expect(reader.page.locator("[data-note=incomplete]")).to_contain_text("explanation")
    reader.click_action("show-declined")
    expect(reader.page.locator("[data-question=explanation] textarea")).to_be_focused()
    reader.page.unroute("**/finish")
    reader.click_finish()
    reader.expect_last_page()


def test_suggestions_are_named_before_the_text_is_handed_in(browser: Browser, suggesting: Server) -> None:
    reader = join_new_annotator(browser, suggesting)
    reader.click_finish()
    asked = reader.page.locator("[data-note=offers]")
    expect(asked).to_contain_text("1 suggestion is undecided")
    reader.click_action("show-offers")
    reader.click_action("reject")
    reader.click_finish()  # now there is nothing in the text: asked once
    expect(reader.page.get_by_role("alertdialog")).to_contain_text("no errors", ignore_case=True)
    reader.click_finish()
    reader.expect_last_page()


def test_suggestions_may_be_left_as_they_are(browser: Browser, suggesting: Server) -> None:
    reader = join_new_annotator(browser, suggesting)
    reader.click_finish()
    expect(reader.page.locator("[data-note=offers]")).to_be_visible()
    reader.click_finish()
    reader.expect_last_page()


def test_keys_go_on_after_a_mark_was_chosen_in_the_list(browser: Browser, scarecrow: Server) -> None:
    """Letters and Delete did nothing then, and undo took back another mark."""
    reader = join_new_annotator(browser, scarecrow)
    grammar_mark(reader, 1)
    grammar_mark(reader, 2)
    reader.page.locator("[data-list=marks] button").first.click()
    reader.press_keys("i")
    expect(rows(reader).first).to_contain_text("Incoherent")
    reader.press_keys("Control+z")
    expect(rows(reader).first).to_contain_text("Grammar and usage")
    rows(reader).nth(1).focus()
    reader.press_keys("Enter", "3")
    expect(reader.page.locator("[data-question=severity] input:checked")).to_have_value("3")
    reader.press_keys("Delete")
    expect(rows(reader)).to_have_count(1)
    reader.press_keys("Control+z")
    expect(rows(reader)).to_have_count(2)
    reader.wait_until_saved()
    reader.expect_no_errors()


def test_a_dead_server_is_not_called_a_dead_network(browser: Browser, scarecrow: Server) -> None:
    reader = join_new_annotator(browser, scarecrow)
    reader.page.route("**/api/tasks/**", lambda route: route.abort("connectionrefused"))
    grammar_mark(reader, 1)
    state = reader.page.locator(".save")
    expect(state).to_contain_text("Server not responding", timeout=30_000)
    expect(reader.page.locator("[data-note=unreachable]")).to_contain_text(
        "The server is not responding. You can keep working; your changes are stored in this browser."
    )
    reader.page.context.set_offline(True)
    expect(state).to_contain_text("Offline")
    reader.page.context.set_offline(False)
    reader.page.unroute("**/api/tasks/**")
    reader.wait_until_saved()
