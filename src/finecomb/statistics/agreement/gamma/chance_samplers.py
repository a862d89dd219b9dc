"""What annotators would have marked by chance: the two ways of drawing a continuum like the one at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Continuum, Floats, Ints

_MIN_LENGTH = 1e-6


def shuffle_continuum(marks: Continuum, rng: np.random.Generator) -> Continuum:
    """Each annotator becomes one of the annotators drawn at random, moved along the text by a random distance.

    Mathet et al. (2015), section 5.2. What leaves the text at its end comes in again at the beginning. No two distances
    lie nearer to each other than half a mark, as long as the text has room. Drawn again when nobody has a mark.
    """
    pivots = _draw_annotator_shifts(marks, rng)
    donors = rng.integers(marks.annotators, size=marks.annotators)
    while not np.isin(marks.owner, donors).any():
        donors = rng.integers(marks.annotators, size=marks.annotators)
    donated = [np.flatnonzero(marks.owner == donor) for donor in donors]
    positions = np.concatenate(donated)
    owner = np.repeat(np.arange(marks.annotators), [len(positions) for positions in donated])
    move = pivots[owner]
    move = np.where(marks.start[positions] + move > marks.length, move - marks.length, move)
    return Continuum.from_arrays(
        marks.annotators,
        marks.length,
        owner,
        marks.start[positions] + move,
        marks.end[positions] + move,
        marks.category[positions],
    )


def _draw_annotator_shifts(marks: Continuum, rng: np.random.Generator) -> Floats:
    """How far each annotator is moved: whole characters, (annotators,)."""
    apart = float((marks.end - marks.start).mean()) / 2
    places = np.arange(max(int(marks.length), 1))
    free = np.ones(len(places), dtype=bool)
    pivots = np.zeros(marks.annotators)
    for annotator in range(marks.annotators):
        choice = places[free] if free.any() else places
        pivots[annotator] = rng.choice(choice)
        free &= np.abs(places - pivots[annotator]) >= apart
    return pivots


def simulate_continuum(marks: Continuum, rng: np.random.Generator) -> Continuum:
    """Numbers of marks, gaps and lengths from normal distributions with the moments of those at hand.

    The statistical sampler of pygamma-agreement (Titeux and Riad 2021). Categories are as frequent as at hand, and the
    first annotator has at least one mark.
    """
    lengths, gaps = marks.end - marks.start, _mark_gaps(marks)
    counts = np.bincount(marks.owner, minlength=marks.annotators)
    numbers = np.abs(rng.normal(counts.mean(), counts.std(), marks.annotators).astype(np.int64))
    numbers[0] = max(numbers[0], 1)
    total = int(numbers.sum())
    long = np.maximum(np.abs(rng.normal(lengths.mean(), lengths.std(), total)), _MIN_LENGTH)
    steps = rng.normal(gaps.mean(), gaps.std(), total) + long  # from the end of one to the end of the next
    owner = np.repeat(np.arange(marks.annotators), numbers)
    end = _cumsum_by_annotator(steps, numbers)
    category = rng.choice(marks.category, size=total)
    return Continuum.from_arrays(marks.annotators, marks.length, owner, end - long, end, category)


def _mark_gaps(marks: Continuum) -> Floats:
    """From each mark to the next of the same annotator, and from the beginning of the text to the first; and one 0."""
    same = np.diff(marks.owner) == 0
    between = (marks.start[1:] - marks.end[:-1])[same]
    first = marks.start[np.concatenate([[True], ~same])]
    return np.concatenate([[0.0], between, first[first > 0]])


def _cumsum_by_annotator(steps: Floats, numbers: Ints) -> Floats:
    """Cumulative sums that begin anew for each annotator."""
    total = np.cumsum(steps)
    before = np.concatenate([[0.0], total])[np.cumsum(numbers) - numbers]
    return np.asarray(total - np.repeat(before, numbers))


SAMPLERS: dict[str, Callable[[Continuum, np.random.Generator], Continuum]] = {
    "shuffle": shuffle_continuum,
    "statistical": simulate_continuum,
}
