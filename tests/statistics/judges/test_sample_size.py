from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.judges.ppi import TextValues, ppi_mean
from finecomb.statistics.judges.sample_size import plan_sample_size, projected_half_width, required_text_count
from tests.statistics.judges.test_estimates import world


def test_the_pilots_own_size_gives_its_own_width() -> None:
    values = TextValues(np.random.default_rng(0).poisson(3, 30).astype(float), np.arange(30), np.zeros((0, 90)))
    mean = ppi_mean(values)
    low, high = mean.interval()
    assert projected_half_width(mean, 30, 30) == pytest.approx((high - low) / 2)
    needed = required_text_count(mean, 30, (high - low) / 4)
    assert needed is not None
    assert 90 < needed < 130  # half as wide: four times as many, and a little fewer as t comes down
    assert projected_half_width(mean, 30, needed) <= (high - low) / 4 < projected_half_width(mean, 30, needed - 1)


def test_a_good_judge_needs_fewer_human_texts_and_cannot_do_everything() -> None:
    whole = world(60, 400)
    alone, shares, judged = (each.estimate for each in plan_sample_size(whole, ["judge"], 0.15))
    assert judged.value < alone.value
    tiny = plan_sample_size(whole, ["judge"], 0.005)[-1].estimate
    assert np.isnan(tiny.value)
    assert "judges have read 400 texts only" in tiny.why
    with pytest.raises(FinecombError, match="more than 0"):
        plan_sample_size(whole, ["judge"], 0)
    assert shares.value > 0
