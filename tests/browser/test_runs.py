"""The researcher's page about language models: start a run, look at what failed, see its marks beside people's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import finecomb as fc
from finecomb.annotators.llm.endpoint_consent import confirm_endpoint
from finecomb.core.records import Annotation, Annotator, Document, Mark, ModelSettings, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer, extract_text
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import Server, serve_study

pytestmark = pytest.mark.long
TEXT = "On day {} they saw the the sea."
MARK = {
    "quote": "the the",
    "before": "saw",
    "after": "sea.",
    "label": "grammar-usage",
    "severity": 1,
    "explanation": "Doubled.",
}


def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
    text = extract_text(body)
    if "day 1 " in text:
        return ScriptedAnswer("I'm sorry, but I can't help with that.")
    if "day 2 " in text and body["max_tokens"] < 3000:
        return ScriptedAnswer('{"marks": [' + json.dumps(MARK) + ', {"quote": "the', finish="length")
    return ScriptedAnswer(json.dumps({"marks": [MARK]}), wait=0.3)


def study_of(url: str) -> Study:
    documents = [Document(id=f"day-{number}", text=TEXT.format(number)) for number in range(6)]
    span = Span(18, 25)
    mark = Mark(id="ann/0", spans=(span,), quotes=("the the",), label="grammar-usage", answers={"severity": 1})
    person = Annotation(id="a", document="day-0", annotator="ann", protocol=fc.protocol("scarecrow").id, marks=(mark,))
    models = {"judge-4": ModelSettings(model="big", base_url=url, price=(1, 2), budget=2.0, attempts=1)}
    settings = Settings(title="Harbour", protocols=(fc.protocol("scarecrow").id,), models=models)
    return Study.from_items([settings, fc.protocol("scarecrow"), *documents, Annotator(id="ann", kind="human"), person])


@pytest.fixture
def researcher(browser: Browser, tmp_path: Path) -> Iterator[tuple[Page, Server, ScriptedServer]]:
    with ScriptedServer(script) as model, serve_study(study_of(model.url), tmp_path / "study") as server:
        confirm_endpoint(study_of(model.url).settings.models["judge-4"], tmp_path / "study" / "study.db")
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button").first.click()
        expect(page.get_by_role("link", name="Runs")).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Runs").click()
        expect(page.get_by_role("heading", name="Language-model runs")).to_be_visible(timeout=30_000)
        yield page, server, model


def test_a_run_from_its_start_to_its_marks_beside_a_persons(
    researcher: tuple[Page, Server, ScriptedServer],
) -> None:
    page, server, model = researcher
    sent = page.locator("[data-sent]")
    expect(sent).to_contain_text("On day 0 they saw the the sea.", timeout=30_000)
    page.get_by_role("button", name="Next text").click()
    expect(sent).to_contain_text("On day 1 they saw")
    assert axe_violations(page) == []
    assert model.requests == []  # nothing was sent to show it
    expect(page.locator("[data-action=start]")).to_contain_text("Start (at most $2.00)")
    page.locator("[data-action=try]").click()
    row = page.locator("[data-run='judge-4']")
    expect(row).to_have_attribute("data-state", "finished", timeout=60_000)
    assert len(model.requests) == 1

    page.locator("[data-action=start]").click()
    expect(row).to_contain_text("6 of 6", timeout=60_000)
    expect(row).to_have_attribute("data-state", "finished", timeout=60_000)
    expect(row).to_contain_text("2 need review", timeout=30_000)
    assert len(model.requests) == 6  # the text that was tried is not asked again
    row.locator("[data-action=failures]").click()
    failures = page.locator("[data-failures='judge-4']")
    expect(failures.locator("[data-raw]")).to_contain_text("I'm sorry, but I can't help with that.")
    assert axe_violations(page) == []
    failures.locator("[data-action=leave-out]").click()
    expect(row).to_contain_text("1 needs review", timeout=30_000)
    failures.get_by_role("button", name="day-2").click()
    expect(failures.locator("[data-raw]")).to_contain_text("cut off here")
    failures.locator("[data-action=again]").click()
    expect(row).to_contain_text("no issues", timeout=60_000)

    page.goto(f"{server.address}/admin#/documents/day-0")
    expect(page.get_by_text("judge-4").first).to_be_visible(timeout=30_000)
    expect(page.get_by_text("ann", exact=True).first).to_be_visible()
    assert len(server.read_study().marks) == 6


def test_a_run_is_stopped_from_the_page(researcher: tuple[Page, Server, ScriptedServer]) -> None:
    page, _, model = researcher
    model.script = lambda body, number: ScriptedAnswer(json.dumps({"marks": []}), wait=0 if number < 2 else 60)
    page.locator("[data-action=start]").click(timeout=30_000)
    row = page.locator("[data-run='judge-4']")
    expect(row).to_contain_text("2 of 6", timeout=60_000)
    row.locator("[data-action=stop]").click()
    expect(row).to_have_attribute("data-state", "stopped", timeout=60_000)
    expect(row.locator("[data-action=continue]")).to_be_visible()


@pytest.mark.parametrize("width", [1024, 768, 360])
def test_nothing_is_wider_than_the_window(researcher: tuple[Page, Server, ScriptedServer], width: int) -> None:
    page, _, _ = researcher
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.locator("[data-sent]")).to_be_visible(timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
