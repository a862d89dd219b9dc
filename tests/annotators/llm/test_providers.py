from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import finecomb as fc
from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.model_options import short_model_name
from finecomb.annotators.llm.providers import PROVIDERS, HttpProvider, find_provider
from finecomb.core.errors import ParameterError
from finecomb.core.records import ModelSettings
from finecomb.server.researchers.model_runs import RunManager
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer

TEXT = "The ferry left at six."


class Acme(HttpProvider):
    """A provider with its own address, header, request and reply, as a plugin would bring it."""

    name = "acme"
    key_env = "ACME_KEY"

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    def headers(self, key: str, settings: ModelSettings) -> dict[str, str]:
        return {"Authorization": f"Acme {key}"}

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        return f"/models/{self.model_name(request.model)}:ask", {"words": [m.content for m in request.messages]}

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        return ChatReply(text=answer["said"], finish="stop")


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    def said(body: dict[str, Any], number: int) -> ScriptedAnswer:
        text = '{"marks": []}' if len(body["words"]) > 1 else "It went far to the north. Then"
        return ScriptedAnswer(raw=json.dumps({"said": text}).encode())

    with ScriptedServer(said) as server:
        monkeypatch.setitem(PROVIDERS, "acme", Acme(server.url))
        monkeypatch.setenv("ACME_KEY", "secret")
        yield server


def test_a_registered_provider_annotates_and_generates(acme: ScriptedServer) -> None:
    study = [{"id": "a", "text": TEXT}]
    annotated = fc.annotate(study, "acme:big", protocol="scarecrow")
    assert [row.state for row in annotated] == ["no errors"]
    assert annotated.runs[0].annotators[0].id == "big"
    written = fc.generate(study, "acme:big", words="5-10")
    assert [document.text for document in written.study.iter_documents()] == ["It went far to the north."]
    assert acme.requests[-1] == {"words": [TEXT]}
    assert set(acme.keys) == {"Acme secret"}


def test_the_usual_key_of_a_provider_is_required(acme: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACME_KEY")
    with pytest.raises(ParameterError, match="ACME_KEY is not set or empty"):
        fc.annotate([{"id": "a", "text": TEXT}], "acme:big", protocol="scarecrow")


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("local:smollm2", "local", "smollm2"),
        ("models/tiny.gguf", "local", "tiny"),
        ("qwen3:8b", "openai-compatible", "qwen3:8b"),
        ("org/judge-4", "openai-compatible", "judge-4"),
        ("acme:big", "acme", "big"),
    ],
)
def test_a_model_belongs_to_the_provider_in_its_name(
    model: str, provider: str, name: str, acme: ScriptedServer
) -> None:
    assert (find_provider(model).name, short_model_name(model)) == (provider, name)


def test_a_base_url_replaces_that_of_the_provider() -> None:
    acme = Acme("https://acme.example/v1")
    assert acme.host(ModelSettings(model="acme:big")) == "acme.example"
    assert acme.host(ModelSettings(model="acme:big", base_url="http://localhost:8080/v1")) == "localhost:8080"


def test_a_server_does_not_use_the_usual_key_of_a_provider_unasked(acme: ScriptedServer) -> None:
    settings = ModelSettings(model="acme:big")
    closed, open_ = (RunManager(None, None, names) for names in ((), ("ACME_KEY",)))  # type: ignore[arg-type]
    assert closed.find_model_problem(settings) == (
        "this server may not use ACME_KEY; restart it with --key-env ACME_KEY"
    )
    assert open_.find_model_problem(settings) == ""
