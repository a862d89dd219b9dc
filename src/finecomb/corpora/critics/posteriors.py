"""Where a critic places a document in its latent space: a point, samples, factors, a Gaussian or a Dirichlet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Spans = tuple[tuple[int, int], ...]
"""The text `[start, end)` that each step belongs to; empty where steps have no place in the text."""
Z = Any
"""A sequence of states (strings, or whatever the critic's prior reads), or a vector of floats."""


@dataclass(frozen=True, slots=True)
class PointPosterior:
    """One z and no doubt about it, as by look-up or by taking the most probable."""

    z: Z
    spans: Spans = ()

    def point_estimate(self) -> Z:
        """The z itself."""
        return self.z

    def entropy(self) -> float:
        """0 for states; the differential entropy of a point among vectors is undefined."""
        return math.nan if isinstance(self.z, np.ndarray) and self.z.dtype.kind == "f" else 0.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Draws from P(z | x), all of one number of steps."""

    zs: Sequence[Z]
    spans: Spans = ()

    def point_estimate(self) -> Z:
        """The mean of vectors; of states the sequence drawn most often, the first of several."""
        if isinstance(self.zs[0], np.ndarray) and self.zs[0].dtype.kind == "f":
            return np.mean(self.zs, axis=0)
        return Counter(tuple(z) for z in self.zs).most_common(1)[0][0]

    def entropy(self) -> float:
        """Undefined: a few draws do not tell it."""
        return math.nan


@dataclass(frozen=True, slots=True)
class Factorised:
    r"""$\prod_m P(z_m | x_m)$: each step has its own distribution over the same states."""

    states: tuple[str, ...]
    probabilities: Floats
    """(steps, states); rows sum to one."""
    spans: Spans = ()

    def point_estimate(self) -> tuple[str, ...]:
        """The most probable state of each step (MAP)."""
        return tuple(self.states[state] for state in self.probabilities.argmax(axis=1))

    def entropy(self) -> float:
        """Sum of the entropies of the steps."""
        return float(special.entr(self.probabilities).sum())


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A normal distribution of independent coordinates, as variational inference gives it."""

    mean: Floats
    """(K,)."""
    variance: Floats
    """(K,), positive."""
    spans: Spans = ()

    def point_estimate(self) -> Floats:
        """The mean."""
        return self.mean

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return float(0.5 * np.log(2 * np.pi * np.e * self.variance).sum())


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """A distribution over proportions."""

    alpha: Floats
    """(K,), positive."""
    spans: Spans = ()

    def point_estimate(self) -> Floats:
        """The mean; the mode lies on the border when an alpha is below one."""
        mean: Floats = self.alpha / self.alpha.sum()
        return mean

    def entropy(self) -> float:
        """Differential entropy in nats."""
        normaliser = special.gammaln(self.alpha).sum() - special.gammaln(self.alpha.sum())
        return float(normaliser - ((self.alpha - 1) * dirichlet_expected_log(self.alpha)).sum())


def dirichlet_expected_log(alpha: Floats) -> Floats:
    """E[log z] of a Dirichlet, in closed form: draws underflow when an alpha is small."""
    result: Floats = special.digamma(alpha) - special.digamma(alpha.sum())
    return result


Posterior = PointPosterior | Samples | Factorised | Gaussian | Dirichlet
