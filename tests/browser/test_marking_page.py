"""The marking page: accessibility, phone, dark, long texts, and what a policy forbids."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import BrowserAnnotator, join_new_annotator, serve_study
from tests.browser.studies import BOX, FERRY, PROMPT, REPORT, STORY, make_document, marking_study, submitted_annotations

pytestmark = pytest.mark.long


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marking_is_accessible(browser: Browser, tmp_path: Path, scheme: str) -> None:
    with serve_study(
        marking_study("scarecrow", make_document("d1", FERRY, context={"prompt": PROMPT})), tmp_path / "study"
    ) as server:
        page = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 900}).new_page()  # type: ignore[arg-type]
        reader = BrowserAnnotator(page, server.open_link)
        expect(page.locator("[data-action=start]")).to_be_visible(timeout=20_000)
        assert axe_violations(page) == []
        reader.join()
        assert axe_violations(page) == []  # nothing marked yet
        reader.select_quote("its fiftieth year")
        reader.click_label("self-contradiction")
        reader.select_quote("will mark its fiftieth")
        reader.click_label("needs-google")
        reader.wait_until_saved()
        assert axe_violations(page) == []
        reader.press_keys("?")
        assert axe_violations(page) == []  # with the guide open
        reader.expect_no_errors()


def test_data_and_parts_are_accessible(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("accuracy", make_document("r1", REPORT, data=BOX)), tmp_path / "accuracy") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote("27")
        reader.click_label("number")
        assert axe_violations(reader.page) == []
    with serve_study(marking_study("snac", make_document("s1", "\n".join(STORY))), tmp_path / "snac") as server:
        reader = join_new_annotator(browser, server)
        reader.click_finish()
        assert axe_violations(reader.page) == []


def test_screen_readers_are_told_of_marks(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("scarecrow", make_document("d1", FERRY)), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_by_keys("carry")
        reader.press_keys("g")
        polite = reader.page.locator("[aria-live=polite]").first
        expect(polite).to_contain_text("Grammar and usage")
        expect(polite).to_contain_text("carry")
        expect(polite).to_contain_text("mark 1 of 1")


def test_a_phone_marks_by_touch(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("accuracy", make_document("r1", REPORT)), tmp_path / "study") as server:
        reader = join_new_annotator(
            browser, server, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
        )
        width = reader.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360  # nothing sticks out
        reader.long_press("Saturday")
        expect(reader.page.locator("[data-tray=labels]")).to_be_visible()
        reader.click_label("name")
        reader.answer_question("correction", "Friday")
        reader.click_action("done")
        reader.wait_until_saved()
        assert axe_violations(reader.page) == []
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert [(mark.label, mark.quotes, mark.answers) for mark in annotation.marks] == [
        ("name", ("Saturday",), {"correction": "Friday"})
    ]


def test_a_phone_says_why_a_text_cannot_be_judged(browser: Browser, tmp_path: Path) -> None:
    """There was no way to say it on a phone."""
    with serve_study(marking_study("accuracy", make_document("r1", REPORT)), tmp_path / "study") as server:
        reader = join_new_annotator(
            browser, server, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
        )
        reader.click_action("list")
        reader.click_action("cannot")
        reader.page.locator("#because").fill("No data were shown.")
        assert axe_violations(reader.page) == []
        reader.click_action("cannot-save")
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert annotation.answers["cannot_judge"] == "No data were shown."


def test_nothing_in_the_page_breaks_the_content_policy(browser: Browser, tmp_path: Path) -> None:
    """Inline scripts and styles are refused by the browser, which says so; we hear of none."""
    with serve_study(marking_study("accuracy", make_document("r1", REPORT, data=BOX)), tmp_path / "study") as server:
        page = browser.new_context().new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        reader = BrowserAnnotator(page, server.open_link)
        reader.join()
        reader.select_quote("27")
        reader.click_label("number")
        reader.press_keys("?")
        reader.wait_until_saved()
        answer = page.request.get(server.address)
        policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy
    assert [each for each in said if "Content Security Policy" in each] == []


# --- long texts --------------------------------------------------------------------------------------------------

_PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1"""


def long_study(words: int, marks: int) -> Study:
    body = " ".join(f"word{number}" if number % 12 else f"word{number}.\n" for number in range(words))
    document = make_document("d1", body)
    offered = Annotator(id="machine", kind="detector")
    step = len(body) // marks
    found = tuple(
        Mark(id=f"m{n}", spans=(Span(n * step, n * step + 5),), quotes=(body[n * step : n * step + 5],), label="word")
        for n in range(marks)
    )
    study = marking_study("accuracy", document)
    made = Annotation(id="a", document="d1", annotator="machine", protocol="accuracy@2", marks=found)
    return Study.from_items([*study.items(), offered, made])


def test_a_long_text_with_many_marks_is_marked_without_waiting(browser: Browser, tmp_path: Path) -> None:
    """20,000 words, some of them marked; that nothing hangs is tested here, how long it takes is benchmarked."""
    with serve_study(long_study(20_000, 10), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote("word100 ")
        reader.click_label("word")
        reader.wait_until_saved()
        expect(reader.page.locator("[data-list=marks] button")).to_have_count(1)
        reader.expect_no_errors()
