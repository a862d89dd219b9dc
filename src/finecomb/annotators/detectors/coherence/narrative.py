"""Texts for the SNaC detectors: sentences with the spans that annotators marked, and train, dev and test splits."""

from __future__ import annotations

import bisect
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.sentences import sentence_offsets

LABELS = ("char", "scene", "ref", "incon")
"""The four coherence error types that the paper's models predict (section 5)."""
ANY_ERROR_LABEL = "any"
"""Name of the score for any error."""
WHOLE_SENTENCE_LABEL = "scene"
"""The label whose span is always the whole sentence (section 5.1)."""

MAX_SENTENCE_LENGTH = 3000
"""Maximum length of a sentence in characters."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """A labelled span of a text."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class NarrativeSentence:
    """A sentence of a text."""

    start: int
    end: int
    segment: int
    """Index of the segment in which the sentence starts."""
    opens: bool
    """True for the first sentence of a segment."""
    spans: tuple[MarkedSpan, ...] = ()
    """Marked spans, clipped to the sentence."""

    @property
    def labels(self) -> frozenset[str]:
        """The labels of the marked spans."""
        return frozenset(span.label for span in self.spans)


@dataclass(frozen=True, slots=True)
class Narrative:
    """A text split into sentences."""

    id: str
    text: str
    sentences: tuple[NarrativeSentence, ...]
    group: str = ""
    """Group name. Texts of a group, such as summaries of one book, are never split between training and test."""

    def sentence_text(self, index: int) -> str:
        """Return the text of a sentence by index."""
        return self.text[self.sentences[index].start : self.sentences[index].end]

    def target_matrix(self, labels: Sequence[str]) -> Bools:
        """Return the targets, (sentences, labels + 1), with one column per label and a last one for any error."""
        rows = [[*(label in sentence.labels for label in labels), bool(sentence.spans)] for sentence in self.sentences]
        return np.array(rows, dtype=bool).reshape(len(rows), len(labels) + 1)


def build_narrative(
    document: Document, marks: Iterable[Mark] = (), group: str = "", segments: bool = True
) -> Narrative:
    """Split a document into sentences. With `segments=False`, segment boundaries are ignored."""
    spans = [MarkedSpan(span.start, span.end, mark.label or "") for mark in marks for span in mark.spans]
    starts = sorted(segment.start for segment in document.segments) if segments else []
    rows: list[NarrativeSentence] = []
    for start, end in _iter_bounded_sentences(document.text):
        segment = max(bisect.bisect_right(starts, start) - 1, 0)
        opens = not rows or segment != rows[-1].segment
        rows.append(
            NarrativeSentence(
                start,
                end,
                segment,
                opens,
                tuple(
                    MarkedSpan(max(span.start, start), min(span.end, end), span.label)
                    for span in spans
                    if span.start < end and span.end > start
                ),
            )
        )
    return Narrative(document.id, document.text, tuple(rows), group or document.id)


def _iter_bounded_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentences, splitting very long ones at a space because parsing time grows with their length."""
    for start, end in sentence_offsets(text).tolist():
        while end - start > MAX_SENTENCE_LENGTH:
            cut = max(text.rfind(" ", start, start + MAX_SENTENCE_LENGTH), start + MAX_SENTENCE_LENGTH // 2)
            yield start, cut
            start = cut + 1
        yield start, end


def build_narratives(
    documents: Iterable[Document],
    annotations: Iterable[Annotation],
    groups: Mapping[str, str] | None = None,
    segments: bool = True,
    labels: Sequence[str] = LABELS,
) -> list[Narrative]:
    """Build a narrative for each document with a gold annotation. Marks with labels outside `labels` are ignored."""
    marks: dict[str, list[Mark]] = {}
    for annotation in annotations:
        marks.setdefault(annotation.document, []).extend(mark for mark in annotation.marks if mark.label in labels)
    return [
        build_narrative(document, marks[document.id], (groups or {}).get(document.id, ""), segments)
        for document in documents
        if document.id in marks
    ]


@dataclass(frozen=True, slots=True)
class TextSplit:
    """Indices of the texts used for training, for thresholds (dev) and for testing."""

    train: tuple[int, ...]
    dev: tuple[int, ...]
    test: tuple[int, ...]


class HasSplitGroup(typing.Protocol):
    """A text that belongs to a group."""

    @property
    def group(self) -> str:
        """Name of the group, whose texts stay on one side of a split."""
        ...


def cross_validation_splits(
    texts: Sequence[HasSplitGroup], folds: int, dev_share: float, rng: np.random.Generator
) -> list[TextSplit]:
    """Split texts into folds so that each text is tested once.

    Groups stay together. A share `dev_share` of the groups outside the test fold forms the dev texts.
    """
    groups = list(dict.fromkeys(text.group for text in texts))
    order = [groups[index] for index in rng.permutation(len(groups))]
    parts = [set(order[fold::folds]) for fold in range(folds)]
    return [
        _build_text_split(texts, part, [group for group in order if group not in part], dev_share) for part in parts
    ]


def train_dev_split(texts: Sequence[HasSplitGroup], dev_share: float, rng: np.random.Generator) -> TextSplit:
    """Split texts into training and dev texts by group, without test texts."""
    groups = list(dict.fromkeys(text.group for text in texts))
    return _build_text_split(texts, set(), [groups[index] for index in rng.permutation(len(groups))], dev_share)


def _build_text_split(
    texts: Sequence[HasSplitGroup], test: set[str], other_groups: Sequence[str], dev_share: float
) -> TextSplit:
    dev = set(other_groups[: max(1, round(dev_share * len(other_groups)))]) if len(other_groups) > 1 else set()
    places = [
        tuple(index for index, text in enumerate(texts) if (text.group in test, text.group in dev) == wanted)
        for wanted in ((False, False), (False, True), (True, False))
    ]
    return TextSplit(*places)
