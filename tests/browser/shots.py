"""Contact sheet: every page at four widths, light and dark, as pictures in one folder with an index to look through.

`python -m tests.browser.shots FOLDER [NAME ...]` makes the pages whose names contain one of the words given.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

import finecomb as fc
from finecomb.core.records import PHASES, Document, Settings
from finecomb.core.study import Study
from finecomb.simulate.demo import demo_study
from tests.browser.served import CHROMIUM, QUIET, Reader, Server, serving
from tests.browser.studies import BOX, FERRY, PROMPT, REPORT, STORY, text

WIDTHS = {1440: 900, 1024: 768, 768: 1024, 360: 740}
SCHEMES = ("light", "dark")
LONG = " ".join([FERRY] * 6)


@dataclass(frozen=True)
class Shot:
    """One page: the study it belongs to, and what to do in it before the picture is taken."""

    name: str
    study: Callable[[], Study]
    visit: Callable[[Page, Server], None]


def scarecrow() -> Study:
    return _study("scarecrow", *_documents("d", LONG, context={"prompt": PROMPT}))


def accuracy() -> Study:
    return _study("accuracy", *_documents("r", REPORT, data=BOX))


def snac() -> Study:
    return _study("snac", *_documents("s", "\n".join(STORY)))


def likert() -> Study:
    return _study("likert", *_documents("l", FERRY, context={"prompt": PROMPT}))


def demo() -> Study:
    return Study.from_items(demo_study(5, 0))


def _study(protocol: str, *documents: Document) -> Study:
    """A study with room for every reader of the sheet."""
    chosen = fc.protocol(protocol)
    settings = Settings(title="Harbour news", protocols=(chosen.id,), annotators=99, skip=PHASES)
    return Study.from_items([settings, chosen, *documents])


def _documents(prefix: str, words: str, **more: Any) -> list[Document]:
    return [text(f"{prefix}{number}", words, **more) for number in range(3)]


def _joined(page: Page, server: Server) -> Reader:
    reader = Reader(page, server.open_link)
    reader.join()
    return reader


def _welcome(page: Page, server: Server) -> None:
    page.goto(server.open_link)
    expect(page.locator("[data-action=start]")).to_be_visible()


def _empty(page: Page, server: Server) -> None:
    _joined(page, server)


def _mark(reader: Reader, quote: str, label: str) -> None:
    """As a mouse does, or a finger where the page is a phone's."""
    if reader.page.evaluate("document.body.classList.contains('phone')"):
        reader.long_press(quote.split()[0])
    else:
        reader.select(quote)
    reader.label(label)


def _marked(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    _mark(reader, "will mark", "needs-google")
    if page.locator("[data-action=done]").count():
        reader.action("done")
    _mark(reader, "fiftieth year", "self-contradiction")
    reader.answer("severity", "3")
    reader.saved()


def _picking(page: Page, server: Server) -> None:
    _marked(page, server)
    page.locator("[data-action=pick]").first.click()


def _data(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    _mark(reader, "Saturday", "name")
    reader.saved()


def _parts(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    reader.finish()
    expect(page.locator(".sofar")).to_be_visible()


def _guide(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    reader.action("guide")
    expect(page.locator("dialog")).to_be_visible()


def _researcher(address: str, wait: str = "main") -> Callable[[Page, Server], None]:
    def visit(page: Page, server: Server) -> None:
        page.goto(f"{server.address}/admin#/{address}")
        expect(page.locator(wait).first).to_be_visible(timeout=60_000)
        page.wait_for_load_state("networkidle")

    return visit


def _document(page: Page, server: Server) -> None:
    _researcher("documents", "a[href*='documents/']")(page, server)
    page.locator("a[href*='documents/']").first.click()
    expect(page.locator(".page, article").first).to_be_visible()
    page.wait_for_load_state("networkidle")


def _adjudication(page: Page, server: Server) -> None:
    _researcher("adjudicate", "a[href*='adjudicate/']")(page, server)
    page.locator("a[href*='adjudicate/']").first.click()
    expect(page.locator("[data-gold], .card").first).to_be_visible(timeout=30_000)
    page.wait_for_load_state("networkidle")


def _nowhere(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/join/nobody-knows-this")
    page.wait_for_load_state("networkidle")


SHOTS = (
    Shot("join", scarecrow, _welcome),
    Shot("marking-empty", scarecrow, _empty),
    Shot("marking", scarecrow, _marked),
    Shot("picking", scarecrow, _picking),
    Shot("guide", scarecrow, _guide),
    Shot("data", accuracy, _data),
    Shot("parts", snac, _parts),
    Shot("rating", likert, lambda page, server: _join_rating(page, server)),
    Shot("not-found", scarecrow, _nowhere),
    Shot("overview", demo, _researcher("overview", ".page")),
    Shot("documents", demo, _document),
    Shot("annotators", demo, _researcher("annotators", "table")),
    Shot("adjudicate-list", demo, _researcher("adjudicate")),
    Shot("adjudicate", demo, _adjudication),
    Shot("settings", demo, _researcher("settings", ".card")),
    Shot("export", demo, _researcher("export", ".card")),
    Shot("log", demo, _researcher("log")),
)


def _join_rating(page: Page, server: Server) -> None:
    page.goto(server.open_link)
    page.locator("[data-action=start]").click()
    expect(page.locator("[data-question]").first).to_be_visible(timeout=20_000)


def take(folder: Path, wanted: list[str]) -> list[Path]:
    """Take the pictures of the pages wanted, one study after another."""
    folder.mkdir(parents=True, exist_ok=True)
    shots = [shot for shot in SHOTS if not wanted or any(word in shot.name for word in wanted)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM or None, args=QUIET)
        for study in dict.fromkeys(shot.study for shot in shots):
            with tempfile.TemporaryDirectory() as place, serving(study(), Path(place) / "study") as server:
                signed = _signed_in(browser, server)
                for shot in (shot for shot in shots if shot.study is study):
                    for width, scheme in product(WIDTHS, SCHEMES):
                        _take(browser, server, shot, width, scheme, folder, signed)
        browser.close()
    return sorted(folder.glob("*.png"))


def _signed_in(browser: Browser, server: Server) -> Any:
    """The cookies of a researcher who followed the link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.admin_link)
    page.get_by_role("button").first.click()
    page.wait_for_load_state("networkidle")
    return context.storage_state()


def _take(browser: Browser, server: Server, shot: Shot, width: int, scheme: str, folder: Path, signed: Any) -> None:
    size = {"width": width, "height": WIDTHS[width]}
    touch = {"has_touch": True, "is_mobile": True} if width < 720 else {}
    cookies = {"storage_state": signed} if shot.study is demo else {}
    context = browser.new_context(viewport=size, color_scheme=scheme, **touch, **cookies)  # type: ignore[arg-type]
    page = context.new_page()
    try:
        shot.visit(page, server)
    except Exception as error:  # a page that cannot be reached is a picture, too
        print(f"{shot.name} at {width}, {scheme}: {str(error).splitlines()[0]}", file=sys.stderr)
    page.screenshot(path=folder / f"{shot.name}-{width}-{scheme}.png")
    context.close()


def index(folder: Path) -> Path:
    """A page that shows all pictures, one row for each page."""
    rows = []
    for shot in SHOTS:
        names = [f"{shot.name}-{width}-{scheme}.png" for scheme, width in product(SCHEMES, WIDTHS)]
        cells = "".join(f'<a href="{name}"><img src="{name}" alt=""></a>' for name in names if (folder / name).exists())
        if cells:
            rows.append(f"<h2>{escape(shot.name)}</h2><div>{cells}</div>")
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
    take(where, sys.argv[2:])
    print(index(where))
