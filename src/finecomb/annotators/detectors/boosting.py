"""Gradient boosting of small decision trees for binary classification.

The method is that of Friedman (2001) with second derivatives and binned features. All trees are complete and equally
deep, so a model consists of four arrays that any program can read without pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BoostingSettings:
    """Hyperparameters of boosting."""

    rounds: int = 250
    depth: int = 3
    rate: float = 0.06
    bins: int = 32
    rows: float = 0.7
    """Share of the examples sampled for each tree."""
    columns: float = 0.4
    """Share of the features sampled for each tree."""
    ridge: float = 5.0
    """L2 penalty added to the second derivative of a leaf, which shrinks leaves with few examples."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A fitted model whose log odds are `base` plus one leaf value per tree."""

    base: float
    features: Ints
    """Feature of each node, (trees, inner nodes), level by level."""
    thresholds: Floats
    """Threshold of each node, (trees, inner nodes). Greater values go right."""
    leaves: Floats
    """Leaf values, (trees, leaves)."""

    def __call__(self, rows: Floats) -> Floats:
        """Return the log odds of each row, (rows,)."""
        place = np.zeros((len(self.features), len(rows)), dtype=np.int64)
        depth = int(np.log2(self.leaves.shape[1])) if self.leaves.size else 0
        trees = np.arange(len(self.features))[:, None]
        for level in range(depth):
            node = 2**level - 1 + place
            right = rows[np.arange(len(rows))[None, :], self.features[trees, node]] > self.thresholds[trees, node]
            place = 2 * place + right
        total: Floats = self.base + self.leaves[trees, place].sum(axis=0)
        return total

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the model as named arrays for storage."""
        return {
            "base": np.array(self.base), "features": self.features, "thresholds": self.thresholds,
            "leaves": self.leaves,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> BoostedTrees:
        """Rebuild the model from stored arrays."""
        return cls(
            float(arrays["base"].item()), arrays["features"].astype(np.int64), arrays["thresholds"].astype(np.float64),
            arrays["leaves"].astype(np.float64),
        )  # fmt: skip


def fit_boosted_trees(rows: Floats, truth: Bools, settings: BoostingSettings) -> BoostedTrees:
    """Fit boosted trees to examples (examples, features) and binary targets (examples,).

    If all targets are equal, the model has no trees, and its base is the log odds with one added to both counts.
    """
    rng = np.random.default_rng(settings.seed)
    base = float(np.log((truth.sum() + 1) / (len(truth) - truth.sum() + 1)))
    inner, size = 2**settings.depth - 1, 2**settings.depth
    if truth.all() or not truth.any():
        return BoostedTrees(base, np.zeros((0, inner), np.int64), np.zeros((0, inner)), np.zeros((0, size)))
    edges = []
    for column in rows.T:
        quantiles = np.quantile(column, np.linspace(0, 1, settings.bins + 1)[1:-1], method="lower")
        edges.append(np.unique(quantiles[quantiles < column.max()]))
    codes = np.stack([np.searchsorted(edge, column) for edge, column in zip(edges, rows.T, strict=True)], axis=1)
    odds = np.full(len(rows), base)
    trees = []
    for _ in range(settings.rounds):
        chance = 1 / (1 + np.exp(-odds))
        sample = rng.random(len(rows)) < settings.rows
        columns = np.sort(rng.permutation(rows.shape[1])[: max(1, round(settings.columns * rows.shape[1]))])
        # Examples outside the sample get a weight of 0, so that the arrays keep their shape.
        gradient, curvature = np.where(sample, truth - chance, 0.0), np.where(sample, chance * (1 - chance), 0.0)
        features, cuts, leaves, place = _grow_tree(codes, columns, gradient, curvature, settings)
        odds = odds + leaves[place]
        thresholds = [
            float(edges[index][cut]) if cut < len(edges[index]) else np.inf
            for index, cut in zip(features, cuts, strict=True)
        ]
        trees.append((features, thresholds, leaves))
    stacked = [np.array(part) for part in zip(*trees, strict=True)]
    return BoostedTrees(base, stacked[0].astype(np.int64), stacked[1].astype(np.float64), stacked[2])


def _grow_tree(
    codes: Ints, columns: Ints, gradient: Floats, curvature: Floats, settings: BoostingSettings
) -> tuple[list[int], list[int], Floats, Ints]:
    """Return the features and cuts of the inner nodes, the leaf values, and the leaf of each example.

    A node is cut after the bin with the highest gain, or after the last bin if no cut improves the fit.
    """
    place = np.zeros(len(codes), dtype=np.int64)
    features: list[int] = []
    cuts: list[int] = []
    bins, width, ridge = settings.bins + 1, len(columns), settings.ridge
    chosen = codes[:, columns]
    for level in range(settings.depth):
        nodes = 2**level
        cell = ((place[:, None] * width + np.arange(width)) * bins + chosen).ravel()
        top, bottom = (
            np.bincount(cell, np.repeat(weights, width), nodes * width * bins)
            .reshape(nodes, width, bins)
            .cumsum(axis=2)
            for weights in (gradient, curvature)
        )
        whole_top, whole_bottom = top[..., -1:], bottom[..., -1:]
        # Gain of a cut: squared gradient over penalised curvature on both sides, minus that of the whole node.
        gain = top**2 / (bottom + ridge) + (whole_top - top) ** 2 / (whole_bottom - bottom + ridge)
        gain -= whole_top**2 / (whole_bottom + ridge)
        flat = gain.reshape(nodes, -1)
        best = flat.argmax(axis=1)
        has_gain = flat[np.arange(nodes), best] > 1e-9
        level_features, level_cuts = columns[best // bins], np.where(has_gain, best % bins, bins)
        right = codes[np.arange(len(codes)), level_features[place]] > level_cuts[place]
        features += level_features.tolist()
        cuts += level_cuts.tolist()
        place = 2 * place + right
    top, bottom = (np.bincount(place, weights, 2**settings.depth) for weights in (gradient, curvature))
    return features, cuts, settings.rate * top / (bottom + ridge), place
