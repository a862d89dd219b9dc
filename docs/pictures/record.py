"""Record the moving picture of the README: a mark being made on the real annotation page, in headless Chromium.

`python docs/pictures/record.py` writes `mark.webp`, which moves, and `mark.png`, a still for readers who prefer reduced
motion. It needs Chromium, Playwright and Pillow (`pip install pillow`) and runs from the root of the checkout.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.browser.live_server import CHROMIUM, CHROMIUM_ARGUMENTS, FIND, BrowserAnnotator, serve_study  # noqa: E402
from tests.browser.studies import marking_study  # noqa: E402

import finecomb as fc  # noqa: E402
from finecomb.core.records import Document  # noqa: E402

SIZE = {"width": 1440, "height": 780}
WIDTH = 1200
"""Width of the pictures in pixels."""
QUOTE = "let the passengers walk the rest of the way"
EXPLANATION = "Nobody can walk on water."
MAX_BYTES = 1_500_000


class Recording:
    """Screenshots of a page with the time that each is shown; the pointer is drawn, since screenshots omit it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pointer: tuple[float, float] | None = None
        self.frames: list[Image.Image] = []
        self.milliseconds: list[int] = []

    def take(self, milliseconds: int) -> None:
        """Take a screenshot that is shown for this time."""
        frame = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        if self.pointer is not None:
            x, y = self.pointer
            arrow = [
                (x, y),
                (x, y + 17),
                (x + 4, y + 13),
                (x + 8, y + 20),
                (x + 11, y + 18),
                (x + 7, y + 12),
                (x + 12, y + 12),
            ]
            ImageDraw.Draw(frame).polygon(arrow, fill="black", outline="white")
        height = round(frame.height * WIDTH / frame.width)
        self.frames.append(frame.resize((WIDTH, height), Image.Resampling.LANCZOS))
        self.milliseconds.append(milliseconds)

    def move(self, x: float, y: float) -> None:
        """Move the pointer."""
        self.page.mouse.move(x, y)
        self.pointer = (x, y)

    def drag(self, corners: tuple[float, float, float, float], steps: int) -> None:
        """Select from the first character of a quote to its last, with a frame for each step."""
        left, top, right, bottom = corners
        self.move(left + 1, top)
        self.take(500)
        self.page.mouse.down()
        for step in range(1, steps + 1):
            share = step / steps
            self.move(left + 1 + (right - left - 2) * share, top if share < 0.5 else bottom)
            self.take(90)
        self.page.mouse.up()
        self.take(700)


def mark_an_error(annotator: BrowserAnnotator) -> Recording:
    """Make one mark: select words, press the key of a label, answer its questions."""
    recording = Recording(annotator.page)
    recording.take(900)
    recording.drag(annotator.page.evaluate(FIND, ["text", QUOTE, 1]), steps=9)
    annotator.press_keys("c")
    recording.take(900)
    annotator.answer_question("severity", "3")
    recording.take(700)
    field = annotator.page.locator("[data-question=explanation]").first.locator("textarea, input.field")
    field.click()
    recording.pointer = None
    for start in range(0, len(EXPLANATION), 3):
        field.press_sequentially(EXPLANATION[start : start + 3])
        recording.take(110)
    annotator.wait_until_saved()
    recording.take(2600)
    return recording


def demo_text(id: str) -> Document:
    """Return a text of the demo study without the name of its system."""
    document = fc.demo().document(id)
    return document.model_copy(update={"meta": {}})


def main() -> None:
    """Record the page and write both pictures."""
    options: dict[str, Any] = {"viewport": SIZE, "color_scheme": "light", "reduced_motion": "reduce"}
    study = marking_study("scarecrow", demo_text("harbour-c"))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM or None, args=CHROMIUM_ARGUMENTS)
        with serve_study(study, Path(folder) / "study") as server:
            annotator = BrowserAnnotator(browser.new_context(**options).new_page(), server.open_link)
            annotator.join()
            recording = mark_an_error(annotator)
        browser.close()
    moving, still = FOLDER / "mark.webp", FOLDER / "mark.png"
    first, *rest = recording.frames
    first.save(
        moving, save_all=True, append_images=rest, duration=recording.milliseconds, loop=0, lossless=True, method=6
    )
    recording.frames[-1].save(still, optimize=True)
    if (size := moving.stat().st_size) > MAX_BYTES:
        raise SystemExit(f"{moving}: {size:,} bytes; the limit is {MAX_BYTES:,}")
    print(
        f"{moving.name}: {len(recording.frames)} frames, {size:,} bytes; {still.name}: {still.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
