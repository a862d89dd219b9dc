"""Tasks on a platform (a HIT, a session) of so many texts: which are finished, and what each is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from finecomb.collection.arrivals import Arrival, ArrivalSource

_ROUNDING = 1e-5  # seconds: times of records are kept to the microsecond


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """One task on a platform whose texts were all handed in."""

    number: int
    """Counted from 1 for each person."""
    texts: int
    source: ArrivalSource
    """How its worker came to it."""
    at: float
    """When its last text was handed in."""


def finished_batches(arrivals: Iterable[Arrival], submitted: Iterable[float], size: int) -> list[FinishedBatch]:
    """The finished tasks of one person, who came at `arrivals` and handed texts in at the times `submitted`.

    A task is finished by every `size`-th text; it is the one that the person had come for last by then. Somebody who
    gives a task back and takes another goes on in that one.
    """
    came, times = sorted(arrivals, key=lambda arrival: arrival.at), sorted(submitted)
    return [
        FinishedBatch(number, size, _arrival_source_at(came, times[number * size - 1]), times[number * size - 1])
        for number in range(1, len(times) // size + 1)
    ]


def _arrival_source_at(came: Sequence[Arrival], when: float) -> ArrivalSource:
    before = [arrival for arrival in came if arrival.at <= when + _ROUNDING]
    return before[-1].source if before else ArrivalSource()


def is_batch_finished(batches: Iterable[FinishedBatch], source: ArrivalSource) -> bool:
    """Whether the task that somebody came for is finished, so that they need another one to go on."""
    return any(batch.source.session == source.session for batch in batches)
