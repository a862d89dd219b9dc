from __future__ import annotations

import math

import polars as pl
import pytest

from finecomb.core.results import Estimate, Signature
from finecomb.reporting.site.text_influence import compute_influences

RATES = pl.DataFrame({
    "document": ["a1", "a2", "a3", "b1", "b2", "c1"],
    "system": ["a", "a", "a", "b", "b", "c"],
    "value": [1.0, 2.0, 9.0, 1.0, 3.0, 5.0],
})  # fmt: skip
SYSTEMS = {name: Estimate(4.0, 1.0, 7.0, Signature(())) for name in "abc"}


def test_a_number_without_a_text_is_the_mean_of_the_others() -> None:
    (system, difference) = compute_influences(RATES, SYSTEMS, ("b", "a"), "marks")["a3"]
    assert (system.value, system.without) == pytest.approx((4.0, 1.5))
    assert (difference.value, difference.without) == pytest.approx((2.0, -0.5))
    assert system.name == "a, marks"
    assert difference.name == "Difference from b"
    assert (system.words, difference.words) == ("up 2.50", "up 2.50")


def test_the_other_system_of_a_pair_moves_the_difference_the_other_way() -> None:
    (_, difference) = compute_influences(RATES, SYSTEMS, ("b", "a"), "marks")["b2"]
    assert (difference.value, difference.without) == pytest.approx((2.0, 3.0))
    assert difference.words == "negligible"  # it is a tenth of an interval of four standard errors


def test_a_small_change_is_negligible() -> None:
    wide = {name: Estimate(4.0, -50.0, 50.0, Signature(())) for name in "abc"}
    assert compute_influences(RATES, wide, None, "marks")["a3"][0].words == "negligible"


def test_a_text_that_is_alone_moves_nothing_and_no_interval_is_no_traceback() -> None:
    without = {name: Estimate(4.0, math.nan, math.nan, Signature(())) for name in "abc"}
    moved = compute_influences(RATES, without, ("b", "a"), "marks")
    assert "c1" not in moved
    assert moved["a1"][0].words == "down 1.50"
