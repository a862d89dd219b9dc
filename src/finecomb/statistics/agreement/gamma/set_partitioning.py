r"""Best alignment as a set-partitioning problem.

With n annotators there are C = n(n - 1)/2 pairs. A pair in which one or both marks are missing costs Delta. A cluster S
(a unitary alignment) therefore costs $\Delta + \frac{1}{C} \sum_{u, v \in S} (d_{uv} - \Delta)$ over pairs of its
marks, and the best alignment partitions the marks at the lowest total cost. Here Delta is 1.

Distances and prices are multiples of a power of two that is negligibly small but large enough for all sums to be exact.
Results therefore do not depend on the order of summation or the number of threads.
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
    """Marks, and the costs of placing two marks in one cluster. Annotators without marks have no number."""

    owner: Ints
    """(U,): annotator of each mark, 0 to m - 1, ascending."""
    distance: Floats
    """(U, U): distances d / C; 0 between marks of the same annotator, which are never in one cluster."""
    kind: Ints
    """(U,): number shared by marks with the same interval and category."""
    gain: float
    """1 / C, the amount that a pair at distance 0 saves, where C is the number of pairs of annotators."""
    annotators: int
    """Number of annotators (n), including those without marks."""
    grain: float
    """Power of two that divides all distances and prices."""

    def __len__(self) -> int:
        return len(self.owner)

    @functools.cached_property
    def marks(self) -> list[Ints]:
        """Marks of each annotator."""
        return np.split(np.arange(len(self)), np.flatnonzero(np.diff(self.owner)) + 1)

    @functools.cached_property
    def joint_costs(self) -> Floats:
        """(U, U): cost (d - 1) / C that a pair adds to its cluster; 0 between marks of the same annotator."""
        is_pair = self.owner[:, None] != self.owner
        return np.where(is_pair, self.distance - self.gain, 0.0)

    def cluster_costs(self, clusters: Bools) -> Floats:
        """Compute the cost of each cluster, (K, U) to (K,)."""
        members = clusters.astype(np.float64)
        return np.asarray(1 + ((members @ self.joint_costs) * members).sum(axis=1) / 2)

    def max_cluster_count(self, upper: float) -> float:
        """Return the maximum number of clusters in a partition that costs at most `upper`.

        A cluster of k marks costs at least 1 - k(k - 1) / n(n - 1), which is at least 1 - k / n.
        """
        return min(len(self), upper + len(self) / self.annotators)


def build_alignment_problem(marks: Continuum, dissimilarity: Dissimilarity) -> AlignmentProblem:
    """Build the alignment problem of a continuum with at least two annotators.

    A pair with d > C + n - 1 is never in the same cluster: separating the two marks saves d - 1, loses at most n - 2
    with the other marks and costs C for the new cluster. A lower limit is not safe, since other marks close to both can
    compensate for the distance. Larger distances are capped at C + n to keep numbers small.
    """
    n = marks.annotators
    pairs = n * (n - 1) / 2
    distances = np.minimum(dissimilarity.combined_dissimilarity(marks) / dissimilarity.delta, pairs + n) / pairs
    _, owner = np.unique(marks.owner, return_inverse=True)
    distances[owner[:, None] == owner] = 0.0
    appearance = np.stack([marks.start, marks.end, marks.category.astype(np.float64)])
    _, kind = np.unique(appearance, axis=1, return_inverse=True)
    # Smallest power of two whose multiples add up exactly. Sums are at most 4 per mark and pair in a cluster. Two
    # of the 53 bits are reserved, since searches halve distances.
    largest = 4.0 * (n * n + len(marks))
    grain = 2.0 ** (math.ceil(math.log2(largest)) - 51)
    distance, gain = round_down_to_grain(distances, grain), float(round_down_to_grain(np.array(1 / pairs), grain))
    return AlignmentProblem(owner.astype(np.int64), distance, kind.astype(np.int64), gain, n, grain)


def round_down_to_grain(values: Floats, grain: float) -> Floats:
    """Round values down to multiples of `grain`."""
    return np.asarray(np.floor(values / grain) * grain)
