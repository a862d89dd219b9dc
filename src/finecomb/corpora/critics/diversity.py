"""Diversity in latent space: collapse, copying and shortness told apart.

The Latent NLL asks whether documents are likely, and a system that writes the likeliest document again and again does
best. Deng et al. (2022, Appendix A) name what is missing, a measure of diversity. Here are, for the documents of a
system and for as many real ones:

- the entropy of the aggregated posterior: of the states of all documents, or, where z is a vector, of the normal
  distribution with the covariance of its points;
- coverage: how much of what real documents use (the share of their states, or of their topics) the system uses at all;
- precision and recall: the share of generated documents whose z lies among real ones, and of real documents whose z
  lies among generated ones. Of vectors: within the distance to the third neighbour (Kynkaanniemi et al. 2019). Of
  sequences: all of whose transitions occur on the other side.

All of it depends on how many documents there are, so both sides are cut to the same number, and the row `real` compares
two halves of the real documents: what a perfect system would reach.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import spatial, special

from finecomb.corpora.critics.base import CriticScores
from finecomb.corpora.critics.criticism import Criticism
from finecomb.corpora.critics.posteriors import Floats, Z
from finecomb.corpora.critics.priors import BEGIN, END
from finecomb.statistics.inference.resampling import percentile_interval

_NEIGHBOUR_RANK, _MAX_DRAWS, _MIN_DOCUMENTS = 3, 200, 4
_MAX_P_VALUE = 0.05  # something that a system never uses is listed if that would happen by chance less often


class Diversity(NamedTuple):
    """How varied documents are, beside as many real ones."""

    entropy: float
    """In nats."""
    coverage: float
    precision: float
    recall: float


def diversity_rows(result: Criticism, draws: int, seed: int) -> Iterator[dict[str, object]]:
    """A row for each system, and one for halves of the real documents; intervals resample documents."""
    rng = np.random.default_rng([seed, zlib.crc32(result.critic.name.encode())])
    order = rng.permutation(len(result.real.points))
    real = [result.real.points[at] for at in order]
    half = len(real) // 2
    sides = {"real": real[:half], **{name: list(scores.points) for name, scores in result.systems.items()}}
    for name, points in sides.items():
        others = real[half:] if name == "real" else real
        yield {
            "critic": result.critic.name,
            "system": name,
            **_diversity_row(points, others, result.real.discrete, draws, rng),
        }


def _diversity_row(
    points: Sequence[Z], real: Sequence[Z], discrete: bool, draws: int, rng: np.random.Generator
) -> dict[str, object]:
    size = min(len(points), len(real))
    if size < _MIN_DOCUMENTS:
        return {"documents": size, "why": f"{size} documents on a side, and {_MIN_DOCUMENTS} are needed"}
    measured = [
        _measure_diversity(points, real, size, discrete, rng) for _ in range(max(1, min(draws, _MAX_DRAWS) // 10))
    ]
    value = Diversity(*np.mean(measured, axis=0))
    apart = [_entropy_difference(points, real, size, discrete, rng) for _ in range(min(draws, _MAX_DRAWS))]
    low, high = percentile_interval(np.array(apart, float))
    return {
        "documents": size, "entropy": value.entropy, "entropy - real": float(np.mean(apart)) if apart else math.nan,
        "low": low, "high": high, "coverage": value.coverage, "precision": value.precision, "recall": value.recall,
    }  # fmt: skip


def _draw_points(points: Sequence[Z], size: int, rng: np.random.Generator, replace: bool) -> list[Z]:
    return [points[at] for at in rng.choice(len(points), size, replace=replace)]


def _entropy_difference(
    points: Sequence[Z], real: Sequence[Z], size: int, discrete: bool, rng: np.random.Generator
) -> float:
    sides = (_draw_points(side, size, rng, replace=True) for side in (points, real))
    first, second = (entropy(side, discrete) for side in sides)
    return first - second


def _measure_diversity(
    points: Sequence[Z], real: Sequence[Z], size: int, discrete: bool, rng: np.random.Generator
) -> Diversity:
    ours, theirs = (_draw_points(side, size, rng, replace=False) for side in (points, real))
    within = _share_of_known_paths if discrete else _share_near_others
    return Diversity(
        entropy(ours, discrete), coverage(ours, theirs, discrete), within(ours, theirs), within(theirs, ours)
    )


def entropy(points: Sequence[Z], discrete: bool) -> float:
    """Of the aggregated posterior, in nats."""
    if discrete:
        counts = np.array(list(Counter(_symbol(state) for z in points for state in z).values()), float)
        return float(special.entr(counts / counts.sum()).sum())
    vectors = np.stack(points)
    covariance = np.atleast_2d(np.cov(vectors, rowvar=False))
    ridge = 1e-6 * max(float(np.trace(covariance)) / len(covariance), 1e-12)
    sign, log_determinant = np.linalg.slogdet(covariance + ridge * np.eye(len(covariance)))
    return float(0.5 * (len(covariance) * math.log(2 * math.pi * math.e) + log_determinant)) if sign > 0 else math.nan


def coverage(points: Sequence[Z], real: Sequence[Z], discrete: bool) -> float:
    """The share of what real documents use that occurs in these documents too."""
    ours, theirs = usage_shares(points, discrete), usage_shares(real, discrete)
    return sum(share for name, share in theirs.items() if ours.get(name, 0) > 0)


def usage_shares(points: Sequence[Z], discrete: bool) -> dict[str, float]:
    """The share of each state, or of each coordinate that is the largest of a document's vector."""
    names = [_symbol(state) for z in points for state in z] if discrete else [f"{int(np.argmax(z))}" for z in points]
    counts = Counter(names)
    return {name: count / len(names) for name, count in counts.items()}


def _share_of_known_paths(points: Sequence[Z], others: Sequence[Z]) -> float:
    """The share of sequences all of whose transitions occur among the others."""
    known = {pair for z in others for pair in _transitions(z)}
    return float(np.mean([all(pair in known for pair in _transitions(z)) for z in points]))


def _symbol(state: object) -> str:
    """A state without the number of its person: `she` of `she:4`."""
    return str(state).partition(":")[0]


def _transitions(z: Sequence[object]) -> list[tuple[str, str]]:
    symbols = list(map(_symbol, z))
    return list(zip((BEGIN, *symbols), (*symbols, END), strict=True))


def _share_near_others(points: Sequence[Z], others: Sequence[Z]) -> float:
    """The share of vectors that lie within the ball of one of the others, out to its third neighbour."""
    vectors, centres = np.stack(points), np.stack(others)
    count = min(_NEIGHBOUR_RANK, len(centres) - 1)
    radii: Floats = np.sort(spatial.distance.cdist(centres, centres), axis=1)[:, count]
    return float((spatial.distance.cdist(vectors, centres) <= radii * (1 + 1e-12)).any(axis=1).mean())


# --- what a system never uses ------------------------------------------------------------------------------------


def never_used_rows(result: Criticism) -> Iterator[dict[str, object]]:
    """States, topics and whole organisations that real documents have and a system never uses, the commonest first.

    `p` is how often a system that wrote as people do would never use it, with so many documents; rare things are left
    out.
    """
    for kind, real in _document_counts_by_kind(result.real).items():
        for system, scores in result.systems.items():
            ours = _document_counts_by_kind(scores)[kind]
            for name, count in real.most_common():
                p = (1 - count / max(1, len(result.real.ids))) ** len(scores.ids)
                if name not in ours and p < _MAX_P_VALUE:
                    share = 100 * count / len(result.real.ids)
                    yield {
                        "critic": result.critic.name, "system": system, "kind": kind, "never used": name,
                        "percent of real documents": share, "p": p,
                    }  # fmt: skip


def _document_counts_by_kind(scores: CriticScores) -> dict[str, Counter[str]]:
    """In how many documents each state and each organisation, or each main topic, occurs."""
    if not scores.discrete:
        return {"main topic": Counter(f"{int(np.argmax(z))}" for z in scores.points)}
    return {
        "state": Counter(state for z in scores.points for state in set(map(_symbol, z))),
        "organisation": Counter(" > ".join(map(_symbol, z)) for z in scores.points),
    }
