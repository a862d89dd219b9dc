"""Several processes that serve one study from PostgreSQL agree: here two stores, as two processes would have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fastapi.testclient
import pytest

from finecomb.server.app import create_app
from finecomb.server.auth import TOKEN
from finecomb.store import access, researcher_actions
from finecomb.store.store import Store, open_store
from tests.databases import Client, demo_items, new_place


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    where = new_place("postgresql", tmp_path)
    one, two = open_store(where, demo_items()), open_store(where)
    yield one, two
    one.close()
    two.close()


def same_browser(client: Client, store: Store) -> fastapi.testclient.TestClient:
    """The browser of `client`, answered by another process."""
    other = fastapi.testclient.TestClient(create_app(store), base_url="http://study.test")
    other.cookies, other.headers[TOKEN] = client.cookies, client.headers[TOKEN]
    return other


def test_a_pause_holds_everywhere_at_once(stores: tuple[Store, Store]) -> None:
    one, two = stores
    reader = Client(one).joined()
    task = reader.next()["id"]
    elsewhere = same_browser(reader, two)
    body = {"change": "a", "base": 0, "body": {"no_errors": True}}
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body).status_code == 200
    one.change_now(researcher_actions.set_state, "tests", "paused")
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body | {"change": "b", "base": 1}).status_code == 423
    assert elsewhere.put(f"/api/tasks/{task}/finish", json={"change": "c"}).status_code == 423


def test_a_revoked_link_signs_out_everywhere(stores: tuple[Store, Store]) -> None:
    one, two = stores
    (link,) = one.change_now(researcher_actions.make_links, "tests", 0, ("ann",))
    reader = Client(one).joined(link.token)
    task = reader.next()["id"]
    elsewhere = same_browser(reader, two)
    assert elsewhere.get("/api/me").status_code == 200
    one.change_now(researcher_actions.revoke_links, "tests", "ann")
    body = {"change": "a", "base": 0, "body": {"no_errors": True}}
    assert elsewhere.put(f"/api/tasks/{task}/answers", json=body).status_code == 401
    assert elsewhere.get("/api/me").status_code == 401


def test_tries_are_counted_together(stores: tuple[Store, Store]) -> None:
    one, two = stores
    counts = [store.do_now(access.count_attempt, "wrong-link", "here") for store in (one, two, one, two)]
    assert counts == [1, 2, 3, 4]
