"""Tests of the JSON log, which contains no content, personal data or tokens."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from finecomb.collection import access_storage, task_storage
from finecomb.collection.database.store import Store
from finecomb.core.errors import FinecombError
from finecomb.server import logs
from tests.databases import Client


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Stream that receives the JSON log."""
    root, level = logging.getLogger(), logs.request_log.level
    before = list(root.handlers)
    written = io.StringIO()
    logs.configure_logging("json", written)
    yield written
    root.handlers[:] = before
    logs.request_log.setLevel(level)


def test_a_request_is_a_line_without_ids(store: Store, log: io.StringIO) -> None:
    reader = Client(store).join_study()
    who, task = reader.get("/api/me").json()["annotator"], reader.next_task()["id"]
    reader.save(task, "answers", {"no_errors": True})
    reader.get("/nowhere/at/all?name=ann")
    reader.get(f"/admin/people/{who}")
    text = log.getvalue()
    paths = [(line["method"], line["path"], line["status"]) for line in map(json.loads, text.splitlines())]
    assert paths[0] == ("POST", "/api/join/{token}", 200)
    assert ("PUT", "/api/tasks/{task}/answers", 200) in paths
    assert ("GET", "", 404) in paths
    assert "/admin/{page}" in {path for _, path, _ in paths}
    for secret in (who, task, access_storage.get_open_link_token(store), "ann", "nowhere"):
        assert f'"{secret}' not in text
        assert f"/{secret}" not in text


def test_a_failure_says_where_and_not_what_somebody_wrote(
    store: Store, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Client(store).join_study()
    task = reader.next_task()["id"]

    def fail(*_: object) -> int:
        raise ValueError("Ann Smith wrote something private")

    monkeypatch.setattr(task_storage, "save_entry_edit", fail)
    assert reader.save(task, "answers", {"no_errors": True})[0] == 500
    text = log.getvalue()
    failed = next(line for line in map(json.loads, text.splitlines()) if line["level"] == "error")
    assert failed["message"] == "PUT /api/tasks/{task}/answers failed"
    assert failed["error"] == "ValueError"
    assert any("server/annotators/routes.py" in frame for frame in failed["at"])
    assert "Ann" not in text
    assert task not in text


def test_values_that_are_no_plain_text_are_named_by_their_type() -> None:
    record = logging.LogRecord(
        "x", logging.ERROR, "", 0, "%s failed %d times: %s", ("it", 3, FinecombError("ann")), None
    )
    assert json.loads(logs.JsonFormatter().format(record))["message"] == "it failed 3 times: FinecombError"


def test_an_exception_has_its_frames() -> None:
    try:
        raise KeyError("ann")
    except KeyError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    line = json.loads(logs.JsonFormatter().format(record))
    assert line["error"] == "KeyError"
    assert line["at"][0].endswith("test_an_exception_has_its_frames")
    assert "ann" not in json.dumps(line)
