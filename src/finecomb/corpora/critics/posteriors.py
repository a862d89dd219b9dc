"""Posteriors P(z | x) of a critic: point, samples, factorised, Gaussian and Dirichlet."""

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
"""Text span `[start, end)` of each step; empty if steps have no position in the text."""
Z = Any
"""Latent value: a sequence of states (strings, or any values that the prior accepts) or a vector of floats."""


@dataclass(frozen=True, slots=True)
class PointPosterior:
    """Posterior with all mass on one z, e.g. from a lookup or as the most probable z."""

    z: Z
    spans: Spans = ()

    def point_estimate(self) -> Z:
        """Return z itself."""
        return self.z

    def entropy(self) -> float:
        """Return 0 for states and NaN (undefined) for vectors."""
        return math.nan if isinstance(self.z, np.ndarray) and self.z.dtype.kind == "f" else 0.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples from P(z | x), all with the same number of steps."""

    zs: Sequence[Z]
    spans: Spans = ()

    def point_estimate(self) -> Z:
        """Return the mean of vectors, or the most frequent sequence of states (ties: the first)."""
        if isinstance(self.zs[0], np.ndarray) and self.zs[0].dtype.kind == "f":
            return np.mean(self.zs, axis=0)
        return Counter(tuple(z) for z in self.zs).most_common(1)[0][0]

    def entropy(self) -> float:
        """Return NaN, since the entropy cannot be estimated from a few samples."""
        return math.nan


@dataclass(frozen=True, slots=True)
class Factorised:
    r"""Independent steps, $\prod_m P(z_m | x_m)$, each with a distribution over the same states."""

    states: tuple[str, ...]
    probabilities: Floats
    """Probabilities of shape (steps, states); rows sum to one."""
    spans: Spans = ()

    def point_estimate(self) -> tuple[str, ...]:
        """Return the most probable state of each step (MAP)."""
        return tuple(self.states[state] for state in self.probabilities.argmax(axis=1))

    def entropy(self) -> float:
        """Return the sum of the entropies of the steps."""
        return float(special.entr(self.probabilities).sum())


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Normal distribution with independent coordinates, as in variational inference."""

    mean: Floats
    """Mean of shape (K,)."""
    variance: Floats
    """Positive variances of shape (K,)."""
    spans: Spans = ()

    def point_estimate(self) -> Floats:
        """Return the mean."""
        return self.mean

    def entropy(self) -> float:
        """Return the differential entropy in nats."""
        return float(0.5 * np.log(2 * np.pi * np.e * self.variance).sum())


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """Dirichlet distribution over proportions."""

    alpha: Floats
    """Positive parameters of shape (K,)."""
    spans: Spans = ()

    def point_estimate(self) -> Floats:
        """Return the mean; the mode is on the boundary if an alpha is below one."""
        mean: Floats = self.alpha / self.alpha.sum()
        return mean

    def entropy(self) -> float:
        """Return the differential entropy in nats."""
        normaliser = special.gammaln(self.alpha).sum() - special.gammaln(self.alpha.sum())
        return float(normaliser - ((self.alpha - 1) * dirichlet_expected_log(self.alpha)).sum())


def dirichlet_expected_log(alpha: Floats) -> Floats:
    """Return E[log z] of a Dirichlet in closed form, because draws underflow for small alpha."""
    result: Floats = special.digamma(alpha) - special.digamma(alpha.sum())
    return result


Posterior = PointPosterior | Samples | Factorised | Gaussian | Dirichlet
