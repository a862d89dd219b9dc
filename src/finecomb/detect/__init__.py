"""Detectors and checkers: annotators that are programs."""

from __future__ import annotations

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.detect.base import Detector, DetectorOptions, Factory, detect
from finecomb.detect.boxscore import BOXSCORE

__all__ = ["DETECTORS", "Detector", "DetectorOptions", "Factory", "detect", "named"]

DETECTORS: dict[str, Factory] = {factory.name: factory for factory in (BOXSCORE,)}


def named(name: str) -> Factory:
    """The detector called `name`."""
    if name not in DETECTORS:
        raise FinecombError(f"no detector is called {name!r}{did_you_mean(name, DETECTORS)}")
    return DETECTORS[name]
