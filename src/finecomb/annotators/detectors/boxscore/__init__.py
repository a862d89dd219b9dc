"""A fact checker for basketball game reports, based on the box score; see docs/detect/boxscore.md."""

from __future__ import annotations

from finecomb.annotators.detectors.base import DetectorFactory, DetectorTraining
from finecomb.annotators.detectors.boxscore.checker import NAME, BoxScoreChecker, BoxScoreOptions
from finecomb.annotators.detectors.boxscore.ranker_training import RankerOptions, fit_ranker

BOXSCORE = DetectorFactory(
    name=NAME,
    title="factual errors in basketball reports, compared with the box score",
    needs="a RotoWire-style record in `data`",
    protocol="accuracy",
    kind="checker",
    options=BoxScoreOptions,
    make=BoxScoreChecker.from_options,
    training=DetectorTraining(RankerOptions, fit_ranker),
)
