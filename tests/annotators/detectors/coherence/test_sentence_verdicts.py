"""Tests of the calibration of scores on any scale, with an increasing probability."""

from __future__ import annotations

import numpy as np
import pytest

from finecomb.annotators.detectors.coherence.sentence_verdicts import ScoreCalibration


@pytest.mark.parametrize(("mean", "scale"), [(0.0, 1.0), (250.0, 60.0), (-3.0, 0.01)])
def test_scores_of_any_scale_become_chances(mean: float, scale: float) -> None:
    """Sums of surprisals in the hundreds once made the fit diverge, so that all sentences had the same probability."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=4000)
    truth = rng.random(4000) < 1 / (1 + np.exp(-(1.5 * latent - 0.5)))
    scores = mean + scale * latent
    calibration = ScoreCalibration.from_scores(scores, truth)
    chances = calibration(scores).sentences[:, 0]
    assert chances.mean() == pytest.approx(truth.mean(), abs=0.01)
    assert np.array_equal(np.argsort(scores), np.argsort(chances))
    assert ScoreCalibration.from_settings(calibration.to_settings())(scores).sentences[:, 0] == pytest.approx(chances)


def test_a_score_that_misleads_on_dev_keeps_its_direction() -> None:
    scores = np.arange(20.0)
    chances = ScoreCalibration.from_scores(scores, scores < 10)(scores).sentences[:, 0]
    assert (np.diff(chances) > 0).all()


def test_equal_scores_have_equal_chances() -> None:
    chances = ScoreCalibration.from_scores(np.full(8, 3.0), np.arange(8) < 4)(np.full(3, 3.0)).sentences[:, 0]
    assert chances == pytest.approx([0.5] * 3, abs=0.02)
