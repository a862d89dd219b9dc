"""Every page in every state: axe-core finds nothing grave, nothing is cut, and a finger meets what it aims at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.layout_checks import cut_elements, small_targets
from tests.browser.live_server import serve_study
from tests.browser.page_states import FILE_STATES, PAGE_STATES, FileState, sign_in_researcher
from tests.browser.screenshots import window_options

pytestmark = pytest.mark.long
PHONE = 720
LOOKS = ((1440, "light"), (768, "dark"), (360, "dark"))
STUDIES = list(dict.fromkeys(state.study for state in PAGE_STATES))


def faults(page: Page, name: str, width: int) -> list[str]:
    """What is wrong with a page, each fault with the page's name and the width of the window."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    beyond = [f"{wide} pixels wide"] if wide > width else []
    small = small_targets(page) if width < PHONE else []
    return [f"{name} at {width}: {fault}" for fault in (*beyond, *cut_elements(page), *small, *axe_violations(page))]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.__name__)
def test_pages_of_a_study_are_accessible(browser: Browser, tmp_path: Path, study: Callable[[], Study]) -> None:
    shown = [state for state in PAGE_STATES if state.study is study]
    problems = []
    with serve_study(study(), tmp_path / "study") as server:
        cookies = sign_in_researcher(browser, server) if any(state.is_for_researchers for state in shown) else None
        for state in shown:
            for width, scheme in LOOKS:
                own = {"storage_state": cookies} if state.is_for_researchers else {}
                context = browser.new_context(**window_options(width, scheme), **own)
                page = context.new_page()
                state.visit(page, server)
                problems += faults(page, state.name, width)
                context.close()
    assert problems == []


@pytest.mark.parametrize("state", FILE_STATES, ids=lambda state: state.name)
def test_pages_in_files_are_accessible(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, state: FileState
) -> None:
    file = state.make(tmp_path_factory.getbasetemp())
    problems = []
    for width, scheme in LOOKS:
        context = browser.new_context(**window_options(width, scheme))
        page = context.new_page()
        page.goto(file.as_uri())
        problems += faults(page, state.name, width)
        context.close()
    assert problems == []
