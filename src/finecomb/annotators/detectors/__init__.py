"""Detectors and fact checkers, the annotators that are programs."""

from __future__ import annotations

from finecomb.annotators.detectors.base import (
    Detector,
    DetectorFactory,
    DetectorTraining,
    FittedDetector,
    detect,
    detector_signature,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.plugins import Registry

__all__ = [
    "DETECTORS",
    "Detector",
    "DetectorFactory",
    "DetectorTraining",
    "FittedDetector",
    "detect",
    "detector_signature",
    "find_detector_factory",
]

_HERE = "finecomb.annotators.detectors"
DETECTORS = Registry[DetectorFactory](
    "detectors",
    DetectorFactory,
    {
        "boxscore": f"{_HERE}.boxscore:BOXSCORE",
        "relations": f"{_HERE}.boxscore.relation_metric:RELATION_METRIC",
        "rules": f"{_HERE}.rules:RULE_DETECTOR",
        "coherence": f"{_HERE}.coherence:COHERENCE",
        "surprisal": f"{_HERE}.coherence:SURPRISAL",
        "entity-grid": f"{_HERE}.coherence:ENTITY_GRID",
        "synthetic": f"{_HERE}.coherence:SYNTHETIC",
        "transformer": f"{_HERE}.coherence:TRANSFORMER",
        "spans": f"{_HERE}.spans:SPAN_DETECTOR",
        "critic": "finecomb.corpora.critics.critic_detector:CRITIC_DETECTOR",
    },
)
"""All detector factories by name."""


def find_detector_factory(name: str) -> DetectorFactory:
    """Return the factory of the detector called `name`."""
    if name not in DETECTORS:
        raise FinecombError(f"unknown detector {name!r}{did_you_mean(name, DETECTORS)}")
    return DETECTORS[name]
