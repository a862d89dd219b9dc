"""Stock priors over z: Markov, Gaussian and Dirichlet. A prior gives log P(z) step by step, and its expectation."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.posteriors import (
    Dirichlet,
    Factorised,
    Floats,
    Gaussian,
    Posterior,
    Z,
    dirichlet_expected_log,
)

BEGIN, END = "<s>", "</s>"
SavedState = dict[str, typing.Any]
"""What a prior or critic consists of: JSON values and NumPy arrays by name, so that it is stored without pickle."""


class ProjectionError(FinecombError):
    """Why one document has no place in a critic's latent space; such documents are counted, never dropped silently."""


class Prior(typing.Protocol):
    """P(z), fitted."""

    def log_prob(self, z: Z) -> Floats:
        """log P of each step, (steps,)."""
        ...

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Expectation of the same under a posterior that is neither a point nor samples, (steps,)."""
        ...

    def step_names(self, z: Z) -> Sequence[str]:
        """What each step is called."""
        ...

    def most_probable_states(self, z: Z) -> Sequence[tuple[str, float]]:
        """Of each step, given what came before it: the state that the prior expected most, and its log P."""
        ...


def posterior_mismatch_error(prior: Prior, posterior: Posterior) -> TypeError:
    """A critic's mistake: its posterior does not go with its prior."""
    return TypeError(f"a {type(prior).__name__} prior has no expectation under a {type(posterior).__name__} posterior")


@dataclass(frozen=True)
class Markov:
    """A first-order chain over named states, from a begin state and, if `ends`, into an end state."""

    states: tuple[str, ...]
    log_transitions: Floats
    """(1 + states, states + 1): from begin or a state, to a state or the end; rows sum to one in probability."""
    ends: bool = True

    @classmethod
    def fit(
        cls, paths: Iterable[Sequence[str]], states: Sequence[str] = (), add: float = 1.0, ends: bool = True
    ) -> Markov:
        """From sequences of states, with `add` put to every count; the states are those seen unless given."""
        paths = [tuple(path) for path in paths]
        states = tuple(states) or tuple(sorted({state for path in paths for state in path}))
        return cls.from_counts(states, transition_counts(paths, states), add, ends)

    @classmethod
    def from_counts(cls, states: Sequence[str], counts: Floats, add: float, ends: bool = True) -> Markov:
        """From counts of shape (1 + states, states + 1); without an end its column is left out."""
        smoothed = counts + add
        if not ends:
            smoothed[:, -1] = 0
        totals = smoothed.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            return cls(tuple(states), np.log(smoothed / np.where(totals > 0, totals, 1)), ends)

    @functools.cached_property
    def _index_by_state(self) -> dict[str, int]:
        return {state: at for at, state in enumerate(self.states)}

    @property
    def index_by_state(self) -> dict[str, int]:
        """Where each state stands."""
        return self._index_by_state

    def transition_indices(self, z: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each transition of `z` in `log_transitions`."""
        if not len(z):
            raise ProjectionError("has no steps")
        unseen = [state for state in z if state not in self._index_by_state]
        if unseen:
            raise ProjectionError(f"state {unseen[0]!r} was never seen when the critic was fitted")
        at = np.array([self._index_by_state[state] for state in z])
        rows, columns = np.concatenate([[0], at + 1]), np.concatenate([at, [len(self.states)]])
        return (rows, columns) if self.ends else (rows[:-1], columns[:-1])

    def log_prob(self, z: Sequence[str]) -> Floats:
        """log P(z_m | z_{m-1}) of each transition."""
        result: Floats = self.log_transitions[self.transition_indices(z)]
        return result

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Under independent steps: the sum over both ends of P(z_{m-1}) P(z_m) log P(z_m | z_{m-1})."""
        if not isinstance(posterior, Factorised) or posterior.states != self.states:
            raise posterior_mismatch_error(self, posterior)
        p, last = posterior.probabilities, len(self.states)
        begin, end = np.zeros((1, last + 1)), np.zeros((1, last + 1))
        begin[0, 0] = end[0, -1] = 1
        rows = np.concatenate([begin, np.pad(p, ((0, 0), (1, 0)))])  # (steps + 1, 1 + states)
        columns = np.concatenate([np.pad(p, ((0, 0), (0, 1))), end])
        if not self.ends:
            rows, columns = rows[:-1], columns[:-1]
        impossible = np.isneginf(self.log_transitions)
        value = ((rows @ np.where(impossible, 0, self.log_transitions)) * columns).sum(axis=1)
        reached = ((rows @ impossible) * columns).sum(axis=1) > 0
        result: Floats = np.where(reached, -np.inf, value)
        return result

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """The states, and the end."""
        return (*z, END) if self.ends else tuple(z)

    def most_probable_states(self, z: Sequence[str]) -> Sequence[tuple[str, float]]:
        """The most probable successor of each predecessor."""
        rows = self.log_transitions[self.transition_indices(z)[0]]
        best = rows.argmax(axis=1)
        called = (*self.states, END)
        return [(called[at], float(row[at])) for at, row in zip(best, rows, strict=True)]

    def state(self) -> SavedState:
        """For storage."""
        return {"states": list(self.states), "log_transitions": self.log_transitions, "ends": self.ends}

    @classmethod
    def from_state(cls, state: SavedState) -> Markov:
        """From storage."""
        return cls(tuple(state["states"]), state["log_transitions"], state["ends"])


def transition_counts(paths: Iterable[Sequence[str]], states: Sequence[str]) -> Floats:
    """How often each state follows each, (1 + states, states + 1): first row the begin, last column the end.

    A transition from or into a state that is not listed is not counted.

    >>> transition_counts([["a", "b"], ["a"]], ["a", "b"]).tolist()
    [[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    index = {state: at for at, state in enumerate(states)}
    counts = np.zeros((len(states) + 1, len(states) + 1))
    for path in paths:
        at = [index.get(state, -1) for state in path]
        rows, columns = np.array([0, *(place + 1 if place >= 0 else -1 for place in at)]), np.array([*at, len(states)])
        known = (rows >= 0) & (columns >= 0)
        np.add.at(counts, (rows[known], columns[known]), 1)
    return counts


@dataclass(frozen=True)
class GaussianPrior:
    """A multivariate normal over vectors; the whole vector is one step."""

    mean: Floats
    covariance: Floats

    @classmethod
    def fit(cls, vectors: Floats, ridge: float = 1e-6) -> GaussianPrior:
        """Mean and covariance of (documents, K) vectors, with `ridge` of the mean variance on the diagonal."""
        covariance = np.atleast_2d(np.cov(vectors, rowvar=False))
        scale = float(np.trace(covariance)) / len(covariance)
        if not scale > 0:
            raise FinecombError("all vectors are equal, so no Gaussian can be fitted to them")
        return cls(vectors.mean(axis=0), covariance + ridge * scale * np.eye(len(covariance)))

    @functools.cached_property
    def _cholesky(self) -> Floats:
        lower: Floats = linalg.cholesky(self.covariance, lower=True)
        return lower

    @functools.cached_property
    def _precisions(self) -> Floats:
        """The diagonal of the inverse covariance."""
        inverse = linalg.cho_solve((self._cholesky, True), np.eye(len(self.mean)))
        diagonal: Floats = np.diag(inverse).copy()
        return diagonal

    def log_prob(self, z: Floats) -> Floats:
        """The log density, as one step."""
        if len(z) != len(self.mean):
            raise ProjectionError(f"has a vector of {len(z)} numbers where the critic has {len(self.mean)}")
        scaled = linalg.solve_triangular(self._cholesky, z - self.mean, lower=True)
        logdet = 2 * np.log(np.diag(self._cholesky)).sum()
        return np.array([-0.5 * (len(z) * np.log(2 * np.pi) + logdet + scaled @ scaled)])

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """The density at the mean, less half the variances weighted by the precisions."""
        if not isinstance(posterior, Gaussian):
            raise posterior_mismatch_error(self, posterior)
        result: Floats = self.log_prob(posterior.mean) - 0.5 * self._precisions @ posterior.variance
        return result

    def step_names(self, z: Floats) -> Sequence[str]:
        """One step, called `document`."""
        return ("document",)

    def most_probable_states(self, z: Floats) -> Sequence[tuple[str, float]]:
        """The mean."""
        return [("mean", float(self.log_prob(self.mean)[0]))]

    def state(self) -> SavedState:
        """For storage."""
        return {"mean": self.mean, "covariance": self.covariance}

    @classmethod
    def from_state(cls, state: SavedState) -> GaussianPrior:
        """From storage."""
        return cls(state["mean"], state["covariance"])


@dataclass(frozen=True)
class DirichletPrior:
    """A Dirichlet over proportions; the whole vector is one step."""

    alpha: Floats

    @classmethod
    def fit(cls, counts: Floats, iterations: int = 500) -> DirichletPrior:
        """Maximum likelihood from (documents, K) counts by Minka's fixed point (2000, section 3)."""
        totals = counts.sum(axis=1, keepdims=True)
        alpha = counts.sum(axis=0) / counts.sum() + 1e-3
        for _ in range(iterations):
            top = (special.digamma(counts + alpha) - special.digamma(alpha)).sum(axis=0)
            bottom = (special.digamma(totals + alpha.sum()) - special.digamma(alpha.sum())).sum()
            new = np.maximum(alpha * top / bottom, 1e-6)
            if np.allclose(new, alpha, rtol=1e-8, atol=0):
                break
            alpha = np.minimum(new, 1e6)
        return cls(alpha)

    def _log_normaliser(self) -> float:
        return float(special.gammaln(self.alpha.sum()) - special.gammaln(self.alpha).sum())

    def log_prob(self, z: Floats) -> Floats:
        """The log density, as one step."""
        return np.array([self._log_normaliser() + special.xlogy(self.alpha - 1, z).sum()])

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """In closed form through E[log z]."""
        if not isinstance(posterior, Dirichlet):
            raise posterior_mismatch_error(self, posterior)
        return np.array([self._log_normaliser() + ((self.alpha - 1) * dirichlet_expected_log(posterior.alpha)).sum()])

    def step_names(self, z: Floats) -> Sequence[str]:
        """One step, called `document`."""
        return ("document",)

    def most_probable_states(self, z: Floats) -> Sequence[tuple[str, float]]:
        """The mean."""
        mean = self.alpha / self.alpha.sum()
        return [("mean", float(self.log_prob(mean)[0]))]

    def state(self) -> SavedState:
        """For storage."""
        return {"alpha": self.alpha}

    @classmethod
    def from_state(cls, state: SavedState) -> DirichletPrior:
        """From storage."""
        return cls(state["alpha"])
