"""A copied or restored database does not keep its author's sign-in."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.collection import access_storage
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.place_binding import end_sessions_if_moved
from finecomb.collection.database.store import open_store
from tests.databases import Client, FakeClock, new_study_location, open_test_store


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A database that was served, in which an owner and an annotator are signed in."""
    fc.write(fc.demo(readers=2), tmp_path / "study")
    fc.links(tmp_path / "study", new=1)
    store = open_store(parse_location(tmp_path / "study" / "study.db"))
    store.run_job_sync(end_sessions_if_moved)
    owner = Client(store).sign_in_researcher("owner", "ann")
    assert owner.get("/api/admin/session").status_code == 200
    store.close()
    return tmp_path / "study" / "study.db"


def session_count(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("SELECT count(*) FROM session").fetchone()[0])


def serve_once(file: Path) -> bool:
    store = open_store(parse_location(file))
    try:
        return store.run_job_sync(end_sessions_if_moved)
    finally:
        store.close()


def test_a_restart_in_the_same_place_keeps_everyone_signed_in(served: Path) -> None:
    assert not serve_once(served)
    assert session_count(served) == 1


def test_a_copy_signs_everyone_out(served: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(served, copy)
    assert session_count(copy) == 1
    assert serve_once(copy)
    assert session_count(copy) == 0
    assert session_count(served) == 1


def test_a_restored_backup_signs_everyone_out(served: Path, tmp_path: Path) -> None:
    backup = fc.backup(served.parent, output=tmp_path / "copy.db")
    fc.restore(backup, served.parent, force=True)
    assert session_count(served) == 0
    fc.write(fc.demo(readers=2), tmp_path / "other")
    fc.restore(backup, tmp_path / "other")
    assert session_count(tmp_path / "other" / "study.db") == 0


def test_serve_says_that_everyone_has_to_sign_in_again(served: Path, tmp_path: Path) -> None:
    shutil.copytree(served.parent, tmp_path / "moved")
    with fc.serve(tmp_path / "moved", port=0) as server:
        assert any("everyone has to sign in again" in note for note in server.notes)
    with fc.serve(tmp_path / "moved", port=0) as server:
        assert not any("everyone has to sign in again" in note for note in server.notes)


@pytest.mark.parametrize("years", [10, -10])
def test_an_annotator_signs_in_by_their_link_after_the_clock_jumped(tmp_path: Path, years: int) -> None:
    clock = FakeClock()
    with open_test_store(new_study_location("sqlite", tmp_path), list(fc.demo(readers=2).items()), clock) as store:
        token = store.run_job_sync(access_storage.create_link_token, "annotator", "reader-1")
        client = Client(store)
        assert client.post(f"/api/join/{token}").status_code == 200
        clock.now += years * 365 * 86400
        assert client.get("/api/me").status_code in (200, 401)
        assert Client(store).post(f"/api/join/{token}").status_code == 200
