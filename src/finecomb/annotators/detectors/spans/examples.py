"""Spans to learn from: those that people marked, and three unmarked ones of the same length for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.records import Annotation, Document
from finecomb.core.span import TEXT
from finecomb.core.tokens import words

Ints = NDArray[np.int64]
NEGATIVES_PER_SPAN = 3
"""Unmarked spans for every marked one (Scarecrow, section 6)."""
_MAX_SAMPLING_TRIES = 20


@dataclass(frozen=True, slots=True)
class WordSpan:
    """Words `first` to `last`, both included, with the number of their class; 0 is no error."""

    first: int
    last: int
    label: int


@dataclass(frozen=True, slots=True)
class SpanText:
    """A text in words with its marked spans."""

    id: str
    text: str
    offsets: Ints
    """(words, 2)"""
    spans: tuple[WordSpan, ...]
    """Each once."""
    group: str = ""


def span_text(
    document: Document, annotations: Sequence[Annotation], labels: Sequence[str], group: str = ""
) -> SpanText:
    """A document and what anybody marked in it with one of the labels, widened to whole words."""
    offsets = words(document.text)
    numbers = {label: at + 1 for at, label in enumerate(labels)}
    spans = {
        WordSpan(*_covered_words(offsets, span.start, span.end), numbers[mark.label])
        for annotation in annotations
        for mark in annotation.marks
        for span in mark.spans
        if mark.label in numbers and span.part == TEXT
    }
    kept = tuple(
        sorted(
            (span for span in spans if span.first <= span.last), key=lambda span: (span.first, span.last, span.label)
        )
    )
    return SpanText(document.id, document.text, offsets, kept, group or document.id)


def _covered_words(offsets: Ints, start: int, end: int) -> tuple[int, int]:
    """The first and the last word that a stretch of text touches; the last before the first where it touches none."""
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    return first, int(np.searchsorted(offsets[:, 0], end, side="left")) - 1


def training_spans(text: SpanText, max_words: int, rng: np.random.Generator) -> list[WordSpan]:
    """Marked spans that are short enough, and for each three of its length that nobody marked."""
    marked = [span for span in text.spans if span.last - span.first < max_words]
    taken = {(span.first, span.last) for span in text.spans}
    return [*marked, *(negative for span in marked for negative in _sample_unmarked_spans(text, span, taken, rng))]


def _sample_unmarked_spans(
    text: SpanText, span: WordSpan, taken: set[tuple[int, int]], rng: np.random.Generator
) -> Iterator[WordSpan]:
    extra = span.last - span.first
    for _ in range(NEGATIVES_PER_SPAN):
        for _ in range(_MAX_SAMPLING_TRIES):
            first = int(rng.integers(0, len(text.offsets) - extra))
            if (first, first + extra) not in taken:
                yield WordSpan(first, first + extra, 0)
                break


def word_truth(text: SpanText, labels: int) -> NDArray[np.bool_]:
    """(words, labels): which words a mark of each label covers."""
    truth = np.zeros((len(text.offsets), labels), dtype=bool)
    for span in text.spans:
        truth[span.first : span.last + 1, span.label - 1] = True
    return truth
