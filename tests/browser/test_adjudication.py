"""A researcher decides about gold: by keyboard to the end, by mouse, on a phone, and finds it in the export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import finecomb as fc
from finecomb.core.records import Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import Server, serve_study

TEXT = (
    "The Harbour Gulls (4-1) beat the Northfield Millers (2-3) 104-98 on Saturday at the Millhouse. The Gulls led "
    "55-47 at the break and never trailed again. Dana Okafor led the Gulls with 27 points and 11 rebounds, and Luis "
    "Prado added 18 off the bench. Tomas Reyl scored a season-high 31 for the Millers."
)
BOX = {
    "players": [
        {"player": "Luis Prado", "team": "Millers, started", "min": 35, "pts": 18, "reb": 5},
        {"player": "Per Lunde", "team": "Gulls, off the bench", "min": 22, "pts": 13, "reb": 8},
        {"player": "Dana Okafor", "team": "Gulls", "min": 33, "pts": 25, "reb": 11},
    ]
}
PROTOCOL = fc.protocol("accuracy")
MARKS = {
    "ash": [
        ("Saturday", "name", "Friday"),
        ("27", "number", "25"),
        ("Luis Prado", "name", "Per Lunde"),
        ("season-high", "not-checkable", ""),
    ],
    "bo": [
        ("Saturday", "name", "Friday"),
        ("27", "number", "25"),
        ("Luis Prado added", "context", "He is a Miller. His 18 points are right."),
        ("season-high", "not-checkable", ""),
    ],
    "cy": [
        ("Saturday", "name", "Friday"),
        ("27", "number", "24"),
        ("Luis Prado added 18 off the bench", "context", "He started for the Millers"),
        ("31", "number", "30"),
    ],
}


def marked(id: str, quote: str, label: str, correction: str) -> Mark:
    at = TEXT.index(quote)
    answers = {"correction": correction} if correction else {}
    return Mark(id=id, spans=(Span(at, at + len(quote)),), quotes=(quote,), label=label, answers=answers)


def games() -> Study:
    documents = [Document(id=id, text=TEXT, data=BOX, meta={"model": "secret"}) for id in ("report-03", "report-04")]
    work = [
        Annotation(
            id=f"{document.id}/{who}",
            document=document.id,
            annotator=who,
            protocol=PROTOCOL.id,
            marks=tuple(
                marked(f"{document.id}/{who}/{at}", *each) for at, each in enumerate(own[: 4 if at_ == 0 else 2])
            ),
        )
        for at_, document in enumerate(documents)
        for who, own in MARKS.items()
    ]
    people = [Annotator(id=who, kind="human") for who in MARKS]
    settings = Settings(title="Game reports", protocols=(PROTOCOL.id,), annotators=3)
    return Study.from_items([settings, PROTOCOL, *documents, *people, *work])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serve_study(games(), tmp_path / "study") as served:
        yield served


def researcher(browser: Browser, server: Server, **options: object) -> Page:
    """Somebody who is signed in, on the page about gold."""
    page = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options)).new_page()  # type: ignore[arg-type]
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(server.admin_link)
    page.get_by_role("button").first.click()
    page.get_by_role("link", name="Adjudication").click()
    return page


def opened(page: Page, id: str = "report-03") -> None:
    page.get_by_role("link", name=f"Decide {id}").click()
    expect(page.get_by_role("heading", name=re.compile(r"^Span 1 of"))).to_be_visible(timeout=20_000)


def gold(server: Server, id: str = "report-03") -> Annotation:
    (found,) = [each for each in server.read_study().annotations_on(id) if each.annotator == "gold"]
    return found


def saved(page: Page) -> None:
    expect(page.locator("[data-state=saved]")).to_contain_text("Saved to gold", timeout=20_000)


def at(page: Page, number: int) -> None:
    expect(page.get_by_role("heading", name=re.compile(rf"^Span {number} of"))).to_be_visible()


def number(page: Page, quote: str) -> str:
    """Of the reading with these words: their order says nothing."""
    return str(page.locator("[data-reading]", has_text=quote).get_attribute("data-reading"))


def test_a_text_is_adjudicated_by_keyboard(browser: Browser, server: Server, tmp_path: Path) -> None:
    page = researcher(browser, server)
    expect(page.locator("tbody tr").first).to_contain_text("report-03")  # most to decide
    assert axe_violations(page) == []
    opened(page)
    keys = page.keyboard
    assert not any(name in page.content() for name in ("ash", "secret"))

    keys.press("a")  # look at what all agree on, then take it
    expect(page.get_by_role("heading", name="All annotators agree on these 2 spans")).to_be_visible()
    keys.press("Enter")
    expect(page.locator(".rail")).to_contain_text("3 spans to decide")

    keys.press("Alt+ArrowDown")
    keys.press("Alt+ArrowDown")
    at(page, 3)
    assert axe_violations(page) == []
    keys.press(number(page, "“Luis Prado added”"))
    saved(page)
    keys.press("l")
    page.locator("[data-label-of='0']").select_option("word")
    keys.press("Escape")
    keys.press("]")  # one word more
    saved(page)
    expect(page.locator("[data-gold] .quote").first).to_have_attribute(
        "aria-label", "Words of the gold mark: Luis Prado added 18"
    )
    keys.press("[")
    keys.press("Control+Enter")
    at(page, 4)
    keys.press("x")
    saved(page)
    keys.press("Control+Enter")
    at(page, 5)
    keys.press("d")
    expect(page.get_by_text("To be discussed. The gold annotation stays a draft")).to_be_visible()
    saved(page)
    assert gold(server).status == "draft"
    keys.press("u")
    expect(page.get_by_text("No decision yet")).to_be_visible()
    keys.press("1")
    saved(page)
    keys.press("+")  # one that nobody marked
    at(page, 6)
    page.locator("[data-gold] .quote").first.focus()
    for _ in range(3):
        keys.press("ArrowRight")
    keys.press("l")
    page.locator("[data-label-of='0']").select_option("name")
    saved(page)
    expect(page.locator(".rail")).to_contain_text("The gold annotation has been submitted")

    made = gold(server)
    assert made.status == "submitted"
    found = {mark.quotes[0]: mark.label for mark in made.marks}
    assert found.items() >= {
        ("Saturday", "name"),
        ("27", "number"),
        ("Luis Prado added", "word"),
        ("31", "number"),
    }
    assert "season-high" not in found
    assert len(found) == 5
    assert fc.check(server.read_study()) == []

    page.get_by_role("link", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as jsonl", exact=True).click()
    download.value.save_as(tmp_path / "games.jsonl")
    exported = [
        each
        for each in fc.read(tmp_path / "games.jsonl").submitted_work().iter_annotations()
        if each.annotator == "gold"
    ]
    assert exported == [made]


@pytest.mark.long
def test_a_place_is_split_and_dragged_by_mouse(browser: Browser, server: Server) -> None:
    page = researcher(browser, server)
    opened(page)
    page.locator("[data-dispute]").nth(2).click()
    at(page, 3)
    page.get_by_role("button", name="Split in two").click()
    expect(page.locator("[data-gold]")).to_have_count(2)
    second = page.locator("[data-gold='1']")
    word = second.locator("[data-word]", has_text="bench")
    word.evaluate("word => word.scrollIntoView({ block: 'center' })")
    box, start = word.bounding_box(), second.locator(".in").last.bounding_box()
    assert box is not None
    assert start is not None
    page.mouse.move(start["x"] + start["width"] - 2, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 8, steps=4)
    page.mouse.up()
    second.locator("[data-label-of]").select_option("number")
    saved(page)
    labels = sorted(str(mark.label) for mark in gold(server).marks)
    assert labels == ["context", "number"]
    assert next(m for m in gold(server).marks if m.label == "number").quotes[0].endswith("bench")
    assert axe_violations(page) == []


@pytest.mark.long
def test_a_phone_can_decide_in_the_dark(browser: Browser, server: Server) -> None:
    page = researcher(
        browser, server, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, color_scheme="dark"
    )
    opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("[data-dispute]").nth(2).tap()
    page.locator(f"[data-action=take-{number(page, '“Luis Prado added”')}]").tap()
    saved(page)
    page.get_by_role("button", name="End one word later").tap()
    saved(page)
    assert axe_violations(page) == []
    assert gold(server).marks[0].quotes == ("Luis Prado added 18",)


@pytest.mark.long
def test_two_researchers_hear_of_each_other(browser: Browser, server: Server) -> None:
    page = researcher(browser, server)
    opened(page)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("heading", name=re.compile(r"^Span 1 of"))).to_be_visible(timeout=20_000)
    other.keyboard.press("x")
    saved(other)
    page.keyboard.press("1")
    expect(page.get_by_role("alert").filter(has_text="has decided this")).to_be_visible()
    expect(page.locator("[data-dispute][aria-current=true]")).to_contain_text("not an error")


@pytest.mark.long
def test_the_second_pass_starts_and_is_taken_back(browser: Browser, server: Server) -> None:
    page = researcher(browser, server)
    expect(page.get_by_text("A second pass would create 6 assignments")).to_be_visible(timeout=20_000)
    page.locator("[data-action=start-second]").click()
    expect(page.get_by_text("0 of 6 texts resubmitted")).to_be_visible()
    page.locator("[data-action=stop-second]").click()
    expect(page.locator("[data-action=start-second]")).to_be_visible()
