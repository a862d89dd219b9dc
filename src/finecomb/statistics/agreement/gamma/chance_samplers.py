"""Samplers of chance annotations: two methods of drawing a random continuum similar to the observed one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finecomb.statistics.agreement.gamma.continuum import Continuum

_MIN_MARK_LENGTH = 1e-6


def shuffle_continuum(marks: Continuum, rng: np.random.Generator) -> Continuum:
    """Draw a chance continuum: a randomly drawn annotator, shifted by a random distance, replaces each annotator.

    Mathet et al. (2015), section 5.2. Marks shifted beyond the end of the text continue at its start. Any two distances
    differ by at least half a mean mark length, if the text is long enough. If none of the drawn annotators has a mark,
    the draw is repeated.
    """
    # Shift of each annotator in whole characters
    shifts = np.zeros(marks.annotators)
    distances = np.arange(max(int(marks.length), 1))
    min_distance = float((marks.end - marks.start).mean()) / 2
    free = np.ones(len(distances), dtype=bool)
    for annotator in range(marks.annotators):
        shifts[annotator] = rng.choice(distances[free] if free.any() else distances)
        free &= np.abs(distances - shifts[annotator]) >= min_distance
    donors = rng.integers(marks.annotators, size=marks.annotators)
    while not np.isin(marks.owner, donors).any():
        donors = rng.integers(marks.annotators, size=marks.annotators)
    donated = [np.flatnonzero(marks.owner == donor) for donor in donors]
    positions = np.concatenate(donated)
    owner = np.repeat(np.arange(marks.annotators), [len(part) for part in donated])
    move = shifts[owner]
    move = np.where(marks.start[positions] + move > marks.length, move - marks.length, move)
    start, end = marks.start[positions] + move, marks.end[positions] + move
    return Continuum.from_arrays(marks.annotators, marks.length, owner, start, end, marks.category[positions])


def simulate_continuum(marks: Continuum, rng: np.random.Generator) -> Continuum:
    """Draw a chance continuum from normal distributions with the observed means and variances.

    This is the statistical sampler of pygamma-agreement (Titeux and Riad 2021). It draws numbers of marks, gaps and
    lengths. Categories are drawn with their observed frequencies, and the first annotator has at least one mark.
    """
    same = np.diff(marks.owner) == 0
    between = (marks.start[1:] - marks.end[:-1])[same]
    first = marks.start[np.concatenate([[True], ~same])]
    lengths, gaps = marks.end - marks.start, np.concatenate([[0.0], between, first[first > 0]])
    counts = np.bincount(marks.owner, minlength=marks.annotators)
    numbers = np.abs(rng.normal(counts.mean(), counts.std(), marks.annotators).astype(np.int64))
    numbers[0] = max(numbers[0], 1)
    total = int(numbers.sum())
    long = np.maximum(np.abs(rng.normal(lengths.mean(), lengths.std(), total)), _MIN_MARK_LENGTH)
    steps = rng.normal(gaps.mean(), gaps.std(), total) + long  # from the end of one mark to the end of the next
    owner = np.repeat(np.arange(marks.annotators), numbers)
    # Cumulative sums that restart for each annotator
    total_steps = np.cumsum(steps)
    end = total_steps - np.repeat(np.concatenate([[0.0], total_steps])[np.cumsum(numbers) - numbers], numbers)
    category = rng.choice(marks.category, size=total)
    return Continuum.from_arrays(marks.annotators, marks.length, owner, end - long, end, category)


CHANCE_SAMPLERS: dict[str, Callable[[Continuum, np.random.Generator], Continuum]] = {
    "shuffle": shuffle_continuum,
    "statistical": simulate_continuum,
}
