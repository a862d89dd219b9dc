"""Tests of platform tasks: each ends with its last text and belongs to the latest arrival by then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.platform_batches import finished_batches, is_batch_finished


def make_arrival(at: float, session: str) -> Arrival:
    return Arrival("a", at, ArrivalSource("mturk", "W1", "HIT", session))


def test_each_task_belongs_to_the_session_that_was_open() -> None:
    batches = finished_batches([make_arrival(0, "s1"), make_arrival(10, "s2"), make_arrival(20, "s3")], [5, 15], 1)
    assert [(one.number, one.source.session, one.texts) for one in batches] == [(1, "s1", 1), (2, "s2", 1)]
    assert is_batch_finished(batches, make_arrival(0, "s2").source)
    assert not is_batch_finished(batches, make_arrival(0, "s3").source)


def test_a_task_that_was_given_back_is_gone_on_with_in_the_next() -> None:
    batches = finished_batches([make_arrival(0, "s1"), make_arrival(10, "s2")], [5, 15], 2)
    assert [one.source.session for one in batches] == ["s2"]


@given(st.lists(st.floats(0, 100), max_size=20), st.integers(1, 5))
def test_there_are_as_many_as_texts_make_full_tasks(times: list[float], size: int) -> None:
    batches = finished_batches([make_arrival(0, "s1")], times, size)
    assert len(batches) == len(times) // size
    assert [one.at for one in batches] == sorted(times)[size - 1 :: size]
