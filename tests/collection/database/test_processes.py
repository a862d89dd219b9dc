"""Tests of several processes that serve one study from PostgreSQL, here as two stores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fastapi.testclient
import pytest
import sqlalchemy as sa

from finecomb.collection import access_storage, arrivals_storage, researcher_actions_storage
from finecomb.collection.database.store import Store, open_store
from finecomb.server.app import create_app
from finecomb.server.auth import CSRF_HEADER
from tests.databases import Client, demo_items, new_study_location


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    where = new_study_location("postgresql", tmp_path)
    one, two = open_store(where, demo_items()), open_store(where)
    yield one, two
    one.close()
    two.close()


def same_browser(client: Client, store: Store) -> fastapi.testclient.TestClient:
    """Return the browser of `client`, served by another process."""
    other = fastapi.testclient.TestClient(create_app(store), base_url="http://study.test")
    other.cookies, other.headers[CSRF_HEADER] = client.cookies, client.headers[CSRF_HEADER]
    return other


def test_a_pause_holds_everywhere_at_once(stores: tuple[Store, Store]) -> None:
    one, two = stores
    reader = Client(one).join_study()
    task = reader.next_task()["id"]
    elsewhere = same_browser(reader, two)
    body = {"change": "a", "base": 0, "body": {"no_errors": True}}
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body).status_code == 200
    one.run_study_change_sync(researcher_actions_storage.set_study_status, "tests", "paused")
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body | {"change": "b", "base": 1}).status_code == 423
    assert elsewhere.put(f"/api/tasks/{task}/finish", json={"change": "c"}).status_code == 423


def test_a_revoked_link_signs_out_everywhere(stores: tuple[Store, Store]) -> None:
    one, two = stores
    (link,) = one.run_study_change_sync(researcher_actions_storage.create_personal_links, "tests", 0, ("ann",))
    reader = Client(one).join_study(link.token)
    task = reader.next_task()["id"]
    elsewhere = same_browser(reader, two)
    assert elsewhere.get("/api/me").status_code == 200
    one.run_study_change_sync(researcher_actions_storage.revoke_annotator_links, "tests", "ann")
    body = {"change": "a", "base": 0, "body": {"no_errors": True}}
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body).status_code == 401
    assert elsewhere.get("/api/me").status_code == 401


def test_tries_are_counted_together(stores: tuple[Store, Store]) -> None:
    one, two = stores
    counts = [
        store.run_job_sync(access_storage.record_and_count_attempts, "wrong-link", "here")
        for store in (one, two, one, two)
    ]
    assert counts == [1, 2, 3, 4]


def test_who_signs_out_is_signed_out_everywhere(stores: tuple[Store, Store]) -> None:
    one, two = stores
    reader = Client(one).join_study()
    task = reader.next_task()["id"]
    elsewhere = same_browser(reader, two)
    assert elsewhere.get("/api/me").status_code == 200
    assert reader.post("/api/leave").status_code == 200
    elsewhere.cookies = reader_cookies = dict(elsewhere.cookies)
    assert reader_cookies
    body = {"change": "a", "base": 0, "body": {"no_errors": True}}
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body).status_code == 401
    assert elsewhere.put(f"/api/tasks/{task}/finish", json={"change": "b"}).status_code == 401
    assert elsewhere.post("/api/next").status_code == 401


def test_another_role_holds_everywhere(stores: tuple[Store, Store]) -> None:
    one, two = stores
    Client(one).sign_in_researcher("owner", "boss")
    reader = Client(one).sign_in_researcher("editor", "ann")
    elsewhere = same_browser(reader, two)
    assert elsewhere.put("/api/admin/state", json={"state": "open"}).status_code == 200
    again = one.run_job_sync(researcher_actions_storage.invite_researcher, "tests", "ann", "viewer")
    assert Client(one).post(f"/sign-in/{again}", follow_redirects=False).status_code == 303
    assert elsewhere.put("/api/admin/state", json={"state": "open"}).status_code == 403


def test_a_researcher_sees_at_once_what_was_done_through_another_process(stores: tuple[Store, Store]) -> None:
    one, two = stores
    owner = Client(one).sign_in_researcher()
    elsewhere = same_browser(owner, two)

    reader = Client(one).join_study()
    who = reader.get("/api/me").json()["annotator"]

    def is_excluded(client: fastapi.testclient.TestClient) -> bool:
        return client.get("/api/admin/annotator", params={"id": who}).json()["person"]["excluded"] is not None

    assert not is_excluded(owner)
    assert not is_excluded(elsewhere)
    assert owner.put("/api/admin/annotator/excluded", params={"id": who}, json={"reason": "x"}).status_code == 200
    assert is_excluded(elsewhere)
    assert elsewhere.delete("/api/admin/annotator/excluded", params={"id": who}).status_code == 200
    assert not is_excluded(owner)


def test_a_renewed_open_link_brings_the_worker_id_through_every_process(stores: tuple[Store, Store]) -> None:
    """A process that had not noticed a new link registered people without their origin."""
    one, two = stores
    settings = one.head.settings
    recruitment = settings.recruitment.model_copy(update={"platform": "prolific"})
    one.run_study_change_sync(
        researcher_actions_storage.update_settings, "tests", settings.model_copy(update={"recruitment": recruitment})
    )
    one.run_study_change_sync(researcher_actions_storage.replace_or_remove_open_link, "tests", True)
    token = access_storage.get_open_link_token(one)
    visitor = fastapi.testclient.TestClient(create_app(two), base_url="http://study.test")
    parameters = {"PROLIFIC_PID": "w1", "STUDY_ID": "s", "SESSION_ID": "t"}
    assert visitor.get(f"/api/join/{token}", params=parameters).status_code == 200
    assert visitor.post(f"/api/join/{token}", params=parameters).status_code == 200
    with two.database.read_transaction() as transaction:
        assert [arrival.source.worker for arrival in arrivals_storage.read_all_arrivals(two, transaction)] == ["w1"]


def test_few_connections_serve_many_readers_also_who_read_while_reading(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one connection per thread, many workers needed more than PostgreSQL allows."""
    database = stores[0].database
    monkeypatch.setattr("finecomb.collection.database.connection._READER_WAIT_SECONDS", 60)
    opened: list[object] = []
    connect = database.connect

    def counted() -> object:
        opened.append(None)
        return connect()

    monkeypatch.setattr(database, "connect", counted)

    def read(number: int) -> int:
        with database.read_transaction() as transaction:
            (answer,) = transaction.fetch_first(sa.select(sa.literal(number))) or (0,)
        return int(answer)

    with ThreadPoolExecutor(60) as pool:
        assert sorted(pool.map(read, range(300))) == list(range(300))
    assert len(opened) <= 16
    monkeypatch.setattr("finecomb.collection.database.connection._READER_WAIT_SECONDS", 0.05)
    with contextlib.ExitStack() as stack:
        for _ in range(18):  # more than there are reader slots: the last ones wait, then continue
            stack.enter_context(database.read_transaction())
