"""A real server and a real reader: `finecomb serve` as its users start it, and a person in headless Chromium."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

import finecomb as fc
from finecomb.core.study import Study

CHROMIUM = os.environ.get("FINECOMB_CHROMIUM") or next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
CHROMIUM_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
CHROMIUM_ARGUMENTS += ["--disable-component-update", "--disable-sync", "--no-first-run"]
_MAX_START_SECONDS = 180.0  # seconds a server may take on a busy machine


@dataclass
class Server:
    """`finecomb serve FOLDER` in a process of its own, which tests may kill and start again."""

    folder: Path
    port: int
    process: subprocess.Popen[str] | None = None
    open_link: str = ""
    admin_link: str = ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("finecomb")), "serve", str(self.folder), "--port", str(self.port)]
        log = self.folder.parent / "server.log"
        with log.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True)
        self._wait_until_ready(log)
        said = log.read_text()
        self.open_link = _find_link(said, "/join/")
        self.admin_link = _find_link(said, "/sign-in/")

    def _wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + _MAX_START_SECONDS
        while time.monotonic() < deadline:
            assert self.process is not None
            assert self.process.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(self.address, timeout=10)
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise AssertionError(f"the server did not start:\n{log.read_text()}")

    def kill(self) -> None:
        """As a crash would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)

    def read_study(self) -> Study:
        """What every command sees: the folder together with its database."""
        return fc.read(self.folder)


def _find_link(said: str, path: str) -> str:
    found = re.search(rf"http://\S*{path}\S+", said)
    return found.group(0) if found else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve_study(study: Study, folder: Path) -> Iterator[Server]:
    """A study served from a new folder."""
    fc.write(study, folder)
    server = Server(folder, free_port())
    try:
        server.start()
        yield server
    finally:
        server.stop()


# --- a person ----------------------------------------------------------------------------------------------------

# Boxes of the k-th occurrence of a quote, found in the text nodes as a reader sees them.
FIND = """([part, quote, nth]) => {
  for (const root of document.querySelectorAll(`[data-part="${part}"]`)) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const nodes = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (node.parentElement.closest("p[data-from]")) nodes.push(node);
    let all = nodes.map((node) => node.data).join("");
    let at = -1;
    for (let k = 0; k < nth; k += 1) at = all.indexOf(quote, at + 1);
    if (at < 0) continue;
    const place = (offset, end) => {
      let left = offset;
      for (const node of nodes) {
        if (end ? left <= node.length : left < node.length) return [node, left];
        left -= node.length;
      }
      return [nodes.at(-1), nodes.at(-1).length];
    };
    const range = document.createRange();
    range.setStart(...place(at, false));
    range.setEnd(...place(at + quote.length, true));
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    const away = range.getBoundingClientRect().top - innerHeight / 2; // a piece may be longer than the window
    let scroller = range.startContainer.parentElement;
    while (scroller && scroller.scrollHeight <= scroller.clientHeight) scroller = scroller.parentElement;
    if (Math.abs(away) > innerHeight / 3) scroller?.scrollBy({ top: away, behavior: "instant" });
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
    const first = boxes[0], last = boxes.at(-1);
    return [first.left, first.top + first.height / 2, last.right, last.top + last.height / 2];
  }
  return null;
}"""
_TEXT = """() => [...document.querySelectorAll('[data-text] p[data-from]')].map((p) => {
  const walker = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
  let text = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) text += node.data;
  return text;
}).join("")"""


class BrowserAnnotator:
    """Somebody with the link, at a mouse or a keyboard."""

    def __init__(self, page: Page, link: str) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if _is_page_error(said.type, said.text) else None)
        page.goto(link)

    def join(self) -> None:
        self.click_action("start")
        self.wait_for_text()

    def continue_from(self, step: str) -> None:
        """From the page that has this id, once it is there."""
        expect(self.page.locator(f"[data-step='{step}']")).to_be_visible(timeout=20_000)
        self.click_action("continue")

    def wait_for(self, what: str) -> None:
        """Wait for something with that `data-` attribute, as `kind=result`."""
        name, _, value = what.partition("=")
        found = f"[data-{name}='{value}']" if value else f"[data-{name}]"
        expect(self.page.locator(found).first).to_be_visible(timeout=20_000)

    def click_action(self, name: str) -> None:
        self.page.locator(f"[data-action={name}]").first.click()

    def wait_for_text(self) -> None:
        expect(self.page.locator("[data-text]")).to_be_visible(timeout=20_000)

    @property
    def text(self) -> str:
        """The text under judgement as it stands in the page."""
        return str(self.page.evaluate(_TEXT))

    def wait_until_saved(self) -> None:
        """Wait until the page says that everything is on the server's disk; it tries again within a minute."""
        expect(self.page.locator("[data-state=saved]")).to_be_visible(timeout=90_000)

    # by mouse

    def select_quote(self, quote: str, nth: int = 1, part: str = "text") -> None:
        left, top, right, bottom = self._settled_box(quote, nth, part)
        self.page.mouse.move(left + 1, top)
        self.page.mouse.down()
        self.page.mouse.move((left + right) / 2, bottom, steps=4)
        self.page.mouse.move(right - 1, bottom, steps=4)
        self.page.mouse.up()

    def _settled_box(self, quote: str, nth: int, part: str) -> list[float]:
        """Return where a quote stands once two frames agree: a page that has just changed may still move its text."""
        previous: list[float] | None = None
        while True:
            box = self.page.evaluate(FIND, [part, quote, nth])
            assert box, f"{quote!r} is not in the page"
            if box == previous:
                return [float(edge) for edge in box]
            previous = box
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click_label(self, name: str) -> None:
        self.page.locator(f"[data-label='{name}']").first.click()

    # by finger

    def long_press(self, quote: str, nth: int = 1) -> None:
        """A finger that rests on a word, through the browser's own touch input, until the word is selected."""
        left, top, right, _ = self.page.evaluate(FIND, ["text", quote, nth])
        touch = self.page.context.new_cdp_session(self.page)
        point = {"x": (left + right) / 2, "y": top}
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        expect(self.page.locator(".overlay .selection-box").first).to_be_visible()
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    # by keyboard

    def move_caret(self, offset: int, extend_to: int | None = None) -> None:
        """Put the caret before the character at `offset`, counted in steps of the arrow key."""
        self.page.locator("[data-text]").focus()
        self.page.keyboard.press("Control+Home")
        for _ in range(offset):
            self.page.keyboard.press("ArrowRight")
        for _ in range((extend_to or offset) - offset):
            self.page.keyboard.press("Shift+ArrowRight")

    def select_by_keys(self, quote: str) -> None:
        at = self.text.index(quote)
        self.move_caret(at, at + len(quote))

    def press_keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    # questions

    def answer_question(self, question: str, value: str) -> None:
        field = self.page.locator(f"[data-question={question}]").first
        if field.locator("textarea, input.field").count():
            field.locator("textarea, input.field").fill(value)
        else:
            field.locator(f"label:has(input[value='{value}'])").click()

    def pick_antecedent(self, quote: str, nth: int = 1, part: str = "text") -> None:
        self.click_action("pick")
        self.select_quote(quote, nth, part)
        self.click_action("use")

    def click_finish(self) -> None:
        self.click_action("finish")

    def expect_last_page(self) -> None:
        """The last page, which thanks."""
        expect(self.page.get_by_role("heading", name="That was the last text")).to_be_visible(timeout=20_000)

    def expect_no_errors(self) -> None:
        """Nothing went wrong in the page."""
        assert self.errors == []


def _is_page_error(kind: str, text: str) -> bool:
    return kind == "error" and "Failed to load resource" not in text


def join_new_annotator(browser: Browser, server: Server, **options: object) -> BrowserAnnotator:
    """A person in a browser of their own."""
    page = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options)).new_page()  # type: ignore[arg-type]
    reader = BrowserAnnotator(page, server.open_link)
    reader.join()
    return reader
