"""Evidence beside a text: a box score that is read, searched and used; and what a wrong number or visitor is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from finecomb.annotators.detectors.boxscore.game_record import Season, add_neighbouring_games
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.record_links import with_links
from finecomb.core.records import ONBOARDING_PHASES, Design, Settings
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import BrowserAnnotator, Server, join_new_annotator, serve_study
from tests.browser.studies import make_document, make_game_record, marking_study, submitted_annotations

pytestmark = pytest.mark.long
REPORTS = (
    "The Gulls (4-1) beat the Northfield Millers (2-3) 104-98 on Saturday. Dana Okafor had 27 points and 11 rebounds.",
    "The Gulls beat the Eastgate Owls. Mika Sorn had 24 points and 11 rebounds, and Tomas Reyl scored 31.",
    "The Gulls won on Tuesday. Joon Abara made 6 of 9 shots and Luis Prado added 18 off the bench.",
)
GAMES = (
    make_game_record("2025-11-14"),
    make_game_record("2025-11-18", ("Eastgate", "Owls"), 2),
    make_game_record("2025-11-25"),
)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Three game reports with their box scores, the games around them, and a link."""
    season = Season.from_records(GAMES)
    records = [
        with_links(add_neighbouring_games(game, season), {"Calendar": "https://example.org/calendar"}) for game in GAMES
    ]
    documents = [make_document(f"g{at}", REPORTS[at], data=record) for at, record in enumerate(records)]
    with serve_study(marking_study("accuracy", *documents), tmp_path_factory.mktemp("served") / "study") as it:
        yield it


def correction(reader: BrowserAnnotator) -> str:
    return reader.page.locator("[data-question=correction] textarea").input_value()


def take(reader: BrowserAnnotator, row: str, column: str) -> None:
    """Click a value by its player and its column."""
    page = reader.page
    table = page.locator("table.box", has=page.get_by_role("rowheader", name=row))
    heads = [head.strip() for head in table.locator("thead th").all_text_contents()]
    cells = table.get_by_role("row", name=row).locator("[data-cell]")
    cells.nth(heads.index(column)).click()


def mark(reader: BrowserAnnotator, quote: str, label: str, nth: int = 1) -> None:
    reader.select_quote(quote, nth)
    reader.click_label(label)


def test_three_games_are_annotated_with_the_box_score(browser: Browser, games: Server) -> None:
    """One saw 24 lists of 26 numbers and had to match indices."""
    reader = join_new_annotator(browser, games)
    page = reader.page
    for _ in REPORTS:
        shown = reader.text
        expect(page.locator(".box-score")).to_be_visible()
        if shown == REPORTS[0]:
            first_game(reader)
        elif shown == REPORTS[1]:
            second_game(reader)
        else:
            third_game(reader)
        reader.wait_until_saved()
        reader.click_finish()
        page.wait_for_function("text => !document.body.innerText.includes(text)", arg=shown[:40])
    reader.expect_last_page()
    assert reader.errors == []
    marks = {mark.quotes[0]: mark for annotation in submitted_annotations(games) for mark in annotation.marks}
    corrections = {quote: mark.answers.get("correction") for quote, mark in marks.items()}
    assert corrections == {
        "Saturday": "Friday",
        "27": "24",
        "Mika Sorn": "Dana Okafor",
        "6": "6",
        "off the bench": None,
    }
    assert marks["27"].answers["comment"] == "Okafor, Pts"
    ((alternative,),) = (marks["Mika Sorn"].alternatives,)
    assert [(member.quotes, member.label) for member in alternative] == [(("24",), "number"), (("11",), "number")]


def first_game(reader: BrowserAnnotator) -> None:
    """A weekday from the date, a number from a cell, with its source; the data is searched."""
    page = reader.page
    expect(page.locator(".when")).to_contain_text("Friday 14 November 2025")
    mark(reader, "Saturday", "name")
    page.locator("[data-cell=day]").click()
    assert correction(reader) == "Friday"
    mark(reader, "27", "number")
    take(reader, "Dana Okafor", "Pts")
    assert correction(reader) == "24"
    expect(page.locator(".answer-source")).to_contain_text("Okafor, Pts")
    expect(page.locator(".box .hit")).to_have_text("24")
    expect(page.locator(".box .taken-column")).to_have_text("Pts")
    page.locator("[data-text]").focus()
    page.keyboard.press("/")
    page.keyboard.type("okafor")
    expect(page.locator(".box .found")).to_have_text("Dana Okafor")
    assert page.locator("table.box tbody tr").count() > 14  # none is hidden
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab", name="Gulls’ last")).to_be_visible()
    page.get_by_role("tab", name="Gulls’ last").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("The data contains no earlier game for the Gulls.")
    page.get_by_role("tab", name="Gulls’ next").click()
    expect(page.locator(".when")).to_contain_text("Tuesday 18 November 2025")
    expect(page.get_by_role("link", name="Calendar")).to_have_attribute("target", "_blank")
    assert axe_violations(page) == []
    page.get_by_role("tab", name="This game").click()


def second_game(reader: BrowserAnnotator) -> None:
    """One wrong name, or two wrong numbers: the same mistake, read otherwise."""
    page = reader.page
    mark(reader, "Mika Sorn", "name")
    page.get_by_role("rowheader", name="Dana Okafor").click()
    assert correction(reader) == "Dana Okafor"
    reader.click_action("otherwise")
    mark(reader, "24", "number")
    mark(reader, "11", "number")
    reader.click_action("otherwise-done")
    expect(page.locator("[data-reading='0']")).to_contain_text("24")
    assert page.locator("[data-list=marks] button").count() == 1  # it stays one mistake
    reader.press_keys("Control+z")
    expect(page.locator("[data-reading='0']")).not_to_contain_text("11")
    reader.press_keys("Control+Shift+z")
    expect(page.locator("[data-reading='0']")).to_contain_text("11")


def third_game(reader: BrowserAnnotator) -> None:
    """By keys: arrows move through the box score, Enter uses a value."""
    page = reader.page
    mark(reader, "6", "number")
    page.locator("[data-cell=day]").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-cell='vis team']")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert correction(reader) == "29"
    table = page.locator("table.box[data-team=vis]")
    table.get_by_role("row", name="Joon Abara").locator("[data-value='6']").first.click()  # a part of 6-9
    assert correction(reader) == "6"
    mark(reader, "off the bench", "word")


@pytest.mark.parametrize(("width", "hidden"), [(1440, False), (1280, True)])
def test_percentages_fold_away_where_there_is_no_room(
    browser: Browser, games: Server, width: int, hidden: bool
) -> None:
    reader = join_new_annotator(browser, games, viewport={"width": width, "height": 900})
    head = reader.page.locator("table.box th", has_text="FG%").first
    expect(head).to_be_visible(visible=not hidden)
    if hidden:
        reader.page.get_by_role("button", name="show %").click()
        expect(head).to_be_visible()
    rows = reader.page.locator(".box-score .scroll")
    rows.evaluate("each => each.scrollTo(0, 120)")
    top, bottom = (
        reader.page.evaluate(f"() => document.querySelector('{what}').getBoundingClientRect().top")
        for what in (".box-score .scroll", "table.box thead th")
    )
    assert abs(top - bottom) < 2  # the header stays


# --- numbers and visitors ------------------------------------------------------------------------------------------


def test_a_number_outside_its_scale_is_refused_in_the_field_and_a_first_visitor_is_welcome(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """9 on a scale from 1 to 5 was refused by the server only; a first visitor was told to be signed out."""
    question = Question(name="clarity", ask="How clear is it?", scale="number", low=1, high=5)
    rating = Protocol(name="clear", version="1", title="Clarity", summary="One number.", document_questions=(question,))
    with serve_study(
        marking_study(rating, make_document("r1", REPORTS[0])), tmp_path_factory.mktemp("served") / "study"
    ) as server:
        page = browser.new_context().new_page()
        page.goto(server.address)
        expect(page.get_by_role("heading")).to_contain_text("Open this page with your personal link")
        reader = BrowserAnnotator(page, server.open_link)
        reader.click_action("start")
        field = page.locator("[data-question=clarity] input")
        field.fill("9")
        expect(page.locator("[data-question=clarity] .refusal")).to_have_text(
            "“How clear is it?” must be a number from 1 to 5; found 9."
        )
        field.fill("4")
        expect(page.locator("[data-question=clarity] .refusal")).to_have_count(0)
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        assert submitted_annotations(server)[0].answers == {"clarity": 4}


# --- the design -----------------------------------------------------------------------------------------------------


def test_the_researcher_sees_each_cell_fill(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    protocol = fc.protocol("turing")
    conditions = tuple(condition.name for condition in protocol.conditions)[:2]
    design = Design(
        cross={"condition": conditions, "domain": ("news", "stories"), "model": ("comb-small", "comb-large")},
        people=2,
        texts=1,
        pay=1.5,
        currency="USD",
    )
    settings = Settings(title="Harbour", protocols=(protocol.id,), annotators=9, skip=ONBOARDING_PHASES, design=design)
    documents = [
        make_document(f"{domain}-{model}-{at}", f"{REPORTS[0]} {at}", meta={"domain": domain, "model": model})
        for domain in ("news", "stories")
        for model in ("comb-small", "comb-large", "human")
        for at in range(3)
    ]
    study = Study.from_items([settings, protocol, *documents])
    with serve_study(study, tmp_path_factory.mktemp("served") / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        page.get_by_role("link", name="Design").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("0 of 16 people accepted", timeout=30_000)
        assert page.locator("td.cell button").count() == 8
        visitor = BrowserAnnotator(browser.new_context().new_page(), server.open_link)
        visitor.click_action("start")
        visitor.page.wait_for_load_state("networkidle")
        page.reload()
        expect(page.locator(".bars-row .working")).to_have_count(2, timeout=30_000)  # one of them explains the sign
        page.locator("td.cell button", has_text="0 of 2").click()
        expect(page.locator("[data-chosen] .people li")).to_have_count(1)
        assert axe_violations(page) == []
