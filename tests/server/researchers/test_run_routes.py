"""Tests of language model runs on the researcher pages: permissions, results and secrecy of keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.annotators.llm.endpoint_consent import confirm_endpoint
from finecomb.annotators.llm.run_folder import read_run_record, write_run_record
from finecomb.collection.database.store import Store
from finecomb.core.records import Document, ModelSettings, Settings
from finecomb.core.study import StudyItem
from finecomb.server.researchers.run_routes import router
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer, extract_text
from tests.databases import Client, new_study_location, open_test_store

MARK = {
    "quote": "the the",
    "before": "saw",
    "after": "sea.",
    "label": "grammar-usage",
    "severity": 1,
    "explanation": "Doubled.",
}
NEAR = {**MARK, "quote": "On day 1 they saww the", "before": "", "after": "the sea."}
KEY = "sk-verysecret"
VARIABLE = "FINECOMB_TEST_KEY"


def scripted_reply(body: dict[str, Any], number: int) -> ScriptedAnswer:
    """Return marks, no errors, a refusal, or a reply that is truncated unless a longer one is allowed."""
    text = extract_text(body)
    if "day 0" in text:
        return ScriptedAnswer(json.dumps({"marks": [MARK]}))
    if "day 1" in text:
        return ScriptedAnswer(json.dumps({"marks": [NEAR]}))
    if "day 2" in text:
        return ScriptedAnswer("I'm sorry, but I can't help with that.")
    if "day 3" in text and body["max_tokens"] < 2000:
        return ScriptedAnswer('{"marks": [' + json.dumps(MARK) + ', {"quote": "the', finish="length")
    return ScriptedAnswer('{"marks": []}')


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted_reply) as server:
        yield server


@pytest.fixture
def items(model: ScriptedServer) -> list[StudyItem]:
    documents = [Document(id=f"d{number}", text=f"On day {number} they saw the the sea.") for number in range(5)]
    settings = ModelSettings(model="m", base_url=model.url, key_env=VARIABLE, price=(1, 2), budget=1.0, attempts=1)
    study = Settings(protocols=(fc.protocol("scarecrow").id,), models={"judge": settings})
    return [study, fc.protocol("scarecrow"), *documents]


@pytest.fixture
def store(tmp_path: Path, items: list[StudyItem]) -> Iterator[Store]:
    with open_test_store(new_study_location("sqlite", tmp_path), items, time.time) as store:
        yield store


@pytest.fixture
def editor(store: Store, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv(VARIABLE, KEY)
    confirm_endpoint(store.head.settings.models["judge"], str(store.database.place))
    client = Client(store).sign_in_researcher("editor", "ed")
    client.app.state.key_envs = frozenset({VARIABLE})  # type: ignore[attr-defined]
    return client


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def get(client: Client, path: str, **asked: Any) -> Any:
    answer = client.get(f"/api/admin/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_for_run(client: Client) -> Any:
    """Return the only run, once it has ended."""
    wait_until(lambda: all(run["state"] != "running" for run in get(client, "runs")["runs"]))
    return get(client, "runs")["runs"][0]


def start_run(client: Client, **fields: Any) -> Any:
    return client.post("/api/admin/runs", json={"model": "judge", "budget": 0.5, "max_tokens": 500, **fields})


def test_every_route_needs_a_role(store: Store) -> None:
    routes = [(method, route.path) for route in router.routes for method in route.methods]  # type: ignore[attr-defined]
    assert len(routes) == 8
    annotator, viewer = Client(store).join_study(), Client(store).sign_in_researcher("viewer")
    bodies: dict[str, Any] = {
        "/api/admin/runs": {"model": "judge"},
        "/api/admin/runs/preview": {"model": "judge"},
        "/api/admin/run/text": {"document": "d0"},
        "/api/admin/run/quote": {"mark": "m", "annotation": "a", "accept": True},
        "/api/admin/runs/model": {"name": "n", "model": "m"},
    }
    for method, path in routes:
        body = bodies.get(path) if method != "GET" else None
        assert annotator.request(method, path, params={"id": "x"}, json=body).status_code == 401
        if method != "GET":
            assert viewer.request(method, path, params={"id": "x"}, json=body).status_code == 403, path


@pytest.mark.long
def test_a_run_goes_from_its_start_to_its_failures_and_out_of_them(
    editor: Client, store: Store, model: ScriptedServer, tmp_path: Path
) -> None:
    assert start_run(editor).status_code == 200
    run = wait_for_run(editor)
    assert (run["state"], run["why"]) == ("finished", "")
    assert run["teeth"] == ["marked", "marked", "refused", "truncated", "no errors"]
    assert (run["look"], run["quotes"]) == (2, {"exact": 1, "near": 1, "missing": 0})
    assert 0 < run["cost"] <= run["budget"] == 0.5
    page = get(editor, "run", id=run["id"])
    failures = {failure["document"]: failure for failure in page["failures"]}
    assert failures["d2"]["reply"].startswith("I'm sorry")
    assert (failures["d3"]["state"], failures["d3"]["marks_read"]) == ("truncated", 1)
    shown = get(editor, "document", id="d0")["readers"]
    assert [(reader["name"], reader["kind"], len(reader["marks"])) for reader in shown] == [("judge", "llm", 1)]
    assert shown[0]["marks"][0]["placed"] == "exact quote"

    again = editor.post("/api/admin/run/text", params={"id": run["id"]}, json={"document": "d3", "max_tokens": 2400})
    assert again.status_code == 200, again.text
    assert wait_for_run(editor)["teeth"][3] == "no errors"
    out = editor.put(
        "/api/admin/annotation/excluded", params={"id": failures["d2"]["annotation"]}, json={"reason": "Refused."}
    )
    assert out.status_code == 200
    assert wait_for_run(editor)["look"] == 0
    (quote,) = page["quotes"]
    decision = {"mark": quote["mark"], "annotation": quote["annotation"], "accept": False}
    assert editor.put("/api/admin/run/quote", json=decision).status_code == 200
    assert wait_for_run(editor)["quotes"] == {"exact": 1, "near": 0, "missing": 1}
    asked = len(model.requests)
    assert start_run(editor).status_code == 200  # nothing is sent again, and decisions stay
    run = wait_for_run(editor)
    assert (len(model.requests), run["look"], run["quotes"]["missing"]) == (asked, 0, 1)

    log = json.dumps(get(editor, "audit"))
    assert all(word in log for word in ("started run", "asked again", "decided about a quote"))
    answers = "".join(editor.get(f"/api/admin/{path}").text for path in ("runs", "study", "audit"))
    files = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert set(model.keys) == {f"Bearer {KEY}"}
    assert KEY not in answers + log
    assert KEY.encode() not in files


@pytest.mark.long
def test_a_run_can_be_stopped_and_goes_on_later(editor: Client, model: ScriptedServer) -> None:
    model.script = lambda body, number: ScriptedAnswer('{"marks": []}', wait=0 if number < 2 or number > 10 else 30)
    id = start_run(editor).json()
    wait_until(lambda: get(editor, "runs")["runs"][:1] != [] and len(model.requests) == 5)
    assert "already in progress" in start_run(editor).json()["say"]
    wait_until(lambda: get(editor, "runs")["runs"][0]["teeth"].count("no errors") == 2)
    assert editor.delete("/api/admin/run", params={"id": id}).status_code == 200
    run = wait_for_run(editor)
    assert (run["state"], run["why"]) == ("stopped", "interrupted")
    assert run["teeth"].count("no errors") == 2
    model.script = lambda body, number: ScriptedAnswer('{"marks": []}')
    assert start_run(editor).status_code == 200
    assert wait_for_run(editor)["teeth"] == ["no errors"] * 5
    assert len(model.requests) == 8


@pytest.mark.long
def test_a_run_is_seen_and_stopped_and_not_doubled_through_another_worker(
    editor: Client, store: Store, model: ScriptedServer
) -> None:
    other = Client(store).sign_in_researcher("editor", "eve")
    other.app.state.key_envs = frozenset({VARIABLE})  # type: ignore[attr-defined]
    model.script = lambda body, number: ScriptedAnswer('{"marks": []}', wait=0 if number < 2 or number > 10 else 30)
    id = start_run(editor).json()
    wait_until(lambda: len(model.requests) == 5)
    assert get(other, "runs")["runs"][0]["state"] == "running"
    assert "already in progress" in start_run(other).json()["say"]
    wait_until(lambda: get(other, "runs")["runs"][0]["teeth"].count("no errors") == 2)
    assert other.delete("/api/admin/run", params={"id": id}).status_code == 200
    run = wait_for_run(other)
    assert (run["state"], run["why"]) == ("stopped", "interrupted")
    assert "not in progress" in other.delete("/api/admin/run", params={"id": id}).json()["say"]
    model.script = lambda body, number: ScriptedAnswer('{"marks": []}')
    assert start_run(other).status_code == 200  # the earlier stop request was cleared
    assert wait_for_run(editor)["teeth"] == ["no errors"] * 5
    assert len(model.requests) == 8


def test_what_is_sent_can_be_seen_before(editor: Client, model: ScriptedServer) -> None:
    answer = editor.post("/api/admin/runs/preview", json={"model": "judge", "document": "d3", "budget": 0.5})
    assert answer.status_code == 200, answer.text
    preview = answer.json()
    assert (preview["document"], preview["number"], preview["texts"]) == ("d3", 4, 5)
    pieces = [piece for message in preview["messages"] for piece in message["pieces"]]
    assert {"labels", "format", "text"} <= {piece["variable"] for piece in pieces}
    assert "On day 3 they saw" in next(piece["text"] for piece in pieces if piece["variable"] == "text")
    assert 0 < preview["likely"] < preview["most"]
    assert model.requests == []


def test_a_model_is_asked_only_as_owner_and_operator_allow(
    editor: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "unknown model 'other'" in start_run(editor, model="other").json()["say"]
    assert "Only owners of the study" in start_run(editor, budget=2.0).json()["say"]
    assert "a budget in US dollars is required" in start_run(editor, budget=None).json()["say"]
    other = {"name": "mine", "model": "m", "base_url": "http://127.0.0.1:9/v1", "key_env": "HOME"}
    assert editor.put("/api/admin/runs/model", json=other).status_code == 403
    assert editor.patch("/api/admin/settings", json={"models": {}}).status_code == 403
    owner = Client(store).sign_in_researcher("owner", "ann")
    assert owner.put("/api/admin/runs/model", json=other).status_code == 200
    assert "may not use HOME" in start_run(editor, model="mine").json()["say"]
    assert "is not set" in _without_key(editor, monkeypatch)


def test_an_address_of_the_study_is_used_only_after_an_owner_saved_it(
    editor: Client, model: ScriptedServer, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert "an owner must confirm this address" in start_run(editor).json()["say"]
    assert model.requests == []
    owner = Client(store).sign_in_researcher("owner", "ann")
    mine = {"name": "judge", "model": "m", "base_url": model.url, "key_env": VARIABLE}
    assert owner.put("/api/admin/runs/model", json=mine).status_code == 200
    assert start_run(editor).status_code == 200
    wait_for_run(editor)
    assert model.requests


def _without_key(editor: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv(VARIABLE)
    return str(start_run(editor).json()["say"])


@pytest.mark.long
def test_a_prompt_is_compared_with_those_of_earlier_runs(editor: Client, model: ScriptedServer, tmp_path: Path) -> None:
    assert start_run(editor).status_code == 200
    wait_for_run(editor)
    asked = {"model": "judge", "budget": 0.5}
    first = editor.post("/api/admin/runs/preview", json=asked).json()
    assert (first["same_as"], first["others"]) == ("judge", [])
    (folder,) = [record.parent for record in tmp_path.rglob("run.json")]
    record = read_run_record(folder)
    words = record.template.replace("careful annotator", "hasty reader")
    assert words != record.template
    write_run_record(folder, record.model_copy(update={"template": words, "prompt": "beef"}))
    (same,) = editor.post("/api/admin/runs/preview", json=asked).json()["others"]
    assert (same["run"], same["prompt"], same["is_same_name"]) == ("judge", "beef", True)
    assert any("hasty" in change for change in same["changes"] if change.startswith("- "))
    assert any("careful" in change for change in same["changes"] if change.startswith("+ "))
    (other,) = editor.post("/api/admin/runs/preview", json={**asked, "name": "second"}).json()["others"]
    assert not other["is_same_name"]
