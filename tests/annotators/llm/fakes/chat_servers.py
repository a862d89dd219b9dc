"""Fakes of servers with the API of OpenAI, each with its own fields, keys and errors."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.annotators.llm.fakes.base import KEY, Answer, FakeServer, Received, multipart_file, prompt_tokens

COMMON = {"model", "messages", "max_tokens", "temperature", "top_p", "stop", "n", "stream", "response_format"}
MODELS = ("judge-large", "judge-small")


class FakeOpenAI(FakeServer):
    """api.openai.com: chat completions, responses, files, batches and models."""

    fields = COMMON | {
        "max_completion_tokens", "seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs",
        "reasoning_effort", "store", "metadata", "user", "prompt_cache_key", "service_tier", "verbosity", "tools",
        "tool_choice", "stream_options", "logit_bias", "prediction", "modalities", "parallel_tool_calls",
    }  # fmt: skip
    response_fields = {
        "model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "store", "text", "reasoning",
        "metadata", "stream", "top_logprobs", "tools", "tool_choice", "truncation", "include", "prompt_cache_key",
    }  # fmt: skip
    formats: tuple[str, ...] = ("json_schema", "json_object", "text")
    batch_states: tuple[str, ...] = ("validating", "in_progress", "completed")

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def is_call(self, request: Received) -> bool:
        return request.method == "POST" and request.path.endswith(("/chat/completions", "/responses"))

    def check_key(self, request: Received) -> Answer | None:
        if request.headers.get("authorization") == f"Bearer {KEY}":
            return None
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        message = f"Incorrect API key provided: {given}. You can find your API key in your account."
        return error(401, message, "invalid_api_key")

    def check(self, request: Received) -> Answer | None:
        body = request.json
        allowed = self.response_fields if request.path.endswith("/responses") else self.fields
        if body.get("model") not in MODELS:
            message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return error(404, message, "model_not_found")
        return self.check_fields(body, allowed)

    def check_fields(self, body: dict[str, Any], allowed: set[str]) -> Answer | None:
        for name in body:
            if name not in allowed:
                return error(400, f"Unknown parameter: '{name}'.", "unknown_parameter", name)
            if name in self.rejected and name == "max_tokens":
                message = (
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
                    " instead."
                )
                return error(400, message, "unsupported_parameter", name)
            if name in self.rejected:
                message = (
                    f"Unsupported value: '{name}' does not support {body[name]} with this model. Only the default (1)"
                    " value is supported."
                )
                return error(400, message, "unsupported_value", name)
        kind = (body.get("response_format") or {}).get("type", "text")
        if kind not in self.formats:
            return self.format_error()
        return None

    def format_error(self) -> Answer:
        return error(400, "Invalid value: response_format.type is not supported.", None, "response_format.type")

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        if "input" in body:
            return {
                "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": body["model"],
                "output": [
                    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Thinking."}]},
                    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                     "content": [{"type": "output_text", "text": self.text, "annotations": []}]},
                ],
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
                "usage": {"input_tokens": prompt_tokens(body["input"]) + prompt_tokens(body.get("instructions")),
                          "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
                          "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 30},
            }  # fmt: skip
        return completion(self.text, prompt=prompt_tokens(body["messages"]), model=body["model"])

    # --- files and batches ---

    def other(self, request: Received) -> Answer:
        path = re.sub(r"^/(?:v1|openai/v1|openai)", "", request.path).partition("?")[0]
        if path == "/models":
            data = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in MODELS]
            return Answer(200, {"object": "list", "data": data})
        if path == "/files" and request.method == "POST":
            with self.lock:
                name = f"file-{len(self.files) + 1}"
                self.files[name] = multipart_file(request)
            self.run_hook("uploaded")
            meta = {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x.jsonl"}
            return Answer(200, {**meta, "purpose": "batch", "status": "processed"})
        if path.startswith("/files/") and path.endswith("/content"):
            self.run_hook("download")
            return Answer(200, self.files[path.split("/")[2]])
        if path == "/batches" and request.method == "POST":
            return self.create_batch(request.json)
        if path == "/batches":
            return Answer(200, {"object": "list", "data": list(self.batches.values())[::-1], "has_more": False})
        if path.startswith("/batches/"):
            return Answer(200, self.advance(self.batches[path.split("/")[2]]))
        return super().other(request)

    def run_hook(self, name: str) -> None:
        if hook := self.hooks.pop(name, None):
            hook()

    def create_batch(self, body: dict[str, Any]) -> Answer:
        unknown = set(body) - {"input_file_id", "endpoint", "completion_window", "metadata"}
        if unknown:
            return error(400, f"Unknown parameter: '{min(unknown)}'.", "unknown_parameter", min(unknown))
        with self.lock:
            id = f"batch_{len(self.batches) + 1}"
            self.batches[id] = {
                "id": id, "object": "batch", "endpoint": body["endpoint"], "errors": None, "created_at": 1,
                "input_file_id": body["input_file_id"], "completion_window": "24h", "status": self.batch_states[0],
                "output_file_id": None, "error_file_id": None, "metadata": body.get("metadata"),
                "request_counts": {"total": 0, "completed": 0, "failed": 0},
            }  # fmt: skip
        self.run_hook("created")
        return Answer(200, self.batches[id])

    def advance(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Move a batch to its next state, and write its results at the end."""
        states = self.batch_states
        if batch["status"] in states[:-1]:
            batch["status"] = states[states.index(batch["status"]) + 1]
            if batch["status"] == states[-1]:
                self.finish(batch)
        return batch

    def finish(self, batch: dict[str, Any]) -> None:
        lines = self.result_lines([json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()])
        self.files[f"{batch['id']}-out"] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        batch["output_file_id"] = f"{batch['id']}-out"

    def result_lines(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the results in reverse order."""
        lines = []
        for line in reversed(requests):
            assert set(line) == {"custom_id", "method", "url", "body"}, line
            path = line["url"]
            problem = self.check(Received("POST", path, {}, json.dumps(line["body"]).encode()))
            status, body = (problem.status, problem.body) if problem else (200, self.complete(line["body"]))
            response = {"status_code": status, "request_id": "r", "body": body}
            lines.append({"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None})
        return lines


class FakeAzure(FakeOpenAI):
    """An Azure resource with both forms of the API. The dated form needs its version and its own header for the key."""

    @property
    def url(self) -> str:
        return self.root

    def check_key(self, request: Received) -> Answer | None:
        if request.path.startswith("/openai/v1/"):
            return super().check_key(request)
        if request.headers.get("api-key") != KEY:
            return Answer(401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key."}})
        if "api-version=" not in request.path:
            return Answer(404, {"error": {"code": "404", "message": "Resource not found"}})
        return None

    def is_call(self, request: Received) -> bool:
        return request.method == "POST" and "/chat/completions" in request.path

    def check(self, request: Received) -> Answer | None:
        body = request.json
        if found := re.match(r"/openai/deployments/([^/]+)/chat/completions\?api-version=", request.path):
            body = {**body, "model": found[1]}
        if body.get("model") not in MODELS:
            message = "The API deployment for this resource does not exist. Create it and try again."
            return Answer(404, {"error": {"code": "DeploymentNotFound", "message": message}})
        return self.check_fields(body, self.fields)


class FakeMistral(FakeOpenAI):
    """api.mistral.ai, which forbids unknown fields with the errors of Pydantic."""

    fields = COMMON | {
        "random_seed", "presence_penalty", "frequency_penalty", "reasoning_effort", "prompt_mode", "safe_prompt",
        "prompt_cache_key", "tools", "tool_choice", "metadata", "prediction", "parallel_tool_calls",
    }  # fmt: skip
    batch_states = ("QUEUED", "RUNNING", "SUCCESS")

    def check_fields(self, body: dict[str, Any], allowed: set[str]) -> Answer | None:
        extra = [name for name in body if name not in allowed or name in self.rejected]
        if not extra:
            return None
        detail = [
            {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 1}
            for name in extra
        ]
        body = {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}
        return Answer(422, {**body, "param": None, "code": None})

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        reply = super().complete(body)
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. {"}]}
        reply["choices"][0]["message"]["content"] = [thinking, {"type": "text", "text": self.text}]
        return reply

    def other(self, request: Received) -> Answer:
        path = request.path.removeprefix("/v1").partition("?")[0]
        if path == "/models":
            facts = {"object": "model", "type": "base", "max_context_length": 131072, "capabilities": {}}
            return Answer(200, {"object": "list", "data": [{"id": name, **facts} for name in MODELS]})
        if path == "/batch/jobs" and request.method == "POST":
            body = request.json
            assert set(body) <= {"input_files", "endpoint", "model", "metadata", "timeout_hours"}, body
            with self.lock:
                id = f"job-{len(self.batches) + 1}"
                job = {"id": id, "object": "batch", "input_files": body["input_files"], "metadata": body["metadata"]}
                job |= {"model": body["model"], "endpoint": body["endpoint"], "errors": [], "status": "QUEUED"}
                job |= {"created_at": 1, "total_requests": 1, "completed_requests": 0, "succeeded_requests": 0}
                self.batches[id] = {**job, "failed_requests": 0, "input_file_id": body["input_files"][0]}
            self.run_hook("created")
            return Answer(200, self.batches[id])
        if path == "/batch/jobs":
            jobs = list(self.batches.values())
            return Answer(200, {"object": "list", "data": jobs, "total": len(jobs)})
        if path.startswith("/batch/jobs/"):
            return Answer(200, self.advance(self.batches[path.split("/")[3]]))
        return super().other(request)

    def finish(self, batch: dict[str, Any]) -> None:
        super().finish(batch)
        batch["output_file"] = batch.pop("output_file_id")

    def result_lines(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lines = []
        for line in requests:
            assert set(line) == {"custom_id", "body"}, line
            assert "model" not in line["body"]
            body = {**line["body"], "model": MODELS[0]}
            problem = self.check_fields(body, self.fields)
            status, answer = (problem.status, problem.body) if problem else (200, self.complete(body))
            response = {"status_code": status, "body": answer}
            lines.append({"id": "1", "custom_id": line["custom_id"], "response": response, "error": None})
        return lines


class FakeDeepSeek(FakeOpenAI):
    """api.deepseek.com, which has no JSON schemas and reports cache hits under other names."""

    fields = COMMON | {"frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "thinking", "seed"} | {
        "reasoning_effort", "stream_options", "tools", "tool_choice",
    }  # fmt: skip
    formats = ("json_object", "text")

    @property
    def url(self) -> str:
        return self.root

    def check_fields(self, body: dict[str, Any], allowed: set[str]) -> Answer | None:
        if "response_format" in self.rejected and "response_format" in body:
            return self.format_error()
        if (body.get("response_format") or {}).get("type") == "json_object":
            assert "json" in json.dumps(body["messages"]).lower(), "the prompt must contain the word JSON"
        return super().check_fields(body, allowed)

    def format_error(self) -> Answer:
        return error(400, "This response_format type is unavailable now", "invalid_request_error")

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        reply = super().complete(body)
        total = reply["usage"]["prompt_tokens"]
        reply["usage"] |= {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": total - 64}
        reply["choices"][0]["message"]["reasoning_content"] = "Thinking."
        return reply


class FakeOpenRouter(FakeOpenAI):
    """openrouter.ai, which finds no server for parameters that none supports, and reports costs."""

    fields = FakeOpenAI.fields | {"provider", "reasoning", "transforms", "models", "usage", "top_k"}

    @property
    def url(self) -> str:
        return f"{self.root}/api/v1"

    def check_fields(self, body: dict[str, Any], allowed: set[str]) -> Answer | None:
        assert set(body) <= allowed, set(body) - allowed
        if set(body) & self.rejected and (body.get("provider") or {}).get("require_parameters"):
            message = "No endpoints found that can handle the requested parameters."
            return Answer(404, {"error": {"message": message, "code": 404}})
        return None

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        reply = super().complete(body)
        reply["usage"]["cost"] = 0.00123
        return reply

    def other(self, request: Received) -> Answer:
        if request.path == "/api/v1/models":
            entry = {"context_length": 200000, "supported_parameters": ["structured_outputs"], "top_provider": {}}
            return Answer(200, {"data": [{"id": name, **entry} for name in MODELS]})
        return super().other(request)


class FakeCompatible(FakeOpenAI):
    """vLLM, llama.cpp or Ollama's compatible API: unknown fields are ignored, and no key is needed."""

    def __init__(self, context: int = 32768, ignores_limit: bool = False, truncates: bool = False) -> None:
        super().__init__()
        self.context, self.ignores_limit, self.truncates = context, ignores_limit, truncates

    def check_key(self, request: Received) -> Answer | None:
        return None

    def check_fields(self, body: dict[str, Any], allowed: set[str]) -> Answer | None:
        return None

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        reply = super().complete(body)
        if self.ignores_limit:
            reply["usage"]["completion_tokens"] = 9000
        if self.truncates:
            reply["usage"]["prompt_tokens"] = min(reply["usage"]["prompt_tokens"], self.context)
        return reply

    def other(self, request: Received) -> Answer:
        if request.path == "/api/ps":
            return Answer(200, {"models": [{"name": MODELS[0], "context_length": self.context}]})
        return super().other(request)


def error(status: int, message: str, code: str | None = None, parameter: str | None = None) -> Answer:
    """Return an error in the form of OpenAI."""
    body = {"message": message, "type": "invalid_request_error", "param": parameter, "code": code}
    return Answer(status, {"error": body}, {"x-request-id": "req_1"})


def completion(
    text: str | list[dict[str, Any]] | None,
    finish: str = "stop",
    prompt: int = 5000,
    output: int = 20,
    model: str = "judge-large",
    **message: Any,
) -> dict[str, Any]:
    """Return a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [{**choice, "logprobs": None}], "usage": usage, "system_fingerprint": "fp_1"}
