"""Tasks on a recruiting platform, such as HITs: groups of texts that are paid together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from finecomb.collection.arrivals import Arrival, ArrivalSource

_TIME_TOLERANCE_SECONDS = 1e-5  # records store times to the microsecond


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """Platform task whose texts were all submitted."""

    number: int
    """Number of the task, counted from 1 for each person."""
    texts: int
    source: ArrivalSource
    """Source of the person's latest arrival before they finished the task."""
    at: float
    """Time at which the last text of the task was submitted."""


def finished_batches(arrivals: Iterable[Arrival], submitted: Iterable[float], size: int) -> list[FinishedBatch]:
    """Return the platform tasks that a person finished, from their arrivals and submission times.

    Every `size`-th text finishes the task of the person's latest arrival. A person who returns a task and
    accepts another continues in the new one.
    """
    came, times = sorted(arrivals, key=lambda arrival: arrival.at), sorted(submitted)
    finished = []
    for number in range(1, len(times) // size + 1):
        at = times[number * size - 1]
        before = [arrival for arrival in came if arrival.at <= at + _TIME_TOLERANCE_SECONDS]
        finished.append(FinishedBatch(number, size, before[-1].source if before else ArrivalSource(), at))
    return finished


def is_batch_finished(batches: Iterable[FinishedBatch], source: ArrivalSource) -> bool:
    """Return whether the platform task of an arrival is finished, so that the person needs another task to continue."""
    return any(batch.source.session == source.session for batch in batches)
