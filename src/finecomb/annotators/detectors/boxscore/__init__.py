"""A fact checker for reports about basketball games, grounded in the box score; docs/detect/boxscore.md says how."""

from __future__ import annotations

from finecomb.annotators.detectors.base import DetectorTraining, Factory
from finecomb.annotators.detectors.boxscore.checker import NAME, BoxScoreChecker, BoxScoreOptions
from finecomb.annotators.detectors.boxscore.ranker_training import RankerOptions, fit_ranker

BOXSCORE = Factory(
    name=NAME,
    title="facts of basketball reports against their box score",
    needs="a RotoWire-style record in `data`",
    protocol="accuracy",
    kind="checker",
    options=BoxScoreOptions,
    make=BoxScoreChecker.from_options,
    training=DetectorTraining(RankerOptions, fit_ranker),
)
