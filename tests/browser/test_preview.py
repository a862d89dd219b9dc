"""`finecomb preview FILE`: phone and tablet beside the YAML, anew whenever the file is saved."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.live_server import free_port

pytestmark = pytest.mark.long

PROTOCOL = """
name: slips
version: "1"
title: Slips in reports
summary: Finds wrong names.
labels:
  - name: name
    title: Wrong name
    gloss: Somebody is called by a wrong name.
    examples:
      - text: Dana Okafor had 27 points.
        marks: [{quote: Dana Okafor, label: name}]
"""


def test_a_protocol_is_shown_on_phone_and_tablet_as_it_is_saved(browser: Browser, tmp_path: Path) -> None:
    file, port = tmp_path / "slips.yaml", free_port()
    file.write_text(PROTOCOL)
    command = [str(Path(sys.executable).with_name("finecomb")), "preview", str(file), "--port", str(port)]
    process = subprocess.Popen([*command, "--skip", "consent,instructions"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline() + process.stdout.readline()
        assert f":{port}/preview" in said
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(f"http://127.0.0.1:{port}/preview")
        expect(page.locator("#yaml")).to_contain_text("title: Wrong name", timeout=20_000)
        for name in ("On a phone", "On a tablet"):
            frame = page.frame_locator(f"iframe[title='{name}']")
            frame.locator("[data-action=start]").click(timeout=20_000)
            expect(frame.locator("[data-text]")).to_contain_text("Dana Okafor", timeout=20_000)
        tablet = page.frame_locator("iframe[title='On a tablet']")
        expect(tablet.locator("[data-label=name]").first).to_contain_text("Wrong name")
        file.write_text(PROTOCOL.replace("labels:", "lables:"))
        expect(page.locator("#said.wrong")).to_contain_text("lables", timeout=20_000)
        expect(page.locator("html")).to_have_attribute("data-version", "1")
        file.write_text(PROTOCOL.replace("title: Wrong name", "title: False name"))
        expect(page.locator("html[data-version='2']")).to_be_attached(timeout=20_000)
        tablet.locator("[data-action=start]").click(timeout=20_000)
        expect(tablet.locator("[data-label=name]").first).to_contain_text("False name", timeout=20_000)
    finally:
        process.terminate()
        process.communicate(timeout=30)
