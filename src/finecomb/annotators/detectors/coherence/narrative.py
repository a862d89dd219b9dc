"""Texts as SNaC's detectors read them: sentence after sentence, each with what people marked in it."""

from __future__ import annotations

import bisect
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.sentences import sentences

LABELS = ("char", "scene", "ref", "incon")
"""The four coherence errors that the paper's models predict (section 5)."""
ANY_ERROR = "any"
"""Whether a sentence has any of the errors."""
WHOLE_SENTENCE = "scene"
"""The label whose span is always the whole sentence (section 5.1)."""

MAX_SENTENCE_LENGTH = 3000
"""Characters that a sentence may have."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """A stretch of a text with a label."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class NarrativeSentence:
    """One sentence of a text."""

    start: int
    end: int
    segment: int
    """Number of the segment that it begins in."""
    opens: bool
    """Whether it is the first of its segment."""
    spans: tuple[MarkedSpan, ...] = ()
    """What people marked, cut to the sentence."""

    @property
    def labels(self) -> frozenset[str]:
        """The labels of its spans."""
        return frozenset(span.label for span in self.spans)


@dataclass(frozen=True, slots=True)
class Narrative:
    """A text in sentences."""

    id: str
    text: str
    sentences: tuple[NarrativeSentence, ...]
    group: str = ""
    """Texts of one group, e.g. summaries of one book, are never split over training and test."""

    def sentence_text(self, at: int) -> str:
        """The sentence at `at`."""
        return self.text[self.sentences[at].start : self.sentences[at].end]

    def targets(self, labels: Sequence[str]) -> Bools:
        """(sentences, labels + 1): which label a sentence has, and in the last column whether it has any."""
        rows = [[*(label in sentence.labels for label in labels), bool(sentence.spans)] for sentence in self.sentences]
        return np.array(rows, dtype=bool).reshape(len(rows), len(labels) + 1)


def build_narrative(
    document: Document, marks: Iterable[Mark] = (), group: str = "", segments: bool = True
) -> Narrative:
    """A document in sentences; `segments=False` forgets where its segments begin."""
    spans = [MarkedSpan(span.start, span.end, mark.label or "") for mark in marks for span in mark.spans]
    starts = sorted(segment.start for segment in document.segments) if segments else []
    rows: list[NarrativeSentence] = []
    for start, end in _bounded_sentences(document.text):
        segment = max(bisect.bisect_right(starts, start) - 1, 0)
        opens = not rows or segment != rows[-1].segment
        rows.append(NarrativeSentence(start, end, segment, opens, _clip_spans(spans, start, end)))
    return Narrative(document.id, document.text, tuple(rows), group or document.id)


def _bounded_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Sentences; one that never ends is cut at a blank, since grammar costs more the longer it is."""
    for start, end in sentences(text).tolist():
        while end - start > MAX_SENTENCE_LENGTH:
            cut = max(text.rfind(" ", start, start + MAX_SENTENCE_LENGTH), start + MAX_SENTENCE_LENGTH // 2)
            yield start, cut
            start = cut + 1
        yield start, end


def _clip_spans(spans: Iterable[MarkedSpan], start: int, end: int) -> tuple[MarkedSpan, ...]:
    return tuple(
        MarkedSpan(max(span.start, start), min(span.end, end), span.label)
        for span in spans
        if span.start < end and span.end > start
    )


def build_narratives(
    documents: Iterable[Document],
    annotations: Iterable[Annotation],
    groups: Mapping[str, str] | None = None,
    segments: bool = True,
    labels: Sequence[str] = LABELS,
) -> list[Narrative]:
    """Every document that has a gold annotation, in the order of the documents; marks of other labels are left out."""
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
    """Positions of the texts to fit on, to choose thresholds on, and to test on."""

    train: tuple[int, ...]
    dev: tuple[int, ...]
    test: tuple[int, ...]


class GroupedText(typing.Protocol):
    """Anything that says which other texts it belongs with."""

    @property
    def group(self) -> str:
        """Texts of one group stay together."""
        ...


def splits(texts: Sequence[GroupedText], folds: int, dev_share: float, rng: np.random.Generator) -> list[TextSplit]:
    """As many splits as folds, every text once in a test; groups stay together; dev is a share of the rest's groups."""
    groups = list(dict.fromkeys(text.group for text in texts))
    order = [groups[at] for at in rng.permutation(len(groups))]
    parts = [set(order[fold::folds]) for fold in range(folds)]
    return [_split(texts, part, [group for group in order if group not in part], dev_share) for part in parts]


def dev_split(texts: Sequence[GroupedText], dev_share: float, rng: np.random.Generator) -> TextSplit:
    """All texts for fitting but a share of the groups for thresholds; nothing to test on."""
    groups = list(dict.fromkeys(text.group for text in texts))
    return _split(texts, set(), [groups[at] for at in rng.permutation(len(groups))], dev_share)


def _split(texts: Sequence[GroupedText], test: set[str], rest: Sequence[str], dev_share: float) -> TextSplit:
    dev = set(rest[: max(1, round(dev_share * len(rest)))]) if len(rest) > 1 else set()
    places = [
        tuple(at for at, text in enumerate(texts) if (text.group in test, text.group in dev) == wanted)
        for wanted in ((False, False), (False, True), (True, False))
    ]
    return TextSplit(*places)
