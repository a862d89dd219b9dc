"""A detector as somebody would add one: this module, and one row of `detectors_by_name()`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from finecomb.annotators.detectors import DetectorTraining, Factory, FittedDetector, detector_signature
from finecomb.core.options import option
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study


@dataclass(frozen=True)
class WordOptions:
    """Options of the toy detector."""

    word: str = option("very", "The word to mark.")


@dataclass(frozen=True)
class WordFitOptions:
    """Options of fitting it."""

    least: int = option(1, "How often a word is marked before it counts.")


class WordDetector:
    """Marks one word wherever it stands."""

    def __init__(self, protocol: Protocol, options: WordOptions) -> None:
        self.protocol, self.options = protocol, options
        self.signature = detector_signature("words", protocol, options)

    def __call__(self, document: Document) -> Annotation:
        """One mark for the first place where the word stands."""
        start = document.text.find(self.options.word)
        spans = (Span(start, start + len(self.options.word)),)
        marks = (Mark(id=f"{document.id}/words/1", spans=spans, quotes=(self.options.word,), label="word"),)
        return Annotation(
            id=f"{document.id}/words", document=document.id, annotator="words", protocol=self.protocol.id,
            status="submitted", marks=marks if start >= 0 else (),
        )  # fmt: skip


def fit_word(study: Study, gold: Sequence[Annotation], annotator: str, options: WordFitOptions) -> FittedDetector:
    """The words that people mark most."""
    counts = Counter(quote for annotation in gold for mark in annotation.marks for quote in mark.quotes)
    rows = [{"word": word, "marks": count} for word, count in counts.most_common() if count >= options.least]
    return FittedDetector(
        "\n".join(str(row["word"]) for row in rows), len(gold), "Words", rows, f"least:{options.least}"
    )


WORDS = Factory(
    name="words",
    title="a word",
    needs="nothing",
    protocol="accuracy",
    kind="checker",
    options=WordOptions,
    make=WordDetector,
    training=DetectorTraining(WordFitOptions, fit_word),
)
SILENT = Factory(
    name="silent", title="", needs="nothing", protocol="accuracy", kind="checker", options=WordOptions,
    make=WordDetector,
)  # fmt: skip
