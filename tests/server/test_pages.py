"""The pages' files as the server sends them."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from finecomb.server.pages import _Assets


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    folder = tmp_path / "assets"
    folder.mkdir()
    for name, content in {"app.js": "plain", "app.js.br": "small", "app.js.gz": "smaller", "tiny.css": "p{}"}.items():
        (folder / name).write_text(content)
    return TestClient(_Assets(directory=tmp_path))


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
