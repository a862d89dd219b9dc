"""The span classifier of Scarecrow; see docs/detect/spans.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finecomb.annotators.detectors.base import Detector, DetectorFactory, DetectorTraining, FittedDetector
from finecomb.annotators.detectors.coherence.options import SentenceDetectorOptions
from finecomb.annotators.detectors.spans.options import SpanTrainingOptions
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation
from finecomb.core.study import Study


def _fit_detector(
    study: Study, gold: Sequence[Annotation], annotator: str, options: SpanTrainingOptions
) -> FittedDetector:
    from finecomb.annotators.detectors.spans.training import fit_span_detector

    return fit_span_detector(study, gold, options)


def _make_detector(protocol: Protocol, options: SentenceDetectorOptions) -> Detector:
    from finecomb.annotators.detectors.spans.detector import SpanDetector

    return SpanDetector.from_options(protocol, options)


def _read_stored_protocol_name(options: Any) -> str:
    """Return the name of the protocol whose labels a stored classifier uses."""
    from finecomb.annotators.detectors.model_folder import read_model_folder

    return str(read_model_folder(options.weights, "spans").settings["protocol"])


SPAN_DETECTOR = DetectorFactory(
    name="spans",
    title="errors of any protocol, with a classifier of all spans of up to 30 words",
    needs="a text",
    protocol="scarecrow",
    kind="detector",
    options=SentenceDetectorOptions,
    make=_make_detector,
    training=DetectorTraining(SpanTrainingOptions, _fit_detector),
    protocol_of=_read_stored_protocol_name,
)
