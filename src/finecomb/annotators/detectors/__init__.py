"""Detectors and checkers: annotators that are programs."""

from __future__ import annotations

import functools
import importlib

from finecomb.annotators.detectors.base import (
    Detector,
    DetectorTraining,
    Factory,
    FittedDetector,
    detect,
    detector_signature,
)
from finecomb.annotators.detectors.boxscore import BOXSCORE
from finecomb.annotators.detectors.boxscore.relation_metric import RELATION_METRIC
from finecomb.annotators.detectors.coherence import SNAC_DETECTORS
from finecomb.annotators.detectors.rules import RULE_DETECTOR
from finecomb.annotators.detectors.spans import SPAN_DETECTOR
from finecomb.core.errors import FinecombError, did_you_mean

__all__ = [
    "Detector",
    "DetectorTraining",
    "Factory",
    "FittedDetector",
    "detect",
    "detector_signature",
    "detectors_by_name",
    "find_detector",
]

_CRITIC_DETECTOR_MODULE = "finecomb.corpora.critics.critic_detector"
"""Lives in a higher layer, since it reads a fitted critic; imported by name, as a plugin's detector would be."""


@functools.cache
def detectors_by_name() -> dict[str, Factory]:
    """Return every detector by name: a new one is a module of this package and one more row here."""
    critic = importlib.import_module(_CRITIC_DETECTOR_MODULE).CRITIC_DETECTOR
    rows = (BOXSCORE, RELATION_METRIC, RULE_DETECTOR, *SNAC_DETECTORS, SPAN_DETECTOR, critic)
    return {factory.name: factory for factory in rows}


def find_detector(name: str) -> Factory:
    """The detector called `name`."""
    if name not in detectors_by_name():
        raise FinecombError(f"no detector is called {name!r}{did_you_mean(name, detectors_by_name())}")
    return detectors_by_name()[name]
