"""From scores to an annotation: every sentence a unit with its chances, every sentence over the threshold a mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import (
    ANY_ERROR,
    WHOLE_SENTENCE,
    Narrative,
    NarrativeSentence,
    build_narrative,
)
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, SentenceScorer, TextScores
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark, Unit
from finecomb.core.span import Span

_MULTI_SPAN_LABEL = "char"
NO_TYPE = "no type"
"""What a mark of a detector that knows no types votes for."""
_WORD = re.compile(r"\w")


class SentenceDetector:
    """A scorer of sentences as a detector; its scores let any threshold be chosen later."""

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
        """One text."""
        return next(self.annotations([document]))

    def annotations(self, documents: Sequence[Document]) -> Iterator[Annotation]:
        """Several texts at once, which is quicker."""
        texts = [build_narrative(document, segments=self.segments) for document in documents]
        for text, scores in zip(texts, self.scorer(texts), strict=True):
            yield self._annotation(text, scores)

    def _annotation(self, text: Narrative, scores: TextScores) -> Annotation:
        columns = [*self.labels, ANY_ERROR]
        units = tuple(
            Unit(start=sentence.start, end=sentence.end, scores=_scores_by_name(columns, row))
            for sentence, row in zip(text.sentences, scores.sentences, strict=True)
        )
        marked = [
            (span, label, float(row[at]))
            for sentence, row in zip(text.sentences, scores.sentences, strict=True)
            for at, label in enumerate(self.labels or [ANY_ERROR])
            if row[at] >= self.thresholds[label]
            for span in error_spans(text, sentence, scores, label, at)
        ]
        marks = tuple(
            Mark(
                id=f"{text.id}/{self.name}/{number}",
                spans=(Span(*span),),
                quotes=(text.text[slice(*span)],),
                label=None if label == ANY_ERROR else label,
                label_votes={NO_TYPE: 1} if label == ANY_ERROR else None,
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


def _scores_by_name(columns: Sequence[str], row: Floats) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(columns, row, strict=True)}


def error_spans(
    text: Narrative, sentence: NarrativeSentence, scores: TextScores, label: str, column: int
) -> list[tuple[int, int]]:
    """The words of a sentence that an error covers: those of the likeliest tokens, or the sentence without tokens."""
    first_token = int(np.searchsorted(scores.offsets[:, 0], sentence.start, side="left"))
    inside = slice(first_token, int(np.searchsorted(scores.offsets[:, 1], sentence.end, side="right")))
    if label in (ANY_ERROR, WHOLE_SENTENCE) or inside.start >= inside.stop:
        return [(sentence.start, sentence.end)]
    chances, offsets = scores.tokens[inside, column], scores.offsets[inside]
    if not chances.any():
        return [(sentence.start, sentence.end)]
    high = chances >= 0.5 * chances.max()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], high.astype(int), [0]])))
    runs = [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
    runs = _merge_close_runs(runs)
    best = max(runs, key=lambda run: chances[run[0] : run[1]].max())
    chosen = [run for run in runs if label == _MULTI_SPAN_LABEL or run == best]
    widened = [_extend_to_words(text.text, int(offsets[first, 0]), int(offsets[last - 1, 1])) for first, last in chosen]
    return list(dict.fromkeys(widened))


def _merge_close_runs(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of tokens; two with one token between them are one."""
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and first - joined[-1][1] <= 1:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _extend_to_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and _WORD.match(text[start - 1]) and _WORD.match(text[start]):
        start -= 1
    while end < len(text) and _WORD.match(text[end]) and _WORD.match(text[end - 1]):
        end += 1
    return start, end
