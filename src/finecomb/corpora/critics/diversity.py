"""Diversity in latent space, which separates mode collapse, copying and short texts.

The Latent NLL rewards likely documents, so a system that repeats the most likely document has the best value. Deng et
al. (2022, Appendix A) name the missing complement, a measure of diversity. The table compares the documents of a system
with the same number of real ones:

- entropy of the aggregated posterior: of the states of all documents, or, if z is a vector, of the normal distribution
  with the covariance of its points;
- coverage: share of the states or topics of real documents that the system uses at all;
- precision and recall: share of generated documents whose z lies among real ones, and vice versa. Vectors lie within
  the distance to the third neighbour (Kynkaanniemi et al. 2019). Sequences have only transitions that occur on the
  other side.

All values depend on the number of documents, so both sides are cut to the same number. The row `real` compares two
halves of the real documents, which is what a perfect system would reach.
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
_MAX_P_VALUE = 0.05  # a state that a system never uses is listed if its p-value is below this limit


class Diversity(NamedTuple):
    """Diversity of a set of documents, compared with the same number of real ones."""

    entropy: float
    """Entropy in nats."""
    coverage: float
    precision: float
    recall: float


def diversity_rows(result: Criticism, draws: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield one row per system and one for two halves of the real documents, with intervals over documents."""
    rng = np.random.default_rng([seed, zlib.crc32(result.critic.name.encode())])
    order = rng.permutation(len(result.real.points))
    real = [result.real.points[position] for position in order]
    half = len(real) // 2
    sides = {"real": real[:half], **{name: list(scores.points) for name, scores in result.systems.items()}}
    for name, points in sides.items():
        reference = real[half:] if name == "real" else real
        yield {
            "critic": result.critic.name,
            "system": name,
            **_diversity_row(points, reference, result.real.discrete, draws, rng),
        }


def _diversity_row(
    points: Sequence[Z], real: Sequence[Z], discrete: bool, draws: int, rng: np.random.Generator
) -> dict[str, object]:
    size = min(len(points), len(real))
    if size < _MIN_DOCUMENTS:
        return {"documents": size, "why": f"diversity needs at least {_MIN_DOCUMENTS} documents per side, found {size}"}
    within = _share_of_known_paths if discrete else _share_near_others
    measured: list[Diversity] = []
    for _ in range(max(1, min(draws, _MAX_DRAWS) // 10)):
        ours, theirs = (_draw_points(side, size, rng, replace=False) for side in (points, real))
        entropy, coverage = aggregate_entropy(ours, discrete), coverage_of_real(ours, theirs, discrete)
        measured.append(Diversity(entropy, coverage, within(ours, theirs), within(theirs, ours)))
    value = Diversity(*np.mean(measured, axis=0))
    differences: list[float] = []
    for _ in range(min(draws, _MAX_DRAWS)):
        ours, theirs = (_draw_points(side, size, rng, replace=True) for side in (points, real))
        differences.append(aggregate_entropy(ours, discrete) - aggregate_entropy(theirs, discrete))
    low, high = percentile_interval(np.array(differences, float))
    return {
        "documents": size, "entropy": value.entropy,
        "entropy - real": float(np.mean(differences)) if differences else math.nan,
        "low": low, "high": high, "coverage": value.coverage, "precision": value.precision, "recall": value.recall,
    }  # fmt: skip


def _draw_points(points: Sequence[Z], size: int, rng: np.random.Generator, replace: bool) -> list[Z]:
    return [points[position] for position in rng.choice(len(points), size, replace=replace)]


def aggregate_entropy(points: Sequence[Z], discrete: bool) -> float:
    """Return the entropy of the aggregated posterior in nats."""
    if discrete:
        counts = np.array(list(Counter(_state_without_entity(state) for z in points for state in z).values()), float)
        return float(special.entr(counts / counts.sum()).sum())
    vectors = np.stack(points)
    covariance = np.atleast_2d(np.cov(vectors, rowvar=False))
    ridge = 1e-6 * max(float(np.trace(covariance)) / len(covariance), 1e-12)
    sign, log_determinant = np.linalg.slogdet(covariance + ridge * np.eye(len(covariance)))
    return float(0.5 * (len(covariance) * math.log(2 * math.pi * math.e) + log_determinant)) if sign > 0 else math.nan


def coverage_of_real(points: Sequence[Z], real: Sequence[Z], discrete: bool) -> float:
    """Return the share of the states, or of the largest coordinates, of real documents that occur in `points`."""
    ours, theirs = usage_shares(points, discrete), usage_shares(real, discrete)
    return sum(share for name, share in theirs.items() if ours.get(name, 0) > 0)


def usage_shares(points: Sequence[Z], discrete: bool) -> dict[str, float]:
    """Return the share of each state or, for vectors, the share of documents in which each coordinate is largest."""
    names = (
        [_state_without_entity(state) for z in points for state in z]
        if discrete
        else [f"{int(np.argmax(z))}" for z in points]
    )
    counts = Counter(names)
    return {name: count / len(names) for name, count in counts.items()}


def _share_of_known_paths(points: Sequence[Z], others: Sequence[Z]) -> float:
    """Return the share of sequences in `points` whose transitions all occur in `others`."""
    known = {pair for z in others for pair in _transitions(z)}
    return float(np.mean([all(pair in known for pair in _transitions(z)) for z in points]))


def _state_without_entity(state: object) -> str:
    """Return a state without its entity number: `she` for `she:4`."""
    return str(state).partition(":")[0]


def _transitions(z: Sequence[object]) -> list[tuple[str, str]]:
    symbols = list(map(_state_without_entity, z))
    return list(zip((BEGIN, *symbols), (*symbols, END), strict=True))


def _share_near_others(points: Sequence[Z], others: Sequence[Z]) -> float:
    """Return the share of vectors that are closer to one of `others` than that one's third-nearest neighbour."""
    vectors, centres = np.stack(points), np.stack(others)
    count = min(_NEIGHBOUR_RANK, len(centres) - 1)
    radii: Floats = np.sort(spatial.distance.cdist(centres, centres), axis=1)[:, count]
    return float((spatial.distance.cdist(vectors, centres) <= radii * (1 + 1e-12)).any(axis=1).mean())


# --- states that a system never uses -----------------------------------------------------------------------------


def unused_state_rows(result: Criticism) -> Iterator[dict[str, object]]:
    """Yield states, topics and section sequences of real documents that a system never uses, most frequent first.

    `p` is the probability that a system distributed like the real documents never uses the state in as many documents.
    Rows with a large `p` are omitted.
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
    """Return the number of documents with each state and each section sequence, or with each main topic."""
    if not scores.discrete:
        return {"main topic": Counter(f"{int(np.argmax(z))}" for z in scores.points)}
    return {
        "state": Counter(state for z in scores.points for state in set(map(_state_without_entity, z))),
        "organisation": Counter(" > ".join(map(_state_without_entity, z)) for z in scores.points),
    }
