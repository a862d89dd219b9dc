"""`show --html` and notebooks: light and dark, with a legend, wide and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import finecomb as fc
from finecomb.reporting.marked_text import document_page_html, study_html
from tests.browser.accessibility import axe_violations

pytestmark = pytest.mark.long


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_shown_text_is_readable_in_light_and_dark(browser: Browser, tmp_path: Path, scheme: str) -> None:
    study = fc.demo(readers=2)
    document = next(iter(study.iter_first_documents(1)))
    file = tmp_path / "text.html"
    file.write_text(
        document_page_html(document, study.annotations_on(document.id)[:1], study.protocols), encoding="utf-8"
    )
    page = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme).new_page()  # type: ignore[arg-type]
    page.goto(file.as_uri())
    assert page.locator(".legend .flag").count() == 10
    paper = page.locator(".sheet").evaluate("each => getComputedStyle(each).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(27, 29, 33)"}[scheme]
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.get_by_role("heading", level=1).inner_text() == document.id
    assert axe_violations(page) == []


def test_a_notebook_says_whether_it_is_dark(browser: Browser) -> None:
    page = browser.new_context(color_scheme="light").new_page()
    page.set_content(f'<body data-jp-theme-light="false">{study_html(fc.demo(readers=2))}</body>')
    assert page.locator(".sheet").first.evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(27, 29, 33)"
