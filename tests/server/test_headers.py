"""Tests of request limits (hosts, NUL, size) and of internal errors, after which the connection stays open."""

from __future__ import annotations

import logging
from typing import Any

import fastapi.testclient
import pytest

from finecomb.collection import access_storage
from finecomb.collection.database.store import Store
from finecomb.server.app import create_app
from tests.databases import Client


def browser(store: Store, base_url: str, **settings: Any) -> fastapi.testclient.TestClient:
    return fastapi.testclient.TestClient(create_app(store, **settings), base_url=base_url)


@pytest.mark.parametrize(
    ("host", "status"), [("study.example", 401), ("127.0.0.1:8000", 401), ("evil.example", 403), ("", 403)]
)
def test_only_known_hosts_are_answered(store: Store, host: str, status: int) -> None:
    client = browser(store, "http://study.example", hosts={"study.example", "127.0.0.1"})
    assert client.get("/api/me", headers={"host": host}).status_code == status


@pytest.mark.parametrize("path", ["/api/tasks/a%00b", "/api/admin/document?id=a%00b", "/api/join/a%00b"])
def test_a_nul_is_refused_before_it_reaches_a_database(store: Store, path: str) -> None:
    answer = Client(store).sign_in_researcher().get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "refused")


def test_a_nul_in_the_id_of_a_save_is_refused(store: Store) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()["id"]
    assert reader.save(task, "marks/a%00b", {"spans": [[0, 1]], "quotes": ["x"], "label": None})[0] == 422


def test_our_own_error_is_an_answer_and_names_no_token(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    client = fastapi.testclient.TestClient(create_app(store))  # would raise exceptions that are not handled
    monkeypatch.setattr(access_storage, "find_valid_link_kind", broken)
    with caplog.at_level(logging.ERROR):
        answer = client.get("/api/join/secret-token")
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")
    assert "secret-token" not in caplog.text
    assert "/api/join/{token}" in caplog.text


def test_https_brings_strict_transport_and_cookies_of_this_host_only(store: Store) -> None:
    client = browser(store, "https://study.example", origin="https://study.example")
    answer = client.post(f"/api/join/{access_storage.get_open_link_token(store)}")
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    cookies = answer.headers.get_list("set-cookie")
    assert cookies
    assert all(cookie.startswith("__Host-") and "; Secure" in cookie and "Path=/;" in cookie for cookie in cookies)


def test_what_is_too_large_says_that_the_connection_ends(store: Store) -> None:
    reader = Client(store).join_study()
    answer = reader.put("/api/steps/x", content=b"x" * 1_000_001)
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
