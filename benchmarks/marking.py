"""Marking a long text in a real browser: from a letter to the painted mark, long tasks, and what moves.

A text of 5,000 words in which somebody has made 300 marks already; 20 more are made by keys at each width. Processor
time is that of the page's main thread, since the clock also runs while other programs do.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.arrival import Session
from tests.browser.served import CHROMIUM, QUIET, Reader, Server, serving
from tests.browser.studies import FERRY, study_of, text
from tests.walking import ahead

from benchmarks._docs import markdown, write_table
from benchmarks._ratios import conditions
from finecomb.core.study import Study

WORDS, MARKS, MADE = 5_000, 300, 20
WIDTHS = ((1440, 900), (1280, 800), (1024, 768), (820, 1180), (768, 1024), (720, 1024))
_WATCH = """() => {
  window.seen = { tasks: [], shifts: [], paints: [] };
  const watch = (type, keep) => new PerformanceObserver((list) => list.getEntries().forEach(keep)).observe({ type });
  watch("longtask", (entry) => seen.tasks.push(entry.duration));
  watch("layout-shift", (entry) => {
    const isThing = (node) => node?.parentElement && !node.matches?.(".caret");
    const moved = entry.sources.map(({ node }) => node).filter(isThing);
    if (moved.length > 0) seen.shifts.push([entry.value, moved.some((node) => node.parentElement.closest(".stage"))]);
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "g") return;
    const before = document.querySelectorAll(".txt [data-flag=GU]").length;
    requestAnimationFrame(() => setTimeout(() => {
      const isDrawn = document.querySelectorAll(".txt [data-flag=GU]").length > before;
      seen.paints.push(isDrawn ? performance.now() - event.timeStamp : NaN);
    }));
  }, true);
}"""


@dataclass(frozen=True)
class Sample:
    """What was seen at one width while marks were made."""

    width: int
    paints: Sequence[float]
    """Milliseconds from each letter to its mark on the screen."""
    processor: Sequence[float]
    """Milliseconds of the page's main thread from each letter to its mark."""
    tasks: Sequence[float]
    """Milliseconds of every task longer than 50."""
    text_shift: float
    """The sum of layout shifts in the area of the text, without the caret; 0 where nothing moved."""
    other_shift: float
    """The sum of all other layout shifts."""


def long_study() -> Study:
    """One text of 5,000 words."""
    sentences = (FERRY.split() * (WORDS // len(FERRY.split()) + 1))[:WORDS]
    paragraphs = [" ".join(sentences[start : start + 100]) for start in range(0, WORDS, 100)]
    return study_of("scarecrow", text("d1", "\n\n".join(paragraphs)))


def make_marks(reader: Reader, server: Server) -> None:
    """300 marks over HTTP, evenly spread."""
    with Session(reader, server) as client:
        task: Any = ahead(client)["task"]
        words = task["text"]
        step = len(words) // MARKS
        for number in range(MARKS):
            start = words.index(" ", number * step) + 1
            end = words.index(" ", start)
            body = {"spans": [[start, end]], "quotes": [words[start:end]], "label": "incoherent"}
            code, answer = client.save(task["id"], f"marks/bench-{number}", {**body, "answers": {"severity": 1}})
            assert code == 200, answer


def main_thread(page: Page) -> Any:
    """A session that counts the processor time of the page's main thread."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def processor_ms(session: Any) -> float:
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def sample(page: Page, width: int, height: int) -> Sample:
    """Mark 20 words by keys, one after another, in a window of that size."""
    page.set_viewport_size({"width": width, "height": height})
    page.reload()
    expect(page.locator("[data-text]")).to_be_visible(timeout=60_000)
    page.locator("[data-text]").focus()
    page.keyboard.press("Control+Home")
    page.evaluate(_WATCH)
    thread = main_thread(page)
    spent = []
    for number in range(1, MADE + 1):
        page.keyboard.press("Control+ArrowRight")
        page.keyboard.press("Control+Shift+ArrowRight")
        before = processor_ms(thread)
        page.keyboard.press("g")
        page.wait_for_function("n => seen.paints.length === n", arg=number)
        spent.append(processor_ms(thread) - before)
        page.keyboard.press("Escape")
    seen = page.evaluate("seen")
    for _ in range(MADE):
        page.keyboard.press("Control+z")
    expect(page.locator("[data-state=saved]")).to_be_visible(timeout=60_000)
    shifts = {is_text: sum(value for value, own in seen["shifts"] if own is is_text) for is_text in (True, False)}
    return Sample(width, seen["paints"], spent, seen["tasks"], shifts[True], shifts[False])


def measure(browser: Browser) -> list[Sample]:
    with tempfile.TemporaryDirectory() as folder, serving(long_study(), Path(folder) / "study") as server:
        reader = Reader(browser.new_context().new_page(), server.open_link)
        reader.join()
        make_marks(reader, server)
        return [sample(reader.page, width, height) for width, height in WIDTHS]


def row(taken: Sample) -> list[str]:
    middle, least = statistics.median(taken.paints), min(taken.paints)
    longest = max(taken.tasks, default=0.0)
    tasks = f"{len(taken.tasks)}, at most {longest:.0f} ms" if taken.tasks else "none"
    times = [f"{middle:.0f} ms", f"{least:.0f} ms", f"{statistics.median(taken.processor):.0f} ms"]
    return [f"{taken.width} px", *times, tasks, f"{taken.text_shift:.3f}", f"{taken.other_shift:.3f}"]


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM or None, args=QUIET)
        samples = measure(browser)
        browser.close()
    times = ["letter to mark, median", "least", "processor time"]
    head = ["width", *times, "tasks over 50 ms", "shift of the text", "shift beside it"]
    write_table(
        "performance.md", "marking", markdown(head, [row(taken) for taken in samples]), conditions("playwright")
    )
