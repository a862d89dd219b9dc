"""Parts of a text that are judged one by one: its segments or, without segments, groups of sentences."""

from __future__ import annotations

import numpy as np

from finecomb.core.records import Document, Segment
from finecomb.core.sentences import sentence_offsets
from finecomb.core.span import Offsets
from finecomb.core.tokens import group_into_windows


def text_parts(document: Document, size: int) -> tuple[Segment, ...]:
    """Return the parts of a document in text order: its segments or, without segments, groups of `size` sentences.

    >>> text = "One. Two. Three. Four."
    >>> [text[part.start : part.end] for part in text_parts(Document(id="d", text=text), 3)]
    ['One. Two. Three.', 'Four.']
    """
    if document.segments:
        return document.segments
    groups = group_into_windows(sentence_offsets(document.text), size).tolist()
    return tuple(Segment(start=start, end=end) for start, end in groups)


def part_offsets(document: Document, size: int) -> Offsets:
    """Return the start and end of each part of a document, (parts, 2)."""
    edges = [(part.start, part.end) for part in text_parts(document, size)]
    return np.array(edges, dtype=np.int64).reshape(len(edges), 2)
