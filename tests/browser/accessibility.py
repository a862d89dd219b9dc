"""What axe-core says about a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
_AT_REST = "() => Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => null)))"
_RUN = "() => axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"


def axe_violations(page: Page) -> list[str]:
    """What axe-core calls moderate, serious or critical."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed; make frontend installs it")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.emulate_media(reduced_motion="reduce")  # a colour half-way through a transition is nobody's choice
    page.evaluate(_AT_REST)
    found = page.evaluate(_RUN)
    grave = [each for each in found if each["impact"] in ("moderate", "serious", "critical")]
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes'][:3]]}" for each in grave]
