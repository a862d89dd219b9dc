"""A minimal detector, as an extension would define it for `DETECTORS`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from finecomb.annotators.detectors import DetectorFactory, DetectorTraining, FittedDetector, detector_signature
from finecomb.core.options import option_field
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study


@dataclass(frozen=True)
class WordOptions:
    """Options of the toy detector."""

    word: str = option_field("very", help="The word to mark.")


@dataclass(frozen=True)
class WordFitOptions:
    """Options for training the toy detector."""

    least: int = option_field(1, help="How often a word is marked before it counts.")


class WordDetector:
    """A detector that marks one word."""

    def __init__(self, protocol: Protocol, options: WordOptions) -> None:
        self.protocol, self.options = protocol, options
        self.signature = detector_signature("words", protocol, options)

    def __call__(self, document: Document) -> Annotation:
        """Mark the first occurrence of the word."""
        start = document.text.find(self.options.word)
        spans = (Span(start, start + len(self.options.word)),)
        marks = (Mark(id=f"{document.id}/words/1", spans=spans, quotes=(self.options.word,), label="word"),)
        return Annotation(
            id=f"{document.id}/words", document=document.id, annotator="words", protocol=self.protocol.id,
            status="submitted", marks=marks if start >= 0 else (),
        )  # fmt: skip


def fit_word(study: Study, gold: Sequence[Annotation], annotator: str, options: WordFitOptions) -> FittedDetector:
    """Fit the detector to the most frequently marked words."""
    counts = Counter(quote for annotation in gold for mark in annotation.marks for quote in mark.quotes)
    rows = [{"word": word, "marks": count} for word, count in counts.most_common() if count >= options.least]
    return FittedDetector(
        "\n".join(str(row["word"]) for row in rows), len(gold), "Words", rows, f"least:{options.least}"
    )


WORDS = DetectorFactory(
    name="words",
    title="a word",
    needs="nothing",
    protocol="accuracy",
    kind="checker",
    options=WordOptions,
    make=WordDetector,
    training=DetectorTraining(WordFitOptions, fit_word),
)
SILENT = DetectorFactory(
    name="silent", title="", needs="nothing", protocol="accuracy", kind="checker", options=WordOptions,
    make=WordDetector,
)  # fmt: skip
