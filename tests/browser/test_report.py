"""A report in a real browser, from disk: it fits every width, its words do not touch, and its filters work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from finecomb.reporting.site.report_content import build_report_source
from finecomb.reporting.site.report_folder import write_report
from tests.reporting.site.test_model_replies import RAW, judged
from tests.reporting.site.test_report_folder import hostile_study

TOUCHING = """() => {
  const boxes = (svg) =>
    [...svg.querySelectorAll("text")].map((text) => text.getBoundingClientRect()).filter((box) => box.width);
  const touch = (a, b) => a.left < b.right && b.left < a.right;
  return [...document.querySelectorAll("svg")].flatMap((svg) => {
    const all = boxes(svg);
    const out = all.filter((box) => box.left < 0 || box.right > document.documentElement.clientWidth);
    const pairs = all.filter((box, at) => all.slice(at + 1).some((other) => touch(box, other)));
    return [...out, ...pairs].map(() => svg.outerHTML);
  });
}"""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "report"
    write_report(replace(build_report_source(judged(), "demo", draws=50), replies={"c1": RAW}), folder, "1 May 2026")
    return folder


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("width", [1440, 768, 360])
def test_it_fits_every_width(report: Path, page: Page, width: int) -> None:
    """At 768 px the plots of two columns shrank to nothing, and "no difference" stood half outside the page."""
    page.set_viewport_size({"width": width, "height": 900})
    for name in ("index.html", "texts/1.html", "texts.html"):
        page.goto((report / name).as_uri())
        assert page.evaluate(WIDER) <= 0, name
        assert page.evaluate(TOUCHING) == [], name
    page.goto((report / "index.html").as_uri())
    plots = page.locator("#judges td.plot svg[role=img]").all()
    assert len(plots) == 4
    for plot in plots:
        box = plot.bounding_box()
        assert box
        assert box["width"] >= 80


def test_marks_readers_and_replies_are_shown_and_hidden(report: Path, page: Page) -> None:
    page.goto((report / "texts/1.html").as_uri())
    items = page.locator(".panel li")
    everything = items.count()
    page.locator(".marked-piece").first.click()
    assert 0 < page.locator(".panel li:visible").count() < everything
    page.keyboard.press("Escape")
    page.get_by_label("judge-4").uncheck()
    expect(page.locator(".panel li:visible")).to_have_count(everything - 3)
    raw = page.locator(".reply pre")
    expect(raw).to_be_hidden()
    page.get_by_text("raw reply").click()
    expect(raw).to_have_text(RAW)


def test_texts_are_searched(report: Path, page: Page) -> None:
    page.goto((report / "texts.html").as_uri())
    page.locator("#text-search").fill("harbour-a")
    expect(page.locator("#text-count")).to_have_text("1 text")
    expect(page.locator(".texts tr:visible")).to_have_count(2)
    page.locator("#text-search").fill("")
    expect(page.locator(".texts tr:visible")).to_have_count(17)


def test_nothing_in_a_text_runs(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_report(build_report_source(hostile_study(), "hostile", draws=20), folder, "today")
    for file in sorted(folder.rglob("*.html")):
        page.goto(file.as_uri())
        expect(page.locator("img")).to_have_count(0)
        assert page.evaluate("document.scripts.length") == 1
