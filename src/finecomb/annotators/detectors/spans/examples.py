"""Training examples of the span classifier: marked spans, and three unmarked spans of the same length for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.records import Annotation, Document
from finecomb.core.span import TEXT_PART
from finecomb.core.tokens import word_offsets

Ints = NDArray[np.int64]
NEGATIVES_PER_SPAN = 3
"""Number of unmarked spans per marked span (Scarecrow, section 6)."""
_MAX_SAMPLING_TRIES = 20


@dataclass(frozen=True, slots=True)
class WordSpan:
    """Words `first` to `last`, inclusive, with the index of their class. Class 0 means no error."""

    first: int
    last: int
    label: int


@dataclass(frozen=True, slots=True)
class SpanText:
    """A text in words with its marked spans."""

    id: str
    text: str
    offsets: Ints
    """Start and end of each word, (words, 2)."""
    spans: tuple[WordSpan, ...]
    """Distinct marked spans in text order."""
    group: str = ""


def build_span_text(
    document: Document, annotations: Sequence[Annotation], labels: Sequence[str], group: str = ""
) -> SpanText:
    """Build a text with the spans that any annotation marks with one of the labels, extended to whole words."""
    offsets = word_offsets(document.text)
    numbers = {label: index + 1 for index, label in enumerate(labels)}
    spans: set[WordSpan] = set()
    for mark in (mark for annotation in annotations for mark in annotation.marks):
        for span in mark.spans if mark.label in numbers else ():
            first = int(np.searchsorted(offsets[:, 1], span.start, side="right"))
            last = int(np.searchsorted(offsets[:, 0], span.end, side="left")) - 1
            # The last word precedes the first if the span overlaps no word.
            if span.part == TEXT_PART and first <= last:
                spans.add(WordSpan(first, last, numbers[mark.label or ""]))
    kept = sorted(spans, key=lambda span: (span.first, span.last, span.label))
    return SpanText(document.id, document.text, offsets, tuple(kept), group or document.id)


def sample_training_spans(text: SpanText, max_words: int, rng: np.random.Generator) -> list[WordSpan]:
    """Return the marked spans of at most `max_words` words, with three unmarked spans of the same length for each."""
    marked = [span for span in text.spans if span.last - span.first < max_words]
    taken = {(span.first, span.last) for span in text.spans}
    unmarked = []
    for span in (span for span in marked for _ in range(NEGATIVES_PER_SPAN)):
        extra = span.last - span.first
        for _ in range(_MAX_SAMPLING_TRIES):
            first = int(rng.integers(0, len(text.offsets) - extra))
            if (first, first + extra) not in taken:
                unmarked.append(WordSpan(first, first + extra, 0))
                break
    return marked + unmarked


def word_label_matrix(text: SpanText, labels: int) -> NDArray[np.bool_]:
    """Return which words the marks of each label cover, (words, labels)."""
    truth = np.zeros((len(text.offsets), labels), dtype=bool)
    for span in text.spans:
        truth[span.first : span.last + 1, span.label - 1] = True
    return truth
