"""Tests of the page files as sent by the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from finecomb.collection.database.store import Store
from finecomb.server.app import create_app
from finecomb.server.pages import CachedStaticFiles


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    folder = tmp_path / "assets"
    folder.mkdir()
    for name, content in {"app.js": "plain", "app.js.br": "small", "app.js.gz": "smaller", "tiny.css": "p{}"}.items():
        (folder / name).write_text(content)
    return TestClient(CachedStaticFiles(directory=tmp_path))


@pytest.mark.parametrize(
    ("accepted", "encoding", "length"),
    [("gzip, br", "br", 5), ("gzip;q=1.0", "gzip", 7), ("identity", None, 5), ("", None, 5)],
)
def test_scripts_go_out_as_the_build_compressed_them(
    client: TestClient, accepted: str, encoding: str | None, length: int
) -> None:
    with client.stream("GET", "/assets/app.js", headers={"accept-encoding": accepted}) as response:
        assert response.headers.get("content-encoding") == encoding
        assert int(response.headers["content-length"]) == length
        assert response.headers["content-type"].startswith("text/javascript")
        assert "immutable" in response.headers["cache-control"]


def test_what_was_not_compressed_is_sent_as_it_is(client: TestClient) -> None:
    response = client.get("/assets/tiny.css", headers={"accept-encoding": "br"})
    assert (response.text, response.headers.get("content-encoding")) == ("p{}", None)


def test_a_browser_gets_words_on_a_page_and_a_program_a_problem(store: Store) -> None:
    client = TestClient(create_app(store))
    browser = {"accept": "text/html,application/xhtml+xml"}
    page = client.get("/nowhere", headers=browser)
    assert page.status_code == 404
    assert '<html lang="en">' in page.text
    assert "<title>Page not found · Finecomb</title>" in page.text
    used = client.post("/sign-in/used-before", headers=browser)
    assert used.status_code >= 400
    assert used.text.startswith("<!doctype html>")
    assert client.get("/nowhere").json()["code"] == "not-found"
    assert client.get("/api/nowhere", headers=browser).json()["code"] == "not-found"
