"""Messages of errors: the pages translate those that they know word for word."""

from __future__ import annotations

import re
from pathlib import Path

from finecomb.server.error_responses import MESSAGE_BY_CODE

CATALOGUE = Path(__file__).parents[2] / "frontend" / "src" / "lib" / "catalogue" / "annotators.en.ts"


def test_the_catalogue_of_the_pages_has_every_message_word_for_word() -> None:
    """A page shows the translation only where its English text equals what the server sent."""
    text = CATALOGUE.read_text(encoding="utf-8")
    listed = dict(re.findall(r'"problem\.([\w-]+)":\s*"((?:[^"\\]|\\.)*)"', text))
    assert {code: listed.get(code) for code in MESSAGE_BY_CODE} == MESSAGE_BY_CODE
