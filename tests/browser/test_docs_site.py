"""The documentation's site, where it was built: axe-core finds nothing grave in its pages and its search."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.accessibility import axe_violations

pytestmark = pytest.mark.long
SITE = Path(__file__).parents[2] / "site"


@pytest.mark.parametrize("name", ["index.html", "performance.html", "search.html"])
def test_a_page_of_the_documentation_is_accessible(browser: Browser, name: str) -> None:
    """Captions had no level, areas no names, tables no way to be scrolled by keys, and the search no heading."""
    if not (SITE / name).exists():
        pytest.skip("the site is not built; make docs builds it")
    page = browser.new_context(viewport={"width": 360, "height": 740}).new_page()
    page.goto(f"{(SITE / name).as_uri()}{'?q=agreement' if name == 'search.html' else ''}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert axe_violations(page) == []
