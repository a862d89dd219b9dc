"""Tests of the daily maintenance."""

from __future__ import annotations

import time

from finecomb.collection import task_storage
from finecomb.collection.database import tables
from finecomb.collection.database.store import Store
from finecomb.server.housekeeping import run_housekeeping
from tests.databases import Client, FakeClock


def count_changes(store: Store) -> int:
    with store.database.read_transaction() as transaction:
        return len(transaction.fetch_all(tables.change.select().where(tables.change.c.version > 0)))


def wait_for_changes(count: int, store: Store) -> None:
    deadline = time.monotonic() + 30
    while count_changes(store) != count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert count_changes(store) == count


def test_old_changes_are_forgotten_at_the_start_and_again_later(store: Store, clock: FakeClock) -> None:
    before = count_changes(store)  # changes of other studies in the same database
    reader = Client(store).join_study()
    reader.submit_without_errors(reader.next_task()["id"])
    clock.now += task_storage.CHANGE_RETENTION_SECONDS + 1
    assert count_changes(store) == before + 1
    with run_housekeeping(store, every=0.05):
        wait_for_changes(before, store)
        reader.submit_without_errors(reader.next_task()["id"])
        assert count_changes(store) == before + 1
        clock.now += task_storage.CHANGE_RETENTION_SECONDS + 1
        wait_for_changes(before, store)
