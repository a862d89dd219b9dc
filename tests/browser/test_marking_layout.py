"""The marking page at every width: the text never moves under the hand, and nothing is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.live_server import FIND, Server, join_new_annotator, serve_study
from tests.browser.studies import make_document, marking_study

pytestmark = pytest.mark.long

WIDTHS = [(1440, 900), (1280, 800), (1024, 768), (820, 1180), (783, 1000), (768, 1024), (720, 450)]
_STILL = FIND.replace('.scrollIntoView({ block: "center" })', "")
_CUT = """() => [...document.querySelectorAll("[data-action=finish], [data-action=guide], [data-action=gap]")]
  .filter((each) => {
    const box = each.getBoundingClientRect();
    const whole = box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
    const top = document.elementFromPoint(box.right - 3, box.top + box.height / 2);
    return !whole || each.scrollWidth > each.clientWidth + 1 || !(top && (each.contains(top) || top.contains(each)));
  }).map((each) => each.dataset.action)"""


def word(page: Page) -> list[float]:
    """Where a word near the beginning lies in the window, had nobody scrolled."""
    scrolled = page.evaluate("document.querySelector('.stage').scrollTop")
    left, top, right, bottom = page.evaluate(_STILL, ["text", "spring", 1])
    return [round(left), round(top + scrolled), round(right), round(bottom + scrolled)]


@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_the_text_stays_where_it_is(browser: Browser, scarecrow: Server, width: int, height: int) -> None:
    """Choosing a mark rewrapped the whole text between 720 and 1179 pixels; picking moved it everywhere."""
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": height})
    page = reader.page
    before = word(page)
    assert page.evaluate(_CUT) == []
    reader.select_quote("fiftieth year")
    assert word(page) == before
    reader.click_label("self-contradiction")
    expect(page.locator("[data-question=severity]")).to_be_visible()
    assert word(page) == before
    page.locator("[data-action=pick]").first.click()
    expect(page.locator("[data-banner=pick]")).to_be_visible()
    assert word(page) == before
    reader.click_action("cancel")
    reader.press_keys("Escape")
    expect(page.locator("[data-question=severity]")).to_have_count(0)
    assert word(page) == before
    assert page.evaluate(_CUT) == []


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 800)])
def test_the_list_of_marks_stays_where_it_is(browser: Browser, scarecrow: Server, width: int, height: int) -> None:
    """It moved down for the questions of a chosen mark, and up again without them."""
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": height})
    page, first = reader.page, reader.page.locator("[data-list=marks] li").first
    reader.select_quote("fiftieth year")
    reader.click_label("self-contradiction")
    reader.press_keys("3", "Escape")
    questions = page.locator("[data-questions-panel] [data-question=severity]")
    expect(questions).to_have_count(0)
    expect(page.locator("[data-questions-panel]")).to_contain_text("No mark selected.")
    place = first.bounding_box()
    first.locator("button").click()
    expect(questions).to_be_visible()
    assert first.bounding_box() == place
    reader.press_keys("g")
    expect(first).to_contain_text("Grammar and usage")
    assert first.bounding_box() == place, "fewer questions"
    reader.press_keys("Escape")
    reader.wait_until_saved()
    page.reload()
    expect(first).to_be_visible()
    assert first.bounding_box() == place, "kept on the device"
    first.locator("button").click()
    expect(questions).to_be_visible()
    assert first.bounding_box() == place


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (768, 1024)])
def test_a_tablet_has_everything_at_hand_from_the_start(
    browser: Browser, scarecrow: Server, width: int, height: int
) -> None:
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": height})
    page = reader.page
    expect(page.locator("[data-tab=list]")).to_be_visible()
    expect(page.locator("[data-action=gap]")).to_be_visible()
    label = page.locator("[data-label=self-contradiction]")
    expect(label).to_contain_text("Self-contradiction")
    assert label.bounding_box()["height"] >= 44  # type: ignore[index]
    top = page.locator("[data-panel]").bounding_box()["y"]  # type: ignore[index]
    reader.select_quote("carry")
    reader.click_label("grammar-usage")
    expect(page.locator("[data-panel=mark] [data-question=severity]")).to_be_visible()
    assert page.locator("[data-panel]").bounding_box()["y"] == top  # type: ignore[index]
    if width > height:  # the whole form is in sight: its last line was below the fold
        reader.click_label("self-contradiction")
        expect(page.locator("[data-panel=mark] [data-action=add]")).to_be_in_viewport(ratio=1)
    middles = "(all) => all.map((e) => { const box = e.getBoundingClientRect(); return (box.left + box.right) / 2; })"
    options, words = (page.locator(f"[data-question=severity] .segmented > label{inner}") for inner in ("", " > span"))
    assert words.evaluate_all(middles) == pytest.approx(options.evaluate_all(middles), abs=1.5)
    page.locator("[data-tab=list]").click()
    expect(page.locator("[data-list=marks] button")).to_have_count(1)


def test_the_card_of_a_mark_lets_the_pointer_through(browser: Browser, scarecrow: Server) -> None:
    """It caught the mouse, and a drag that began on it selected its words instead of the text's."""
    reader = join_new_annotator(browser, scarecrow)
    page = reader.page
    reader.select_quote("fiftieth year")
    reader.click_label("self-contradiction")
    reader.press_keys("Escape")
    left, top, right, _ = page.evaluate(_STILL, ["text", "fiftieth", 1])
    page.mouse.move((left + right) / 2, top)
    card = page.locator(".hover")
    expect(card).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    inside = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('.hover') === null", inside)


def test_the_guide_fits_a_phone(browser: Browser, scarecrow: Server) -> None:
    """A table in it pushed every line out of the page."""
    reader = join_new_annotator(
        browser, scarecrow, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    reader.click_action("guide")
    expect(reader.page.locator("dialog h1").first).to_be_visible()
    beyond = (
        "[...document.querySelectorAll('dialog :is(p, li, h3)')].filter((e) => e.getBoundingClientRect().right > 361)"
    )
    assert reader.page.evaluate(f"{beyond}.filter((e) => !e.closest('.table-scroll')).length") == 0


@pytest.mark.parametrize("width", [1180, 1024, 820, 768, 720])
def test_where_one_is_and_where_the_work_is_do_not_collide(browser: Browser, scarecrow: Server, width: int) -> None:
    """ "Offline · 1 change stored in this browser" lay over "Text 1 of 3" on tablets."""
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": 900})
    reader.page.context.set_offline(True)
    reader.select_quote("fiftieth year")
    reader.click_label("incoherent")
    expect(reader.page.locator("[data-state=offline]")).to_be_visible(timeout=20_000)
    names = (".top .progress-position > :last-child", ".top [data-state]")
    place, state = (reader.page.locator(name).bounding_box() for name in names)
    assert place
    assert state
    assert place["x"] + place["width"] <= state["x"]


def test_a_chosen_mark_stays_above_the_tray(browser: Browser, scarecrow: Server) -> None:
    """On a phone the questions of a mark lay over the mark: the page looked for it before it was painted."""
    reader = join_new_annotator(
        browser, scarecrow, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    reader.long_press("fiftieth")
    reader.click_label("self-contradiction")
    page = reader.page
    above = """() => {
      const tray = document.querySelector("[data-tray=mark]")?.getBoundingClientRect().top;
      const bars = [...document.querySelectorAll(".edge-handle")].map((bar) => bar.getBoundingClientRect());
      return bars.length > 0 && bars.every(({ top, bottom }) => top > 56 && bottom + 8 < tray);
    }"""
    page.wait_for_function(above)


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (768, 1024)])
def test_notes_leave_labels_and_panel_where_they_are(
    browser: Browser, scarecrow: Server, width: int, height: int
) -> None:
    """Going offline, picking, and saying that a text cannot be judged pushed the labels up under the finger."""
    reader = join_new_annotator(browser, scarecrow, viewport={"width": width, "height": height})
    page = reader.page
    reader.select_quote("fiftieth year")
    reader.click_label("self-contradiction")
    reader.wait_until_saved()
    panel = page.locator(".panel")
    before = panel.bounding_box()
    page.locator("[data-action=pick]").first.click()
    expect(page.locator("[data-banner=pick]")).to_be_visible()
    assert panel.bounding_box() == before
    reader.click_action("cancel")
    reader.click_action("cannot")
    expect(page.locator("#because")).to_be_visible()
    assert panel.bounding_box() == before
    reader.click_action("cannot")
    page.context.set_offline(True)
    reader.answer_question("severity", "3")
    expect(page.locator("[data-note=offline]")).to_be_visible(timeout=20_000)
    assert panel.bounding_box() == before


LINES_OF = """words => {
    const shown = document.querySelector("[data-part=text]"), nodes = [];
    const walker = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const characters = nodes.flatMap((node) => [...node.data].map((_, at) => [node, at]));
    const start = nodes.map((node) => node.data).join("").indexOf(words);
    return [...new Set(characters.slice(start, start + words.length).map(([node, at]) => {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        return Math.round(range.getBoundingClientRect().top);
    }))];
}"""


@pytest.mark.parametrize("marked", ["98", "104-98", "104", "Millers by 104-98 on"])
def test_a_score_stays_on_its_line_however_it_is_marked(browser: Browser, tmp_path: Path, marked: str) -> None:
    """A mark on one half of a score let the line end in its middle, and the text moved under the hand."""
    words = "The Gulls beat the Millers by 104-98 on Saturday, and nobody had expected them to."
    with serve_study(marking_study("accuracy", make_document("r1", words)), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote(marked)
        reader.click_label("number")
        text_of = reader.page.locator("[data-part=text]")
        expect(text_of.locator(".piece").first).to_be_visible()
        assert reader.page.evaluate(LINES_OF, "104-98 on")  # found at all
        lines = set()
        for width in range(240, 480, 4):
            text_of.evaluate("(each, width) => each.style.width = `${width}px`", width)
            assert len(reader.page.evaluate(LINES_OF, "104-98")) == 1, width
            lines.add(len(reader.page.evaluate(LINES_OF, words)))
        assert len(lines) > 1  # the text did wrap in different ways
