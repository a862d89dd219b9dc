"""Tests of boosted trees: they learn what one tree cannot, survive storage, and match their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.boosting import BoostedTrees, BoostingSettings, fit_boosted_trees

SETTINGS = BoostingSettings(rounds=60, depth=3, rate=0.3, rows=1.0, columns=1.0, ridge=1.0)


def exclusive_or(rows: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    examples = np.random.default_rng(seed).normal(size=(rows, 4))
    return examples, (examples[:, 0] > 0) != (examples[:, 1] > 0)


def slow_odds(model: BoostedTrees, row: NDArray[Any]) -> float:
    """Compute the log odds of one row, tree by tree and node by node."""
    total = model.base
    for features, thresholds, leaves in zip(model.features, model.thresholds, model.leaves, strict=True):
        node = 0
        while node < len(features):
            node = 2 * node + 1 + int(row[features[node]] > thresholds[node])
        total += leaves[node - len(features)]
    return float(total)


def test_trees_learn_an_exclusive_or() -> None:
    model = fit_boosted_trees(*exclusive_or(800, 0), SETTINGS)
    examples, truth = exclusive_or(400, 1)
    assert ((model(examples) > 0) == truth).mean() > 0.93


def test_all_rows_at_once_are_the_same_as_one_by_one() -> None:
    model = fit_boosted_trees(*exclusive_or(200, 0), BoostingSettings(rounds=15))
    examples, _ = exclusive_or(30, 2)
    assert np.allclose(model(examples), [slow_odds(model, row) for row in examples])


def test_a_model_comes_back_from_its_arrays() -> None:
    model = fit_boosted_trees(*exclusive_or(200, 0), BoostingSettings(rounds=5))
    examples, _ = exclusive_or(30, 2)
    assert np.array_equal(BoostedTrees.from_arrays(model.to_arrays())(examples), model(examples))


def test_answers_that_are_all_the_same_make_no_tree() -> None:
    model = fit_boosted_trees(np.zeros((10, 2)), np.zeros(10, dtype=bool), SETTINGS)
    assert len(model.features) == 0
    assert np.allclose(model(np.ones((3, 2))), np.log(1 / 11))


def test_a_feature_without_variety_is_never_used() -> None:
    examples, truth = exclusive_or(300, 0)
    examples[:, 3] = 7.0
    model = fit_boosted_trees(examples, truth, SETTINGS)
    used = model.features[np.isfinite(model.thresholds)]
    assert 3 not in used
