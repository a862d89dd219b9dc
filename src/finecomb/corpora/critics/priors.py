"""Built-in priors over z: Markov, Gaussian and Dirichlet, with log P(z) per step and its expectation."""

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
"""State of a prior or critic: JSON values and NumPy arrays by name, saved without pickle."""


class ProjectionError(FinecombError):
    """Reason why a critic cannot project a document; such documents are reported, never dropped silently."""


class Prior(typing.Protocol):
    """Interface of a fitted P(z)."""

    def log_prob(self, z: Z) -> Floats:
        """Return log P per step, shape (steps,)."""
        ...

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Return E log P per step under a posterior that is neither a point nor samples, shape (steps,)."""
        ...

    def step_names(self, z: Z) -> Sequence[str]:
        """Return the name of each step."""
        ...

    def most_probable_states(self, z: Z) -> Sequence[tuple[str, float]]:
        """Return the most probable state and its log P for each step, given the previous steps."""
        ...


def posterior_mismatch_error(prior: Prior, posterior: Posterior) -> TypeError:
    """Return the error to raise if a prior cannot compute the expectation under a type of posterior."""
    return TypeError(f"a {type(prior).__name__} prior has no expectation under a {type(posterior).__name__} posterior")


@dataclass(frozen=True)
class Markov:
    """First-order Markov chain over named states with a begin state and, if `ends`, an end state."""

    states: tuple[str, ...]
    log_transitions: Floats
    """Log probabilities from the begin state or a state to a state or the end, shape (1 + states, states + 1)."""
    ends: bool = True

    @classmethod
    def fit(
        cls, paths: Iterable[Sequence[str]], states: Sequence[str] = (), add: float = 1.0, ends: bool = True
    ) -> Markov:
        """Fit to sequences of states, with `add` added to each count; `states` defaults to those that occur."""
        paths = [tuple(path) for path in paths]
        states = tuple(states) or tuple(sorted({state for path in paths for state in path}))
        return cls.from_counts(states, transition_counts(paths, states), add, ends)

    @classmethod
    def from_counts(cls, states: Sequence[str], counts: Floats, add: float, ends: bool = True) -> Markov:
        """Build a chain from counts of shape (1 + states, states + 1). If it has no end, the last column is ignored."""
        smoothed = counts + add
        if not ends:
            smoothed[:, -1] = 0
        totals = smoothed.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            return cls(tuple(states), np.log(smoothed / np.where(totals > 0, totals, 1)), ends)

    @functools.cached_property
    def _index_by_state(self) -> dict[str, int]:
        return {state: index for index, state in enumerate(self.states)}

    @property
    def index_by_state(self) -> dict[str, int]:
        """Index of each state."""
        return self._index_by_state

    def transition_indices(self, z: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and column in `log_transitions` of each transition of `z`."""
        if not len(z):
            raise ProjectionError("has no steps")
        unseen = [state for state in z if state not in self._index_by_state]
        if unseen:
            raise ProjectionError(f"state {unseen[0]!r} does not occur in the fitting documents")
        indices = np.array([self._index_by_state[state] for state in z])
        rows, columns = np.concatenate([[0], indices + 1]), np.concatenate([indices, [len(self.states)]])
        return (rows, columns) if self.ends else (rows[:-1], columns[:-1])

    def log_prob(self, z: Sequence[str]) -> Floats:
        """Return log P(z_m | z_{m-1}) of each transition."""
        result: Floats = self.log_transitions[self.transition_indices(z)]
        return result

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Return the sum over state pairs of P(z_{m-1}) P(z_m) log P(z_m | z_{m-1}), for independent steps."""
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
        is_impossible = ((rows @ impossible) * columns).sum(axis=1) > 0
        result: Floats = np.where(is_impossible, -np.inf, value)
        return result

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """Return the states and the end state."""
        return (*z, END) if self.ends else tuple(z)

    def most_probable_states(self, z: Sequence[str]) -> Sequence[tuple[str, float]]:
        """Return the most probable successor of each state and its log P."""
        rows = self.log_transitions[self.transition_indices(z)[0]]
        best = rows.argmax(axis=1)
        state_names = (*self.states, END)
        return [(state_names[state], float(row[state])) for state, row in zip(best, rows, strict=True)]

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"states": list(self.states), "log_transitions": self.log_transitions, "ends": self.ends}

    @classmethod
    def from_state(cls, state: SavedState) -> Markov:
        """Rebuild the prior from its saved state."""
        return cls(tuple(state["states"]), state["log_transitions"], state["ends"])


def transition_counts(paths: Iterable[Sequence[str]], states: Sequence[str]) -> Floats:
    """Count transitions, shape (1 + states, states + 1), with begin as the first row and the end as the last column.

    Transitions from or to unlisted states are not counted.

    >>> transition_counts([["a", "b"], ["a"]], ["a", "b"]).tolist()
    [[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    index = {state: indices for indices, state in enumerate(states)}
    counts = np.zeros((len(states) + 1, len(states) + 1))
    for path in paths:
        indices = [index.get(state, -1) for state in path]
        rows, columns = (
            np.array([0, *(state_index + 1 if state_index >= 0 else -1 for state_index in indices)]),
            np.array([*indices, len(states)]),
        )
        known = (rows >= 0) & (columns >= 0)
        np.add.at(counts, (rows[known], columns[known]), 1)
    return counts


@dataclass(frozen=True)
class GaussianPrior:
    """Multivariate normal over vectors; a vector is one step."""

    mean: Floats
    covariance: Floats

    @classmethod
    def fit(cls, vectors: Floats, ridge: float = 1e-6) -> GaussianPrior:
        """Fit mean and covariance to (documents, K) vectors, adding `ridge` times the mean variance to the diagonal."""
        covariance = np.atleast_2d(np.cov(vectors, rowvar=False))
        scale = float(np.trace(covariance)) / len(covariance)
        if not scale > 0:
            raise FinecombError(
                "all documents have the same vector, so a Gaussian prior cannot be fitted; use documents "
                "with different vectors"
            )
        return cls(vectors.mean(axis=0), covariance + ridge * scale * np.eye(len(covariance)))

    @functools.cached_property
    def _cholesky(self) -> Floats:
        lower: Floats = linalg.cholesky(self.covariance, lower=True)
        return lower

    @functools.cached_property
    def _precisions(self) -> Floats:
        """Diagonal of the inverse covariance."""
        inverse = linalg.cho_solve((self._cholesky, True), np.eye(len(self.mean)))
        diagonal: Floats = np.diag(inverse).copy()
        return diagonal

    def log_prob(self, z: Floats) -> Floats:
        """Return the log density as one step."""
        if len(z) != len(self.mean):
            raise ProjectionError(f"has a vector of {len(z)} numbers; the critic expects {len(self.mean)}")
        scaled = linalg.solve_triangular(self._cholesky, z - self.mean, lower=True)
        logdet = 2 * np.log(np.diag(self._cholesky)).sum()
        return np.array([-0.5 * (len(z) * np.log(2 * np.pi) + logdet + scaled @ scaled)])

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Return the log density at the mean minus half the variances weighted by the precisions."""
        if not isinstance(posterior, Gaussian):
            raise posterior_mismatch_error(self, posterior)
        result: Floats = self.log_prob(posterior.mean) - 0.5 * self._precisions @ posterior.variance
        return result

    def step_names(self, z: Floats) -> Sequence[str]:
        """Return one step named `document`."""
        return ("document",)

    def most_probable_states(self, z: Floats) -> Sequence[tuple[str, float]]:
        """Return the mean and its log density."""
        return [("mean", float(self.log_prob(self.mean)[0]))]

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"mean": self.mean, "covariance": self.covariance}

    @classmethod
    def from_state(cls, state: SavedState) -> GaussianPrior:
        """Rebuild the prior from its saved state."""
        return cls(state["mean"], state["covariance"])


@dataclass(frozen=True)
class DirichletPrior:
    """Dirichlet prior over proportions; each vector counts as one step."""

    alpha: Floats

    @classmethod
    def fit(cls, counts: Floats, iterations: int = 500) -> DirichletPrior:
        """Fit to (documents, K) counts by maximum likelihood with Minka's fixed point (2000, section 3)."""
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
        """Return the log density as one step."""
        return np.array([self._log_normaliser() + special.xlogy(self.alpha - 1, z).sum()])

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Return the expectation in closed form from E[log z]."""
        if not isinstance(posterior, Dirichlet):
            raise posterior_mismatch_error(self, posterior)
        return np.array([self._log_normaliser() + ((self.alpha - 1) * dirichlet_expected_log(posterior.alpha)).sum()])

    def step_names(self, z: Floats) -> Sequence[str]:
        """Return one step named `document`."""
        return ("document",)

    def most_probable_states(self, z: Floats) -> Sequence[tuple[str, float]]:
        """Return the mean and its log density."""
        mean = self.alpha / self.alpha.sum()
        return [("mean", float(self.log_prob(mean)[0]))]

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"alpha": self.alpha}

    @classmethod
    def from_state(cls, state: SavedState) -> DirichletPrior:
        """Rebuild the prior from its saved state."""
        return cls(state["alpha"])
