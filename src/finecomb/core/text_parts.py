"""The parts of a text that are judged one by one: its segments or, where it has none, every so many sentences."""

from __future__ import annotations

import numpy as np

from finecomb.core.records import Document, Segment
from finecomb.core.sentences import sentences
from finecomb.core.span import Offsets
from finecomb.core.tokens import group_into_windows


def text_parts(document: Document, size: int) -> tuple[Segment, ...]:
    """The parts of a document in text order; without segments, groups of `size` sentences.

    >>> text = "One. Two. Three. Four."
    >>> [text[part.start : part.end] for part in text_parts(Document(id="d", text=text), 3)]
    ['One. Two. Three.', 'Four.']
    """
    if document.segments:
        return document.segments
    groups = group_into_windows(sentences(document.text), size).tolist()
    return tuple(Segment(start=start, end=end) for start, end in groups)


def part_offsets(document: Document, size: int) -> Offsets:
    """Start and end of each of the document's parts, (parts, 2)."""
    edges = [(part.start, part.end) for part in text_parts(document, size)]
    return np.array(edges, dtype=np.int64).reshape(len(edges), 2)
