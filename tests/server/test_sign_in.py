"""Tests of sign-in and rejected sign-ins."""

from __future__ import annotations

import pytest

from finecomb.collection import researcher_actions_storage
from finecomb.collection.database.store import Store
from finecomb.server.auth import CSRF_HEADER
from tests.databases import Client


def test_a_researchers_link_works_once_and_looking_at_it_does_not_use_it_up(store: Store) -> None:
    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "tests", "ann", "editor")
    first, second = Client(store), Client(store)
    page = first.get(f"/sign-in/{token}").text
    assert "Sign in" in page
    assert 'href="/plain.css"' in page
    assert first.get("/plain.css").headers["content-type"].startswith("text/css")
    assert "Sign in" in first.get(f"/sign-in/{token}").text  # viewing the page does not use up the link
    assert first.post(f"/sign-in/{token}", follow_redirects=False).headers["location"] == "/admin"
    assert first.get("/api/admin/session").json()["role"] == "editor"
    assert second.post(f"/sign-in/{token}").json()["code"] == "not-found"
    for path in (token, "unknown"):
        assert second.get(f"/sign-in/{path}").status_code == 404
        assert "<h1>This link is not valid</h1>" in second.get(f"/sign-in/{path}").text


def test_signed_out_people_are_told_which_link_to_use(client: Client) -> None:
    assert "Open your link again" in client.get("/api/me").json()["say"]
    assert "Sign in with a new link" in client.get("/api/admin/session").json()["say"]


@pytest.mark.parametrize("headers", [{}, {CSRF_HEADER: "wrong"}])
def test_a_change_without_the_token_is_refused(client: Client, headers: dict[str, str]) -> None:
    client.sign_in_researcher()
    del client.headers[CSRF_HEADER]
    answer = client.post("/api/admin/leave", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed")
