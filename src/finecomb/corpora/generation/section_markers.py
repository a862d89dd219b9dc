"""Long texts with their sections marked, for models that write whole articles; and the sections read back.

A section begins with a line that holds the marker, and its title where titles are shown to the model (Deng et al. 2022,
section 4, compare the two). When a text is read back, markers and titles leave the text and become its segments.
"""

from __future__ import annotations

from typing import Literal

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Segment

TitleMode = Literal["with-titles", "without-titles"]
MARKER = "<|section|>"
_SECTION_SEPARATOR = "\n\n"


def add_section_markers(document: Document, titles: TitleMode) -> str:
    """A document's text with a marker before every segment; an error where it has no segments."""
    if not document.segments:
        raise FinecombError(f"document {document.id!r}: has no sections; give its segments with start, end and title")
    lines = []
    for segment in document.segments:
        title = f" {segment.title.strip()}" if titles == "with-titles" and segment.title.strip() else ""
        lines.append(f"{MARKER}{title}\n{document.text[segment.start : segment.end].strip()}")
    return "\n".join(lines)


def parse_section_markers(document: Document) -> Document:
    """The document with markers and titles taken out of its text, and a segment for every section.

    What stands before the first marker is a section without a title. Sections without words are left out.
    """
    first, *rest = document.text.split(MARKER)
    sections = [("", first.strip()), *(_split_title(part) for part in rest)]
    text, segments = "", []
    for title, body in sections:
        if not body:
            continue
        text += _SECTION_SEPARATOR if text else ""
        segments.append(Segment(start=len(text), end=len(text) + len(body), title=title))
        text += body
    return document.model_copy(update={"text": text, "segments": tuple(segments)})


def _split_title(part: str) -> tuple[str, str]:
    """The rest of the marker's own line, and what follows it."""
    title, _, body = part.partition("\n")
    return title.strip(), body.strip()
