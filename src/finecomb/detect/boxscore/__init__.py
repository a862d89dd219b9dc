"""A fact checker for reports about basketball games, grounded in the box score; docs/detect/boxscore.md says how."""

from __future__ import annotations

from finecomb.detect.base import Factory
from finecomb.detect.boxscore.checker import BoxScore

BOXSCORE = Factory(
    name="boxscore",
    title="facts of basketball reports against their box score",
    needs="a RotoWire-style record in `data`",
    protocol="accuracy",
    kind="checker",
    make=BoxScore.made_for,
)
