r"""Which text a person should read next, so that the interval of the overall mean shrinks most.

Texts lie in strata (systems, domains, or how far judges disagree). With $W_h$ the share of stratum h among all texts,
$s_h$ the standard deviation of its values and $n_h$ how many people have read, the variance of the stratified mean is
$\sum_h W_h^2 s_h^2 / n_h$; Neyman (1934) makes $n_h$ proportional to $W_h s_h$. One text at a time that means: give one
of the stratum where $W_h^2 s_h^2 / (n_h (n_h + 1))$ is largest. A fixed share of texts is drawn at random from all
strata, so that no text ever has probability zero, and the probability with which a text was given is kept with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXPLORATION = 0.1
"""Share of texts that are drawn from all strata alike."""
FEWEST = 5
"""Texts that every stratum gets first."""


@dataclass(frozen=True, slots=True)
class TextOffer:
    """A text to be read next, and how likely it was to be this one."""

    text: int
    """Position among all texts."""
    stratum: int
    probability: float


def spreads(values: Sequence[Floats], prior: Floats | None = None) -> Floats:
    """Standard deviation of each stratum's values, (strata,), pulled towards the common one where there are few.

    `prior`, (strata,), is a guess of each, e.g. the spread of the judges' values there; it counts like four texts.
    Without it the guess is the common standard deviation. Never zero: a stratum of zeros may still hold an error.
    """
    degrees = np.array([max(len(each) - 1, 0) for each in values], dtype=np.float64)
    squares = np.array([float(((each - each.mean()) ** 2).sum()) if len(each) else 0.0 for each in values])
    common = squares.sum() / max(degrees.sum(), 1.0)
    guess = np.full(len(values), common) if prior is None else prior**2
    variances = (squares + 4 * guess) / (degrees + 4)
    least = max(common, float(guess.max(initial=0.0)), 1e-12) / 100
    return np.asarray(np.sqrt(np.maximum(variances, least)), dtype=np.float64)


def neyman_shares(sizes: Ints, deviations: Floats) -> Floats:
    """Share of people's reading that each stratum should get, (strata,): proportional to size times deviation."""
    weights = sizes * deviations
    total = weights.sum()
    if not total > 0:
        raise FinecombError("no stratum has any spread, so texts are as good as each other; give out fewest-first")
    return np.asarray(weights / total, dtype=np.float64)


def stratum_probabilities(
    sizes: Ints, counts: Ints, deviations: Floats, left: Ints, exploration: float = EXPLORATION
) -> Floats:
    """How likely the next text comes from each stratum, (strata,).

    `sizes` are all texts of each stratum, `counts` those read, `left` those that may still be given. Strata with fewer
    than five come first; then the one where the variance falls most has all but `exploration`, which is spread over
    what is left.
    """
    if not left.sum():
        raise FinecombError("no text is left to give out")
    open_ = left > 0
    even = np.where(open_, left, 0) / left.sum()
    shares = sizes / sizes.sum()
    drop = (shares * deviations) ** 2 / (np.maximum(counts, 1) * (np.maximum(counts, 1) + 1))
    drop = np.where(open_, np.where(counts < FEWEST, np.inf, drop), -np.inf)
    first = np.flatnonzero(drop == drop.max())
    if np.isinf(drop.max()):
        first = first[counts[first] == counts[first].min()]
    best = np.zeros(len(sizes))
    best[first] = 1 / len(first)
    return np.asarray((1 - exploration) * best + exploration * even, dtype=np.float64)


def next_offer(
    strata: Ints,
    read: Ints,
    deviations: Floats,
    rng: np.random.Generator,
    closed: Ints | None = None,
    exploration: float = EXPLORATION,
) -> TextOffer:
    """The text to give next: a stratum by `stratum_probabilities`, and any of its texts alike.

    `strata`, (N,), is the stratum of every text; `read` are the positions of texts that people have read or are
    reading; `closed` those that this person may not have.
    """
    gone = np.zeros(len(strata), dtype=np.bool_)
    gone[read] = True
    counts = np.bincount(strata[read], minlength=len(deviations))
    if closed is not None:
        gone[closed] = True
    left = np.bincount(strata[~gone], minlength=len(deviations))
    sizes = np.bincount(strata, minlength=len(deviations))
    chances = stratum_probabilities(sizes, counts, deviations, left, exploration)
    stratum = int(rng.choice(len(chances), p=chances))
    text = int(rng.choice(np.flatnonzero(~gone & (strata == stratum))))
    return TextOffer(text, stratum, float(chances[stratum] / left[stratum]))


def disagreement(judges: Floats) -> Floats:
    """How far judges differ on each text, (N,), in standard deviations of each judge: zeros for a single judge."""
    scale = judges.std(axis=1, keepdims=True)
    scaled = np.divide(judges - judges.mean(axis=1, keepdims=True), scale, out=np.zeros_like(judges), where=scale > 0)
    return np.asarray(scaled.std(axis=0), dtype=np.float64)


def cut(scores: Floats, parts: int) -> Ints:
    """Texts in as many parts of nearly equal size by a score, (N,): the lowest are 0. Equal scores stay together.

    >>> cut(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 5.0]), 3).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, parts + 1)[1:-1]))
    _, numbered = np.unique(np.searchsorted(edges, scores, side="left"), return_inverse=True)
    return numbered.astype(np.int64)


def crossed(*partitions: Ints) -> Ints:
    """Texts numbered by every combination that occurs of several partitions, (N,)."""
    _, numbered = np.unique(np.stack(partitions, axis=1), axis=0, return_inverse=True)
    return numbered.reshape(-1).astype(np.int64)
