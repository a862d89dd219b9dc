"""Annotations from sentence scores: one unit with probabilities per sentence, and marks above the threshold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import (
    ANY_ERROR_LABEL,
    WHOLE_SENTENCE_LABEL,
    Narrative,
    NarrativeSentence,
    build_narrative,
)
from finecomb.annotators.detectors.coherence.sentence_scores import SentenceScorer, TextScores
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark, Unit
from finecomb.core.span import Span

_MULTI_SPAN_LABEL = "char"
NO_TYPE_VOTE = "no type"
"""Label vote of a mark by a detector that does not predict labels."""
_WORD = re.compile(r"\w")


class SentenceDetector:
    """A detector based on sentence scores, which are stored so that another threshold can be applied later."""

    def __init__(
        self,
        name: str,
        protocol: Protocol,
        scorer: SentenceScorer,
        labels: Sequence[str],
        thresholds: Mapping[str, float],
        signature: str,
        *,
        fitted_texts: Sequence[str] = (),
        segments: bool = True,
    ) -> None:
        self.name, self.protocol, self.scorer = name, protocol, scorer
        self.labels, self.thresholds, self.segments = tuple(labels), dict(thresholds), segments
        self.signature, self.fitted_texts = signature, tuple(fitted_texts)

    def __call__(self, document: Document) -> Annotation:
        """Annotate one document."""
        return next(self.annotations([document]))

    def annotations(self, documents: Sequence[Document]) -> Iterator[Annotation]:
        """Yield the annotations of several documents."""
        texts = [build_narrative(document, segments=self.segments) for document in documents]
        for text, scores in zip(texts, self.scorer(texts), strict=True):
            yield self._build_annotation(text, scores)

    def _build_annotation(self, text: Narrative, scores: TextScores) -> Annotation:
        columns = [*self.labels, ANY_ERROR_LABEL]
        units = tuple(
            Unit(
                start=sentence.start,
                end=sentence.end,
                scores={name: round(float(value), 4) for name, value in zip(columns, row, strict=True)},
            )
            for sentence, row in zip(text.sentences, scores.sentences, strict=True)
        )
        marked = [
            (span, label, float(row[index]))
            for sentence, row in zip(text.sentences, scores.sentences, strict=True)
            for index, label in enumerate(self.labels or [ANY_ERROR_LABEL])
            if row[index] >= self.thresholds[label]
            for span in find_error_spans(text, sentence, scores, label, index)
        ]
        marks = tuple(
            Mark(
                id=f"{text.id}/{self.name}/{number}",
                spans=(Span(*span),),
                quotes=(text.text[slice(*span)],),
                label=None if label == ANY_ERROR_LABEL else label,
                label_votes={NO_TYPE_VOTE: 1} if label == ANY_ERROR_LABEL else None,
                confidence=round(chance, 4),
            )
            for number, (span, label, chance) in enumerate(marked, 1)
        )
        return Annotation(
            id=f"{text.id}/{self.name}",
            document=text.id,
            annotator=self.name,
            protocol=self.protocol.id,
            marks=marks,
            units=units,
        )


def find_error_spans(
    text: Narrative, sentence: NarrativeSentence, scores: TextScores, label: str, column: int
) -> list[tuple[int, int]]:
    """Return the spans of an error in a sentence: its highest-scoring tokens, or otherwise the whole sentence."""
    first_token = int(np.searchsorted(scores.offsets[:, 0], sentence.start, side="left"))
    inside = slice(first_token, int(np.searchsorted(scores.offsets[:, 1], sentence.end, side="right")))
    if label in (ANY_ERROR_LABEL, WHOLE_SENTENCE_LABEL) or inside.start >= inside.stop:
        return [(sentence.start, sentence.end)]
    chances, offsets = scores.tokens[inside, column], scores.offsets[inside]
    if not chances.any():
        return [(sentence.start, sentence.end)]
    high = chances >= 0.5 * chances.max()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], high.astype(int), [0]])))
    runs: list[tuple[int, int]] = []
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if runs and first - runs[-1][1] <= 1:  # runs with one token between them are joined
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    best = max(runs, key=lambda run: chances[run[0] : run[1]].max())
    chosen = [run for run in runs if label == _MULTI_SPAN_LABEL or run == best]
    widened = [_extend_to_words(text.text, int(offsets[first, 0]), int(offsets[last - 1, 1])) for first, last in chosen]
    return list(dict.fromkeys(widened))


def _extend_to_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and _WORD.match(text[start - 1]) and _WORD.match(text[start]):
        start -= 1
    while end < len(text) and _WORD.match(text[end]) and _WORD.match(text[end - 1]):
        end += 1
    return start, end
