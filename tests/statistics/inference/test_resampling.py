"""Resampling compared with naive definitions, and reasons for missing values."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finecomb
from finecomb.core.results import Signature
from finecomb.statistics.inference import resampling

SIGNATURE = Signature.from_fields(statistic="toy")
ROOT = Path(finecomb.__file__).parent


def test_batches_give_the_same_weights_as_one_call() -> None:
    whole = resampling.resampled_document_weights(7, 100, np.random.default_rng(3))
    parts = list(resampling.draw_weight_batches(7, 100, np.random.default_rng(3), size=9))
    assert np.array_equal(whole, np.concatenate(parts))
    assert (whole.sum(axis=1) == 7).all()


def test_sums_of_resamples_are_those_of_the_documents_drawn() -> None:
    sums = np.arange(12.0).reshape(4, 3)
    weights = resampling.resampled_document_weights(4, 50, np.random.default_rng(1))
    slow = [sum(count * sums[at] for at, count in enumerate(row)) for row in weights]
    assert np.allclose(resampling.resampled_sums(sums, 50, np.random.default_rng(1)), slow)


def test_the_study_itself_comes_first() -> None:
    weights = resampling.study_and_resample_weights(5, 20, 0)
    assert weights.shape == (21, 5)
    assert (weights[0] == 1).all()
    assert len(resampling.study_and_resample_weights(1, 20, 0)) == 1


def test_an_interval_of_the_mean_is_close_to_that_of_the_normal() -> None:
    values = np.random.default_rng(0).normal(size=400)
    sums = np.stack([values, np.ones(400)], axis=1)
    mean = resampling.estimate_from_sums(sums, lambda totals: resampling.ratio_or_nan(*totals.T), 4000, 0, SIGNATURE)
    half = 1.96 * values.std() / 20
    assert mean.value == pytest.approx(values.mean())
    assert (mean.low, mean.high) == pytest.approx((mean.value - half, mean.value + half), abs=0.01)


@pytest.mark.parametrize(
    ("values", "options", "reason"),
    [
        ([], {}, resampling.NO_RESAMPLES_REASON),
        ([math.nan, math.nan], {}, resampling.UNDEFINED_RESAMPLES_REASON),
        ([0.5, math.nan, 0.5], {}, resampling.SAME_RESAMPLES_REASON),
        ([0.1, 0.9], {"missing_interval_reason": "one text"}, "one text"),
        ([0.1, 0.9], {"document_values": np.array([2.0, math.nan])}, resampling.FEW_DOCUMENTS_REASON),
        ([0.1, 0.9], {"document_values": np.array([2.0, 2.0])}, resampling.SAME_DOCUMENTS_REASON),
    ],
)
def test_an_estimate_without_an_interval_says_why(values: list[float], options: dict[str, Any], reason: str) -> None:
    estimate = resampling.estimate_with_interval(0.5, np.array(values), SIGNATURE, **options)
    assert (estimate.value, estimate.why) == (0.5, reason)
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_an_undefined_value_keeps_its_own_reason() -> None:
    assert resampling.estimate_with_interval(math.nan, np.array([1.0, 2.0]), SIGNATURE, "no marks").why == "no marks"


def test_p_counts_ties_and_never_is_0_by_chance() -> None:
    null = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert resampling.permutation_p_value(null, 2.0, exact=True) == 2 / 5
    assert resampling.permutation_p_value(null, 3.0) == 1 / 6
    assert math.isnan(resampling.permutation_p_value(np.zeros(0), 1.0))


def test_nothing_else_draws_resamples() -> None:
    """Only `resampling` draws multinomial weights."""
    drawers = {
        file.relative_to(ROOT).as_posix()
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "multinomial"
    }
    assert drawers == {"statistics/inference/resampling.py"}
