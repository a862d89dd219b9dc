"""Section markers for models that generate whole articles: adding them to texts and parsing them.

A section begins with a line that contains the marker and, if the model sees titles, its title (Deng et al. 2022,
section 4, compare both). Parsing removes markers and titles from the text and stores them as segments.
"""

from __future__ import annotations

from typing import Literal

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Segment

TitleMode = Literal["with-titles", "without-titles"]
SECTION_MARKER = "<|section|>"
_SECTION_SEPARATOR = "\n\n"


def add_section_markers(document: Document, titles: TitleMode) -> str:
    """Return the text of a document with a marker before each segment; raise an error if it has no segments."""
    if not document.segments:
        raise FinecombError(f"document {document.id!r} has no sections; add segments with start, end and title")
    lines = []
    for segment in document.segments:
        title = f" {segment.title.strip()}" if titles == "with-titles" and segment.title.strip() else ""
        lines.append(f"{SECTION_MARKER}{title}\n{document.text[segment.start : segment.end].strip()}")
    return "\n".join(lines)


def parse_section_markers(document: Document) -> Document:
    """Return the document with markers and titles removed from its text, and one segment per section.

    Text before the first marker becomes a section without a title. Empty sections are omitted.
    """
    first, *later_parts = document.text.split(SECTION_MARKER)
    sections = [("", first), *(part.partition("\n")[::2] for part in later_parts)]  # the title is on the marker's line
    text, segments = "", []
    for title, body in ((title.strip(), body.strip()) for title, body in sections):
        if not body:
            continue
        text += _SECTION_SEPARATOR if text else ""
        segments.append(Segment(start=len(text), end=len(text) + len(body), title=title))
        text += body
    return document.model_copy(update={"text": text, "segments": tuple(segments)})
