"""Contact sheet: every page at four widths, light and dark, as pictures in one folder with an index to look through.

`python -m tests.browser.screenshots FOLDER [NAME ...]` makes the pages whose names contain one of the words given.
"""

from __future__ import annotations

import sys
import tempfile
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.live_server import CHROMIUM, CHROMIUM_ARGUMENTS, Server, serve_study
from tests.browser.page_states import FILE_STATES, PAGE_STATES, PageState, sign_in_researcher

HEIGHT_BY_WIDTH = {1440: 900, 1024: 768, 768: 1024, 360: 740}
SCHEMES = ("light", "dark")


def take_screenshots(folder: Path, wanted: list[str]) -> None:
    """Take the pictures of the pages wanted, one study after another."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM or None, args=CHROMIUM_ARGUMENTS)
        states = [state for state in PAGE_STATES if _is_wanted(state.name, wanted)]
        for study in dict.fromkeys(state.study for state in states):
            with tempfile.TemporaryDirectory() as place, serve_study(study(), Path(place) / "study") as server:
                shown = [state for state in states if state.study is study]
                cookies = (
                    sign_in_researcher(browser, server) if any(state.is_for_researchers for state in shown) else None
                )
                for state in shown:
                    for width, scheme in product(HEIGHT_BY_WIDTH, SCHEMES):
                        _take_screenshot(browser, server, state, width, scheme, folder, cookies)
        _take_file_screenshots(browser, folder, wanted)
        browser.close()


def _is_wanted(name: str, wanted: list[str]) -> bool:
    return not wanted or any(word in name for word in wanted)


def window_options(width: int, scheme: str) -> dict[str, Any]:
    """A window of that width, in which nothing is half-way; one as narrow as a phone's is touched."""
    size = {"width": width, "height": HEIGHT_BY_WIDTH[width]}
    touch = {"has_touch": True, "is_mobile": True} if width < 720 else {}
    return {"viewport": size, "color_scheme": scheme, "reduced_motion": "reduce", **touch}


def _take_screenshot(
    browser: Browser, server: Server, state: PageState, width: int, scheme: str, folder: Path, cookies: Any
) -> None:
    own = {"storage_state": cookies} if state.is_for_researchers else {}
    context = browser.new_context(**window_options(width, scheme), **own)
    page = context.new_page()
    try:
        state.visit(page, server)
    except Exception as error:  # a page that cannot be reached is a picture, too
        print(f"{state.name} at {width}, {scheme}: {str(error).splitlines()[0]}", file=sys.stderr)
    if state.is_for_researchers:
        expand_window(page, width)
    page.screenshot(path=folder / f"{state.name}-{width}-{scheme}.png", animations="disabled")
    context.close()


_MAX_HEIGHT = 6000
_HIDDEN = """() => Math.max(...[document.documentElement, ...document.querySelectorAll("main, main div, .app > div")]
  .filter((area) => area === document.documentElement || getComputedStyle(area).overflowY === "auto")
  .map((area) => area.scrollHeight - area.clientHeight))"""


def expand_window(page: Page, width: int) -> None:
    """Make the window so long that the whole page is in view: these pages are read from top to bottom."""
    for _ in range(3):
        hidden = int(page.evaluate(_HIDDEN))
        height = (page.viewport_size or {"height": HEIGHT_BY_WIDTH[width]})["height"]
        if hidden <= 0 or height >= _MAX_HEIGHT:
            return
        page.set_viewport_size({"width": width, "height": min(height + hidden, _MAX_HEIGHT)})
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _take_file_screenshots(browser: Browser, folder: Path, wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        for state in (state for state in FILE_STATES if _is_wanted(state.name, wanted)):
            for width, scheme in product(HEIGHT_BY_WIDTH, SCHEMES):
                page = browser.new_context(**window_options(width, scheme)).new_page()
                page.goto(state.make(Path(place)).as_uri())
                expand_window(page, width)
                page.screenshot(path=folder / f"{state.name}-{width}-{scheme}.png", animations="disabled")
                page.context.close()


def write_index(folder: Path) -> Path:
    """A page that shows all pictures, one row for each page."""
    rows = []
    for state in (*PAGE_STATES, *FILE_STATES):
        names = [f"{state.name}-{width}-{scheme}.png" for scheme, width in product(SCHEMES, HEIGHT_BY_WIDTH)]
        cells = "".join(f'<a href="{name}"><img src="{name}" alt=""></a>' for name in names if (folder / name).exists())
        if cells:
            rows.append(f"<h2>{escape(state.name)}</h2><div>{cells}</div>")
    style = "body{font:14px sans-serif;margin:24px}div{display:flex;gap:8px;overflow:auto}img{height:300px}"
    page = folder / "index.html"
    title = "Contact sheet"
    page.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{style}</style>"
        f"<h1>{title}</h1>{''.join(rows)}</html>",
        encoding="utf-8",
    )
    return page


if __name__ == "__main__":
    where = Path(sys.argv[1])
    take_screenshots(where, sys.argv[2:])
    print(write_index(where))
