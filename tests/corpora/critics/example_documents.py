"""Small documents with sections."""

from __future__ import annotations

from collections.abc import Sequence

from finecomb.core.records import Document, Segment


def make_sectioned_document(id: str, sections: Sequence[tuple[str, str]], **meta: str) -> Document:
    """A document of (title, text) sections, a blank line between them."""
    start, segments = 0, []
    for title, text in sections:
        segments.append(Segment(start=start, end=start + len(text), title=title))
        start += len(text) + 2
    return Document(id=id, text="\n\n".join(text for _, text in sections), segments=tuple(segments), meta=meta)


def make_titled_document(id: str, titles: Sequence[str]) -> Document:
    """A document of which only the order of titles matters."""
    return make_sectioned_document(id, [(title, f"words of {title}") for title in titles])
