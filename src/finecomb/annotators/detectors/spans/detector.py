"""The span detector, which marks runs of words whose probability reaches the threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from finecomb.annotators.detectors.base import detector_signature
from finecomb.annotators.detectors.coherence.options import SentenceDetectorOptions
from finecomb.annotators.detectors.model_folder import read_model_folder
from finecomb.annotators.detectors.spans.classifier import NAME, SpanClassifier, SpanSettings
from finecomb.annotators.detectors.spans.examples import SpanText, build_span_text
from finecomb.annotators.detectors.spans.scoring import Floats
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span


class SpanDetector:
    """A detector that marks runs of words with a fitted span classifier."""

    def __init__(
        self,
        protocol: Protocol,
        classifier: SpanClassifier,
        thresholds: Mapping[str, float],
        signature: str,
        fitted_texts: Sequence[str] = (),
    ) -> None:
        missing = [label for label in classifier.settings.labels if not protocol.has_label(label)]
        if missing:
            raise FinecombError(
                f"the classifier was trained with label {missing[0]!r}, which protocol {protocol.id} does not have; "
                "use the protocol of the training study, or train the classifier again"
            )
        self.protocol, self.classifier, self.thresholds = protocol, classifier, thresholds
        self.signature, self.fitted_texts = signature, tuple(fitted_texts)

    @classmethod
    def from_options(cls, protocol: Protocol, options: SentenceDetectorOptions) -> SpanDetector:
        """Load the detector from a folder written by `train`."""
        stored = read_model_folder(options.weights, NAME)
        values = {name: stored.settings[name] for name in SpanSettings.__dataclass_fields__}
        settings = SpanSettings(**{**values, "labels": tuple(values["labels"])})
        classifier = SpanClassifier.from_state(settings, stored.arrays, stored.weights)
        thresholds = dict(stored.settings["thresholds"])
        if options.threshold is not None:
            thresholds = dict.fromkeys(thresholds, options.threshold)
        signature = detector_signature(NAME, protocol, options, fitted=stored.card.signature.replace("|", ";"))
        return cls(protocol, classifier, thresholds, signature, stored.card.fitted_texts)

    def __call__(self, document: Document) -> Annotation:
        """Annotate one document."""
        return next(self.annotations([document]))

    def annotations(self, documents: Sequence[Document]) -> Iterator[Annotation]:
        """Yield the annotations of several documents."""
        labels = self.classifier.settings.labels
        texts = [build_span_text(document, (), labels) for document in documents]
        for text, chances in zip(texts, self.classifier(texts), strict=True):
            marks = [
                mark for index, label in enumerate(labels) for mark in self._build_marks(text, chances[:, index], label)
            ]
            yield Annotation(
                id=f"{text.id}/{NAME}", document=text.id, annotator=NAME, protocol=self.protocol.id, marks=tuple(marks)
            )

    def _build_marks(self, text: SpanText, chances: Floats, label: str) -> Iterator[Mark]:
        high = np.concatenate([[False], chances >= self.thresholds[label], [False]])
        edges = np.flatnonzero(high[1:] != high[:-1])
        for first, last in zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True):
            start, end = int(text.offsets[first, 0]), int(text.offsets[last, 1])
            yield Mark(
                id=f"{text.id}/{NAME}/{label}/{first}",
                spans=(Span(start, end),),
                quotes=(text.text[start:end],),
                label=label,
                confidence=round(float(chances[first : last + 1].max()), 4),
            )
