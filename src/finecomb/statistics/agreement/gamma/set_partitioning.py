r"""The best alignment as a set-partitioning problem.

With n annotators there are C = n(n - 1)/2 pairs, and a pair with a missing mark costs Delta, whether one or both are
missing. So a cluster S (a unitary alignment) costs $\Delta + \frac{1}{C} \sum_{u, v \in S} (d_{uv} - \Delta)$ over
pairs of its marks, and the best alignment partitions the marks at the least total cost. Here Delta is 1.

Distances and prices are whole multiples of a power of two, so small that nobody sees it and so large that every sum of
them is exact. So it does not matter in which order a library adds up, and with how many threads.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Bools, Continuum, Floats, Ints
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity


@dataclass(frozen=True)
class AlignmentProblem:
    """Marks and what it costs to put two of them into one cluster. Annotators without marks have no number here."""

    owner: Ints
    """(U,): annotator of each mark, 0 to m - 1, ascending."""
    distance: Floats
    """(U, U): d / C, 0 between marks of one annotator, which never meet."""
    kind: Ints
    """(U,): the same number for marks with the same interval and category."""
    gain: float
    """1 / C, what a pair without distance saves; C are the pairs of all annotators."""
    annotators: int
    """n, with those who marked nothing."""
    grain: float
    """The power of two of which distances and prices are multiples."""

    def __len__(self) -> int:
        return len(self.owner)

    @functools.cached_property
    def marks(self) -> list[Ints]:
        """The marks of each annotator."""
        return np.split(np.arange(len(self)), np.flatnonzero(np.diff(self.owner)) + 1)

    @functools.cached_property
    def joint_costs(self) -> Floats:
        """(U, U): what a pair adds to the cost of its cluster, (d - 1) / C; 0 between marks of one annotator."""
        apart = self.owner[:, None] != self.owner
        return np.where(apart, self.distance - self.gain, 0.0)

    def costs(self, clusters: Bools) -> Floats:
        """Of each cluster, (K, U) to (K,)."""
        members = clusters.astype(np.float64)
        return np.asarray(1 + ((members @ self.joint_costs) * members).sum(axis=1) / 2)

    def max_cluster_count(self, upper: float) -> float:
        """No partition that costs at most `upper` has more.

        A cluster of k marks costs at least 1 - k(k - 1) / n(n - 1), which is no less than 1 - k / n.
        """
        return min(len(self), upper + len(self) / self.annotators)


def build_alignment_problem(marks: Continuum, dissimilarity: Dissimilarity) -> AlignmentProblem:
    """What is to be solved for a continuum of two annotators or more.

    A pair with d > C + n - 1 is never worth its cluster: splitting off one of the two saves d - 1, loses at most n - 2
    with the others and costs C for the new cluster. No lower limit is safe, since others near both may pay for a pair.
    What lies beyond is cut off at C + n, so that numbers stay small.
    """
    n = marks.annotators
    pairs = n * (n - 1) / 2
    apart = np.minimum(dissimilarity.combined_dissimilarity(marks) / dissimilarity.delta, pairs + n) / pairs
    _, owner = np.unique(marks.owner, return_inverse=True)
    apart[owner[:, None] == owner] = 0.0
    looks = np.stack([marks.start, marks.end, marks.category.astype(np.float64)])
    _, kind = np.unique(looks, axis=1, return_inverse=True)
    grain = _rounding_grain(len(marks), n)
    distance, gain = round_down_to_grain(apart, grain), float(round_down_to_grain(np.array(1 / pairs), grain))
    return AlignmentProblem(owner.astype(np.int64), distance, kind.astype(np.int64), gain, n, grain)


def _rounding_grain(marks: int, annotators: int) -> float:
    """The least power of two whose multiples add up exactly: no sum is above 4 for each mark and pair in a cluster.

    Two bits of the 53 are spared, since searches halve distances.
    """
    largest = 4.0 * (annotators * annotators + marks)
    return 2.0 ** (math.ceil(math.log2(largest)) - 51)


def round_down_to_grain(values: Floats, grain: float) -> Floats:
    """The next multiples of `grain` below."""
    return np.asarray(np.floor(values / grain) * grain)
