"""Report of a study of Scarecrow's size: CPU time, file size, first paint, search and filter.

First paint is measured in headless Chromium from disk, as the median of several visits. Search and filter are timed
from the key press or click to the next drawn frame. Without Chromium, these are reported as not measured.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks._corpus import simulate_corpus
from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions
from finecomb.core.study import Study
from finecomb.reporting.site.report_content import build_report_source
from finecomb.reporting.site.report_folder import write_report

MAX_SECONDS, MAX_MEGABYTES, MAX_PAINT_MS, MAX_WAIT_MS = 20.0, 30.0, 2000.0, 100.0  # s, MB, ms, ms
VISIT_COUNT = 5
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
FRAME = "await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
SEARCH = f"""async (words) => {{
  const field = document.getElementById("find"), start = performance.now();
  field.value = words;
  field.dispatchEvent(new Event("input"));
  {FRAME}
  return performance.now() - start;
}}"""
FILTER = f"""async (number) => {{
  const start = performance.now();
  document.querySelectorAll(".rail input")[number].click();
  {FRAME}
  return performance.now() - start;
}}"""


def main() -> None:
    study = Study.from_items(simulate_corpus())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "report"
        before = time.process_time()
        write_report(build_report_source(study, "benchmark"), folder, "today")
        spent = time.process_time() - before
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
        written = [
            _format_row("processor time to write it", spent, "s", MAX_SECONDS),
            _format_row("size", size, "MB", MAX_MEGABYTES),
        ]
        rows = [*written, *_measure_in_browser(folder)]
    write_table(
        "performance.md",
        "report",
        markdown_table(("what", "measured", "our limit"), rows),
        describe_conditions("playwright"),
    )


def _measure_in_browser(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Measure first paint, search and filter in a browser."""
    chromium = os.environ.get("FINECOMB_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        print("  Chromium not found: first paint, search and filter were not measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        pages = {"the first page": "index.html", "the list of texts": "texts.html", "one text": "texts/1.html"}
        for title, name in pages.items():
            yield _format_row(
                f"first paint of {title}", statistics.median(_paint_times(browser, folder / name)), "ms", MAX_PAINT_MS
            )
        page = browser.new_page()
        page.goto((folder / "texts.html").as_uri())
        page.locator("#find").focus()
        slowest = _slowest_median(page, SEARCH, ("f", "ferry", "", "no such word", ""))
        yield _format_row("searching all texts, slowest of five searches", slowest, "ms", MAX_WAIT_MS)
        page.goto((folder / "texts/1.html").as_uri())
        slowest = _slowest_median(page, FILTER, (0, 1, 12))
        yield _format_row("hiding a label or a reader, slowest of three", slowest, "ms", MAX_WAIT_MS)
        browser.close()


def _slowest_median(page: Any, script: str, values: Sequence[object]) -> float:
    """Return the slowest of several actions, each as the median of many rounds."""
    rounds = [[float(page.evaluate(script, value)) for value in values] for _ in range(2 * VISIT_COUNT)]
    medians: list[float] = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return max(medians)


def _paint_times(browser: Any, file: Path) -> list[float]:
    times = []
    for _ in range(VISIT_COUNT):
        page = browser.new_page()
        page.goto(file.as_uri())
        page.wait_for_function(PAINT)
        times.append(float(page.evaluate(PAINT)))
        page.close()
    return times


def _format_row(what: str, value: float, unit: str, limit: float) -> tuple[str, str, str]:
    return what, f"{value:.1f} {unit}" if unit != "ms" else f"{value:.0f} ms", f"{limit:g} {unit}"
