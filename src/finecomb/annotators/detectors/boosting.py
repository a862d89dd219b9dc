"""Gradient boosting of small trees for a yes or a no: Friedman (2001) with second derivatives, on binned features.

Trees are complete and of one depth, so a model is four arrays, which any program can read; nothing is pickled.
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
    """How trees are grown."""

    rounds: int = 250
    depth: int = 3
    rate: float = 0.06
    bins: int = 32
    rows: float = 0.7
    """Share of the examples that each tree sees."""
    columns: float = 0.4
    """Share of the features that each tree may use."""
    ridge: float = 5.0
    """Added to the second derivative of a leaf, which keeps small leaves small."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A fitted model: log odds are `base` plus one leaf of every tree."""

    base: float
    features: Ints
    """(trees, inner nodes): the feature that a node looks at; nodes of one level stand side by side."""
    thresholds: Floats
    """(trees, inner nodes): go right where the feature is greater."""
    leaves: Floats
    """(trees, leaves)."""

    def __call__(self, rows: Floats) -> Floats:
        """Log odds of each row, (rows,)."""
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
        """For storage."""
        return {
            "base": np.array(self.base), "features": self.features, "thresholds": self.thresholds,
            "leaves": self.leaves,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> BoostedTrees:
        """From storage."""
        return cls(
            float(arrays["base"].item()), arrays["features"].astype(np.int64), arrays["thresholds"].astype(np.float64),
            arrays["leaves"].astype(np.float64),
        )  # fmt: skip


def fit_trees(rows: Floats, truth: Bools, settings: BoostingSettings) -> BoostedTrees:
    """Boosted trees for examples (examples, features) and their answers (examples,).

    Where all answers are the same, there is nothing to learn: the model has no trees and a base of two false answers
    or two true ones more than it saw.
    """
    rng = np.random.default_rng(settings.seed)
    base = float(np.log((truth.sum() + 1) / (len(truth) - truth.sum() + 1)))
    inner, size = 2**settings.depth - 1, 2**settings.depth
    if truth.all() or not truth.any():
        return BoostedTrees(base, np.zeros((0, inner), np.int64), np.zeros((0, inner)), np.zeros((0, size)))
    edges = [_bin_edges(column, settings.bins) for column in rows.T]
    codes = np.stack([np.searchsorted(edge, column) for edge, column in zip(edges, rows.T, strict=True)], axis=1)
    odds = np.full(len(rows), base)
    trees = []
    for _ in range(settings.rounds):
        chance = 1 / (1 + np.exp(-odds))
        sample = rng.random(len(rows)) < settings.rows
        columns = np.sort(rng.permutation(rows.shape[1])[: max(1, round(settings.columns * rows.shape[1]))])
        gradient, curvature = np.where(sample, truth - chance, 0.0), np.where(sample, chance * (1 - chance), 0.0)
        features, cuts, leaves, place = _grow_tree(codes, columns, gradient, curvature, settings)
        odds = odds + leaves[place]
        trees.append((features, [_threshold(edges[at], cut) for at, cut in zip(features, cuts, strict=True)], leaves))
    stacked = [np.array(part) for part in zip(*trees, strict=True)]
    return BoostedTrees(base, stacked[0].astype(np.int64), stacked[1].astype(np.float64), stacked[2])


def _bin_edges(column: Floats, bins: int) -> Floats:
    """Where a feature is cut: its quantiles, each value once, the largest left out."""
    levels = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1], method="lower"))
    kept: Floats = levels[levels < column.max()]
    return kept


def _threshold(edges: Floats, cut: int) -> float:
    """The value that a row must exceed to go right; infinity where a node has no cut."""
    return float(edges[cut]) if cut < len(edges) else np.inf


def _grow_tree(
    codes: Ints, columns: Ints, gradient: Floats, curvature: Floats, settings: BoostingSettings
) -> tuple[list[int], list[int], Floats, Ints]:
    """Features and cuts of the inner nodes, values of the leaves, and the leaf of each example."""
    place = np.zeros(len(codes), dtype=np.int64)
    features: list[int] = []
    cuts: list[int] = []
    bins = settings.bins + 1
    chosen = codes[:, columns]
    for level in range(settings.depth):
        best = _best_cuts(chosen, place, 2**level, bins, gradient, curvature, settings.ridge)
        level_features, level_cuts = columns[best[0]], best[1]
        right = codes[np.arange(len(codes)), level_features[place]] > level_cuts[place]
        features += level_features.tolist()
        cuts += level_cuts.tolist()
        place = 2 * place + right
    count = 2**settings.depth
    top, bottom = (np.bincount(place, weights, count) for weights in (gradient, curvature))
    return features, cuts, settings.rate * top / (bottom + settings.ridge), place


def _best_cuts(
    codes: Ints, place: Ints, nodes: int, bins: int, gradient: Floats, curvature: Floats, ridge: float
) -> tuple[Ints, Ints]:
    """For each node the feature (its column) and the bin after which to cut; the last bin where no cut gains."""
    width = codes.shape[1]
    cell = ((place[:, None] * width + np.arange(width)) * bins + codes).ravel()
    top, bottom = (
        np.bincount(cell, np.repeat(weights, width), nodes * width * bins).reshape(nodes, width, bins).cumsum(axis=2)
        for weights in (gradient, curvature)
    )
    whole_top, whole_bottom = top[..., -1:], bottom[..., -1:]
    gain = top**2 / (bottom + ridge) + (whole_top - top) ** 2 / (whole_bottom - bottom + ridge)
    gain -= whole_top**2 / (whole_bottom + ridge)
    flat = gain.reshape(nodes, -1)
    best = flat.argmax(axis=1)
    has_gain = flat[np.arange(nodes), best] > 1e-9
    return best // bins, np.where(has_gain, best % bins, bins)
