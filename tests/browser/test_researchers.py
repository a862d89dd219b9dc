"""The researcher's pages: what they show, and whom they let in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.layout_checks import cut_elements
from tests.browser.live_server import Server, serve_study
from tests.browser.researcher_studies import make_design_study, record_arrivals
from tests.browser.studies import REPORT, make_document, marking_study

pytestmark = pytest.mark.long


@pytest.fixture
def running(browser: Browser, tmp_path: Path) -> Iterator[tuple[Page, Server]]:
    """The demo study with simulated annotators, and a researcher who has signed in."""
    with serve_study(Study.from_items(build_demo_study(5, 0)), tmp_path / "study") as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        expect(page.get_by_role("heading", name="Progress by model")).to_be_visible(timeout=60_000)
        yield page, server


def test_the_researcher_sees_everything_and_can_get_it_out(running: tuple[Page, Server]) -> None:
    page, server = running
    assert axe_violations(page) == []
    for name in ("Documents", "Annotators", "Settings"):
        page.get_by_role("link", name=name).first.click()
        page.wait_for_load_state("networkidle")
        assert axe_violations(page) == []
    page.goto(server.admin_link)  # the link worked once
    expect(page.locator("body")).to_contain_text("This link is not valid")


def test_admin_pages_need_the_link(browser: Browser, tmp_path: Path) -> None:
    with serve_study(marking_study("accuracy", make_document("r1", REPORT)), tmp_path / "study") as server:
        page = browser.new_context().new_page()
        page.goto(f"{server.address}/admin")
        page.wait_for_load_state("networkidle")
        assert "r1" not in page.content()
        assert page.request.get(f"{server.address}/api/admin/overview").status == 401


@pytest.mark.parametrize("width", [1024, 768])
def test_what_is_pointed_at_in_a_document_stays_where_it_is(running: tuple[Page, Server], width: int) -> None:
    """The panel came up below and pushed the bar away from the pointer, which closed the panel again, and so on."""
    page, server = running
    page.set_viewport_size({"width": width, "height": 768})
    page.goto(f"{server.address}/admin#/documents")
    bars = page.locator("[role=listbox] [role=option], .bars [data-mark], .bar")
    expect(page.locator("[data-action=adjudicate]")).to_be_visible(timeout=30_000)
    stage = page.locator(".stage").first
    before = stage.bounding_box()
    page.locator(".text-body [data-at]").first.hover()
    assert stage.bounding_box() == before
    if bars.count():
        bars.last.hover()
        assert stage.bounding_box() == before


def test_a_document_leads_to_its_adjudication_and_back(running: tuple[Page, Server]) -> None:
    page, server = running
    page.goto(f"{server.address}/admin#/documents")
    page.locator("[data-action=adjudicate]").click(timeout=30_000)
    expect(page.locator("[data-action=document]")).to_be_visible(timeout=30_000)
    page.set_viewport_size({"width": 800, "height": 900})  # headings stood one word to a line, answers one letter
    narrow = (
        "[...document.querySelectorAll('dd, dt')].filter((each) => each.offsetWidth && each.offsetWidth < 60).length"
    )
    assert page.evaluate(narrow) == 0
    page.locator("[data-action=document]").click()
    expect(page.locator("#the-text")).to_be_visible(timeout=30_000)
    page.locator("[data-action=skip]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#the-text")).to_be_focused()


def test_the_overview_leads_from_a_figure_to_the_text_that_moved_it_most(running: tuple[Page, Server]) -> None:
    page, server = running
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{server.address}/admin#/overview")
    expect(page.locator("[data-since]")).to_contain_text("Since yesterday")
    heights = page.locator(".figures .one-line").evaluate_all("all => all.map((each) => each.offsetHeight)")
    assert set(heights) == {20}
    link = page.locator(".figures [data-moved]").first
    moved = link.get_attribute("data-moved")
    link.click()
    expect(page).to_have_url(re.compile(f"#/documents/{moved}$"))
    expect(page.locator("a.doc[aria-current]")).to_contain_text(moved or "")


def test_a_document_is_printed_with_its_bars_and_their_legend(running: tuple[Page, Server]) -> None:
    page, server = running
    page.goto(f"{server.address}/admin#/documents/bakery-b")
    expect(page.locator(".text-body .depth").first).to_be_visible(timeout=30_000)
    page.emulate_media(media="print", color_scheme="dark")
    assert (
        page.locator("article.card").evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(255, 255, 255)"
    )
    expect(page.locator(".legend .flag:visible").first).to_be_visible()
    assert page.locator(".btn:visible, .pill:visible, a.doc:visible").count() == 0


@pytest.mark.parametrize("width", [1280, 1024, 768, 360])
def test_no_page_is_out_of_sight(running: tuple[Page, Server], width: int) -> None:
    """Runs, Adjudicate, Settings and Log were beyond the edge, and nothing said so."""
    page, server = running
    page.set_viewport_size({"width": width, "height": 800})
    for address in ("overview", "annotators", "adjudicate", "adjudicate/bakery-b", "documents/bakery-b"):
        page.goto(f"{server.address}/admin#/{address}")
        expect(page.locator("h1, h2").first).to_be_attached(timeout=30_000)
        page.wait_for_load_state("networkidle")
        assert cut_elements(page) == []
    for link in page.get_by_role("navigation").get_by_role("link").all():
        box = link.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_everybody_has_one_row_and_one_verdict(running: tuple[Page, Server]) -> None:
    page, server = running
    page.goto(f"{server.address}/admin#/annotators")
    row = page.locator("a.who", has_text="reader-1")
    expect(row).to_have_count(1)
    expect(page.locator("[data-verdict]", has_text="no issues").first).to_be_visible()


def test_settings_tick_what_is_there_and_exports_begin_with_three(running: tuple[Page, Server]) -> None:
    page, server = running
    page.goto(f"{server.address}/admin#/settings")
    consent = page.locator("#phase-consent")
    expect(consent).to_be_checked()
    consent.uncheck()
    with page.expect_response(lambda response: response.request.method != "GET") as saved:
        page.locator("form:has(#phase-consent) button.btn.go").click()
    assert saved.value.ok
    page.reload()
    expect(page.locator("#phase-consent")).not_to_be_checked()
    assert "consent" in server.read_study().settings.skip
    page.goto(f"{server.address}/admin#/export")
    expect(page.locator("[data-exports=first] li")).to_have_count(3)
    expect(page.locator("[data-exports=rest] li").first).to_be_hidden()
    page.locator("summary").click()
    expect(page.locator("[data-format=brat]")).to_be_visible()


def test_work_on_a_text_is_excluded_in_one_folded_place(running: tuple[Page, Server]) -> None:
    """A button stood under everything that anybody said, gold included."""
    page, server = running
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{server.address}/admin#/documents/bakery-b")
    page.locator(".text-body .depth").first.click(timeout=30_000)
    panel = page.locator("aside.side")
    expect(panel.get_by_role("button", name="Unpin")).to_be_visible()
    expect(panel.get_by_role("button", name="Exclude")).to_have_count(0)
    panel.locator("[data-exclusions] summary").click()
    names = panel.locator("[data-exclusions] option").all_inner_texts()
    assert "truth" not in names
    panel.locator("[data-exclusions] select").select_option(label=names[-1])
    expect(panel.get_by_role("button", name=f"Exclude the annotation by {names[-1]}")).to_be_visible()


def test_systems_stand_by_their_estimate_people_last(running: tuple[Page, Server]) -> None:
    page, server = running
    page.goto(f"{server.address}/admin#/overview")
    expect(page.locator(".model a.name").first).to_be_visible(timeout=30_000)
    assert page.locator(".model a.name").all_inner_texts() == ["comb-small", "comb-medium", "comb-large", "human"]


def test_a_design_says_what_it_pays_what_it_costs_and_what_puts_it_right(browser: Browser, tmp_path: Path) -> None:
    with serve_study(make_design_study(), tmp_path / "study") as server:
        record_arrivals(server)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        page.wait_for_load_state("networkidle")
        page.goto(f"{server.address}/admin#/design")
        low = page.locator("[data-cell='none/school/human'] .low")
        expect(low).to_have_text("$14.34", timeout=60_000)
        expect(page.locator(".under .low")).to_have_count(1)
        expect(page.locator("svg.budget")).to_have_attribute("aria-label", re.compile("750"))
        below = page.locator("[data-below]")
        expect(below).to_contain_text("A bonus of $0.10")
        below.get_by_role("button").click()
        expect(below).to_have_count(0)
        expect(page.locator("[data-cell='none/school/human']")).to_contain_text("$15.06")
        needed = page.get_by_role("heading", level=1).locator("+ span")
        before = needed.inner_text()
        page.get_by_role("switch").uncheck()
        expect(needed).not_to_have_text(before)  # places of people who were excluded are no longer needed
        page.get_by_role("switch").check()
        expect(needed).to_have_text(before)
        assert axe_violations(page) == []
