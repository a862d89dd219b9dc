"""Tests of saved changes: each is applied once, and the content of a task is limited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from finecomb.collection import task_storage
from finecomb.collection.database.store import Store
from tests.databases import KINDS, Client, FakeClock, demo_items, new_study_location, open_test_store

MONTH = 31 * 24 * 3600


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    with open_test_store(new_study_location(request.param, tmp_path), demo_items(), clock) as store:
        yield store


def mark(task: Any, start: int = 0) -> dict[str, Any]:
    return {"spans": [[start, start + 4]], "quotes": [task["text"][start : start + 4]], "label": "incoherent"}


def test_a_change_id_with_another_body_is_refused(store: Store) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()
    assert reader.save(task["id"], "marks/m", mark(task), change="c")[0] == 200
    assert reader.save(task["id"], "marks/m", mark(task), change="c") == (200, {"change": "c", "version": 1})
    for entry, body in (("marks/m", mark(task, 5)), ("marks/n", mark(task)), ("marks/m", None)):
        code, answer = reader.save(task["id"], entry, body, change="c")
        assert (code, answer["code"]) == (409, "conflict")
    code, _ = reader.finish(task["id"], change="c")
    assert code == 409
    entries = reader.get(f"/api/tasks/{task['id']}").json()
    assert [(entry["id"], entry["version"]) for entry in entries["marks"]] == [("m", 1)]
    assert entries["status"] == "draft"


def test_old_changes_are_forgotten_and_never_applied_again(store: Store, clock: FakeClock) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()["id"]
    assert reader.save(task, "answers", {"no_errors": True}, change="old")[0] == 200
    assert reader.finish(task)[0] == 200
    clock.now += MONTH / 2
    assert store.run_job_sync(task_storage.forget_old_changes) == 0
    clock.now += MONTH / 2
    assert store.run_job_sync(task_storage.forget_old_changes) == 1
    assert store.run_job_sync(task_storage.forget_old_changes) == 0
    assert reader.finish(task, verb="reopen")[0] == 200
    assert reader.save(task, "answers", None, base=1)[0] == 200
    assert reader.save(task, "answers", {"no_errors": True}, change="old")[0] == 409
    assert reader.get(f"/api/tasks/{task}").json()["answers"] is None


def test_an_old_handing_in_is_not_done_again(store: Store, clock: FakeClock) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()["id"]
    reader.save(task, "answers", {"no_errors": True})
    assert reader.finish(task, change="first")[0] == 200
    clock.now += MONTH + 1
    assert store.run_job_sync(task_storage.forget_old_changes) == 1
    assert reader.finish(task, verb="reopen", change="again")[0] == 200
    assert reader.finish(task, change="first")[0] == 200  # gets the response of the first request, and changes nothing
    assert reader.get(f"/api/tasks/{task}").json()["status"] == "draft"
    assert reader.finish(task)[0] == 200
    assert reader.finish(task, verb="reopen", change="again")[0] == 200
    assert reader.get(f"/api/tasks/{task}").json()["status"] == "submitted"


def test_a_stale_change_is_refused_in_words(store: Store, clock: FakeClock) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()
    reader.save(task["id"], "marks/m", mark(task), change="old")
    reader.save(task["id"], "marks/m", mark(task, 7), base=1)
    body = mark(task, 7) | {"answers": {"severity": 1, "explanation": "so"}}
    assert reader.save(task["id"], "marks/m", body, base=2)[0] == 200
    assert reader.finish(task["id"])[0] == 200
    clock.now += MONTH + 1
    store.run_job_sync(task_storage.forget_old_changes)
    assert reader.finish(task["id"], verb="reopen")[0] == 200
    code, answer = reader.save(task["id"], "marks/m", mark(task), change="old")
    assert (code, answer["code"], "outdated version" in answer["say"]) == (409, "conflict", True)


def test_the_same_mark_over_and_over_is_refused(store: Store) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()
    codes, answers = zip(*(reader.save(task["id"], f"marks/m{n}", mark(task)) for n in range(3)), strict=True)
    assert codes == (200, 422, 422)
    assert "already marked these words" in answers[1]["say"]
    assert answers[1]["stored"]["id"] == "m0"  # the page can offer to edit the first mark
    assert reader.save(task["id"], "marks/other", mark(task, 7))[0] == 200


def test_one_task_takes_only_so_much(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_storage, "MAX_ENTRIES", 3)
    reader = Client(store).join_study()
    task = reader.next_task()
    codes = [reader.save(task["id"], f"marks/m{n}", mark(task, n))[0] for n in range(5)]
    assert codes == [200, 200, 200, 422, 422]
