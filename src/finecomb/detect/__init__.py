"""Detectors and checkers: annotators that are programs."""

from __future__ import annotations

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.detect.base import Detector, DetectorTraining, Factory, FittedDetector, detect, detector_signature
from finecomb.detect.boxscore import BOXSCORE
from finecomb.detect.boxscore.relation_metric import RELATION_METRIC
from finecomb.detect.critic import CRITIC_DETECTOR
from finecomb.detect.rules import RULE_DETECTOR
from finecomb.detect.snac import SNAC_DETECTORS
from finecomb.detect.spans import SPAN_DETECTOR

__all__ = [
    "DETECTORS",
    "Detector",
    "DetectorTraining",
    "Factory",
    "FittedDetector",
    "detect",
    "detector_signature",
    "named",
]

DETECTORS: dict[str, Factory] = {
    factory.name: factory
    for factory in (BOXSCORE, RELATION_METRIC, RULE_DETECTOR, *SNAC_DETECTORS, SPAN_DETECTOR, CRITIC_DETECTOR)
}
"""Every detector by name: a new one is a module of this package and one more row here."""


def named(name: str) -> Factory:
    """The detector called `name`."""
    if name not in DETECTORS:
        raise FinecombError(f"no detector is called {name!r}{did_you_mean(name, DETECTORS)}")
    return DETECTORS[name]
