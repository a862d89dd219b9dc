"""Marking a long text in a real browser: time from key press to painted mark, long tasks and layout shifts.

The text has 5,000 words and 300 marks; 20 more are made by keyboard at each width. CPU time is that of the page's main
thread, because the clock is affected by other programs.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.live_server import CHROMIUM, CHROMIUM_ARGUMENTS, BrowserAnnotator, Server, serve_study
from tests.browser.onboarding_session import HttpSession
from tests.browser.studies import FERRY, make_document, marking_study
from tests.onboarding_client import next_step

from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions
from finecomb.core.study import Study

WORD_COUNT, EXISTING_MARK_COUNT, NEW_MARK_COUNT = 5_000, 300, 20
WINDOW_SIZES = ((1440, 900), (1280, 800), (1024, 768), (820, 1180), (768, 1024), (720, 1024))
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
class MarkingSample:
    """Measurements at one width while marks were made."""

    width: int
    paints: Sequence[float]
    """Milliseconds from each key press to its mark on the screen."""
    processor: Sequence[float]
    """Milliseconds of the page's main thread from each key press to its mark."""
    tasks: Sequence[float]
    """Milliseconds of each task longer than 50 ms."""
    text_shift: float
    """Sum of layout shifts in the text area without the caret; 0 if nothing moved."""
    other_shift: float
    """Sum of all other layout shifts."""


def make_long_study() -> Study:
    """Build a study with one text of 5,000 words."""
    sentences = (FERRY.split() * (WORD_COUNT // len(FERRY.split()) + 1))[:WORD_COUNT]
    paragraphs = [" ".join(sentences[start : start + 100]) for start in range(0, WORD_COUNT, 100)]
    return marking_study("scarecrow", make_document("d1", "\n\n".join(paragraphs)))


def make_marks(reader: BrowserAnnotator, server: Server) -> None:
    """Make 300 evenly spaced marks over HTTP."""
    with HttpSession(reader, server) as client:
        task: Any = next_step(client)["task"]
        words = task["text"]
        step = len(words) // EXISTING_MARK_COUNT
        for number in range(EXISTING_MARK_COUNT):
            start = words.index(" ", number * step) + 1
            end = words.index(" ", start)
            body = {"spans": [[start, end]], "quotes": [words[start:end]], "label": "incoherent"}
            code, answer = client.save(task["id"], f"marks/bench-{number}", {**body, "answers": {"severity": 1}})
            assert code == 200, answer


def open_cpu_session(page: Page) -> Any:
    """Open a session that measures the CPU time of the page's main thread."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def processor_ms(session: Any) -> float:
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def measure_width(page: Page, width: int, height: int) -> MarkingSample:
    """Mark 20 words by keyboard, one after another, in a window of this size."""
    page.set_viewport_size({"width": width, "height": height})
    page.reload()
    expect(page.locator("[data-text]")).to_be_visible(timeout=60_000)
    page.locator("[data-text]").focus()
    page.keyboard.press("Control+Home")
    page.evaluate(_WATCH)
    thread = open_cpu_session(page)
    spent = []
    for number in range(1, NEW_MARK_COUNT + 1):
        page.keyboard.press("Control+ArrowRight")
        page.keyboard.press("Control+Shift+ArrowRight")
        before = processor_ms(thread)
        page.keyboard.press("g")
        page.wait_for_function("n => seen.paints.length === n", arg=number)
        spent.append(processor_ms(thread) - before)
        page.keyboard.press("Escape")
    seen = page.evaluate("seen")
    for _ in range(NEW_MARK_COUNT):
        page.keyboard.press("Control+z")
    expect(page.locator("[data-state=saved]")).to_be_visible(timeout=60_000)
    shifts = {is_text: sum(value for value, own in seen["shifts"] if own is is_text) for is_text in (True, False)}
    return MarkingSample(width, seen["paints"], spent, seen["tasks"], shifts[True], shifts[False])


def measure_widths(browser: Browser) -> list[MarkingSample]:
    with tempfile.TemporaryDirectory() as folder, serve_study(make_long_study(), Path(folder) / "study") as server:
        reader = BrowserAnnotator(browser.new_context().new_page(), server.open_link)
        reader.join()
        make_marks(reader, server)
        return [measure_width(reader.page, width, height) for width, height in WINDOW_SIZES]


def format_row(taken: MarkingSample) -> list[str]:
    middle, least = statistics.median(taken.paints), min(taken.paints)
    longest = max(taken.tasks, default=0.0)
    tasks = f"{len(taken.tasks)}, at most {longest:.0f} ms" if taken.tasks else "none"
    times = [f"{middle:.0f} ms", f"{least:.0f} ms", f"{statistics.median(taken.processor):.0f} ms"]
    return [f"{taken.width} px", *times, tasks, f"{taken.text_shift:.3f}", f"{taken.other_shift:.3f}"]


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM or None, args=CHROMIUM_ARGUMENTS)
        samples = measure_widths(browser)
        browser.close()
    times = ["letter to mark, median", "least", "processor time"]
    head = ["width", *times, "tasks over 50 ms", "shift of the text", "shift beside it"]
    write_table(
        "performance.md",
        "marking",
        markdown_table(head, [format_row(taken) for taken in samples]),
        describe_conditions("playwright"),
    )
