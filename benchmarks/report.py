"""The report of a study of Scarecrow's size: processor time to write it, its size, how soon it is seen and searched.

First paint is that of Chromium without a window, from disk, the median of several visits; searching and filtering are
from the key or click to the next frame that is drawn. Skipped, visibly, where there is no Chromium.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._corpus import corpus
from finecomb.core.study import Study
from finecomb.report.site.content import source
from finecomb.report.site.folder import write_report

MOST_SECONDS, MOST_MEGABYTES, MOST_PAINT, MOST_WAIT = 20.0, 30.0, 2000.0, 100.0  # s, MB, ms, ms
VISITS = 5
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
    study = Study.from_items(corpus())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "report"
        before = time.process_time()
        content = write_report(source(study, "benchmark"), folder, "today")
        spent = time.process_time() - before
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
        print(f"{content.counts}")
        _say("processor time to write it", spent, "s", MOST_SECONDS)
        _say("size", size, "MB", MOST_MEGABYTES)
        _read(folder)


def _read(folder: Path) -> None:
    """What a reader waits for in a browser."""
    chromium = os.environ.get("FINECOMB_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        print("  no Chromium: paint, search and filter were not measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name in ("index.html", "texts.html", "texts/1.html"):
            _say(f"first paint of {name}", statistics.median(_paint(browser, folder / name)), "ms", MOST_PAINT)
        page = browser.new_page()
        page.goto((folder / "texts.html").as_uri())
        page.locator("#find").focus()
        _say(
            "slowest search of all texts",
            _slowest(page, SEARCH, ("f", "ferry", "", "no such word", "")),
            "ms",
            MOST_WAIT,
        )
        page.goto((folder / "texts/1.html").as_uri())
        _say("slowest filter of a text's marks", _slowest(page, FILTER, (0, 1, 12)), "ms", MOST_WAIT)
        browser.close()


def _slowest(page: Any, script: str, values: Sequence[object]) -> float:
    """The longest of several actions in turn, each the median of many rounds."""
    rounds = [[float(page.evaluate(script, value)) for value in values] for _ in range(2 * VISITS)]
    medians: list[float] = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return max(medians)


def _paint(browser: Any, file: Path) -> list[float]:
    times = []
    for _ in range(VISITS):
        page = browser.new_page()
        page.goto(file.as_uri())
        page.wait_for_function(PAINT)
        times.append(float(page.evaluate(PAINT)))
        page.close()
    return times


def _say(what: str, value: float, unit: str, most: float) -> None:
    print(f"  {what}: {value:.1f} {unit}, {'within' if value < most else 'OVER'} {most:g} {unit}")
