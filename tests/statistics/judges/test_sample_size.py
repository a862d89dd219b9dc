from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.judges.ppi import TextValues, ppi_mean
from finecomb.statistics.judges.sample_size import plan_sample_size, projected_half_width, required_text_count
from tests.statistics.judges.judge_studies import make_judge_study
from tests.statistics.judges.test_estimates import world


def test_the_pilots_own_size_gives_its_own_width() -> None:
    values = TextValues(np.random.default_rng(0).poisson(3, 30).astype(float), np.arange(30), np.zeros((0, 90)))
    mean = ppi_mean(values)
    low, high = mean.interval()
    assert projected_half_width(mean, 30, 30) == pytest.approx((high - low) / 2)
    needed = required_text_count(mean, 30, (high - low) / 4)
    assert needed is not None
    assert 90 < needed < 130  # half as wide: four times as many, and slightly fewer because t falls
    assert projected_half_width(mean, 30, needed) <= (high - low) / 4 < projected_half_width(mean, 30, needed - 1)


def test_a_good_judge_needs_fewer_human_texts_and_cannot_do_everything() -> None:
    whole = world(60, 400)
    alone, shares, judged = (each.estimate for each in plan_sample_size(whole, ["judge"], 0.15))
    assert judged.value < alone.value
    tiny = plan_sample_size(whole, ["judge"], 0.005)[-1].estimate
    assert np.isnan(tiny.value)
    assert "judges annotated only 400 texts" in tiny.why
    with pytest.raises(FinecombError, match="more than 0"):
        plan_sample_size(whole, ["judge"], 0)
    assert shares.value > 0


def test_people_alone_are_not_limited_by_the_texts_of_judges() -> None:
    alone = plan_sample_size(world(60, 400), ["judge"], 1e-4)[0].estimate
    assert alone.why == "more than 1,000,000 human texts would be needed"


def test_the_search_reaches_the_maximum_number_of_texts() -> None:
    mean = ppi_mean(TextValues(np.random.default_rng(0).poisson(3, 30).astype(float), np.arange(30), np.zeros((0, 90))))
    assert required_text_count(mean, 30, projected_half_width(mean, 30, 900_000)) == 900_000


def test_few_texts_and_equal_texts_have_separate_messages() -> None:
    marks = {"d0": [(0, 2, "name")], "d1": [(0, 2, "name"), (4, 6, "name")]}
    with pytest.raises(FinecombError, match="at least 3 human texts are needed, found 2"):
        plan_sample_size(make_judge_study({"p0": marks, "judge": marks}, {"judge": "llm"}), ["judge"], 0.1)
    equal = {f"d{at}": [(0, 2, "name")] for at in range(5)}
    with pytest.raises(FinecombError, match="all 5 human texts have the same value"):
        plan_sample_size(make_judge_study({"p0": equal, "judge": equal}, {"judge": "llm"}), ["judge"], 0.1)
