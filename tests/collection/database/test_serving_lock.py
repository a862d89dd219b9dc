"""Tests of the serving lock, and of database files that are moved away."""

from __future__ import annotations

from pathlib import Path

import pytest

from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.serving_lock import StudyInUseError, hold_study_lock, lock_file_path
from tests.databases import Client, FakeClock, demo_items, open_test_store


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    where = parse_location(tmp_path / DATABASE_FILENAME)
    message = r"in use by finecomb serve, process \d+; stop that process first"
    with (
        hold_study_lock(where, "serve"),
        pytest.raises(StudyInUseError, match=message),
        hold_study_lock(where, "restore"),
    ):
        pass
    with hold_study_lock(where, "restore"):
        pass
    path = lock_file_path(where)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_several_may_serve_from_postgresql() -> None:
    where = parse_location("postgresql://db.example/lab#harbour")
    with hold_study_lock(where, "serve"), hold_study_lock(where, "serve"):
        pass


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_file_that_is_gone_is_noticed_before_the_next_acknowledgement(tmp_path: Path, how: str) -> None:
    file = tmp_path / DATABASE_FILENAME
    with open_test_store(parse_location(file), demo_items(), FakeClock()) as store:
        reader = Client(store).join_study()
        task = reader.next_task()["id"]
        assert reader.save(task, "answers", {"no_errors": True}, change="first")[0] == 200
        content = file.read_bytes()
        moved = file.rename(tmp_path / "elsewhere.db")
        if how == "replaced":
            file.write_bytes(content)
        elif how == "deleted":
            moved.unlink()
        code, answer = reader.save(task, "answers", {"no_errors": False}, base=1, change="second")
        assert code == 500
        assert answer["code"] == "failed"
        assert not file.exists() or how == "replaced"
        if how == "moved":
            moved.rename(file)
            assert reader.save(task, "answers", {"no_errors": False}, base=1, change="second")[0] == 200
