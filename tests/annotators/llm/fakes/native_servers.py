"""Fakes of servers with APIs of their own: Anthropic, Gemini and Ollama."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from tests.annotators.llm.fakes.base import KEY, Answer, FakeServer, Received, prompt_tokens
from tests.annotators.llm.fakes.chat_servers import MODELS


def anthropic_error(status: int, kind: str, message: str, **more: Any) -> Answer:
    body = {"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_1"}
    return Answer(status, body, {"request-id": "req_1"})


class FakeAnthropic(FakeServer):
    """api.anthropic.com: messages, message batches and models."""

    fields = {
        "model", "max_tokens", "messages", "system", "temperature", "top_p", "top_k", "stop_sequences", "stream",
        "thinking", "output_config", "tools", "tool_choice", "metadata", "service_tier", "cache_control", "container",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.results: dict[str, list[dict[str, Any]]] = {}
        self.polls = 1
        """Number of requests for the state until a batch has ended."""

    def is_call(self, request: Received) -> bool:
        return request.method == "POST" and request.path == "/v1/messages"

    def check_key(self, request: Received) -> Answer | None:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")  # as the official package sends it
        if request.headers.get("x-api-key", bearer) != KEY:
            return anthropic_error(401, "authentication_error", "invalid x-api-key")
        if request.headers.get("anthropic-version") not in ("2023-06-01", "2026-10-21"):
            return anthropic_error(400, "invalid_request_error", "anthropic-version: header is required")
        return None

    def check(self, request: Received) -> Answer | None:
        return self.check_body(request.json, request.headers.get("anthropic-version", ""))

    def check_body(self, body: dict[str, Any], version: str = "") -> Answer | None:
        for name in body:
            is_old = version == "2026-10-21" and name in ("temperature", "top_p")
            if name not in self.fields or is_old:
                return anthropic_error(400, "invalid_request_error", f"{name}: Extra inputs are not permitted")
            if name in self.rejected:
                return anthropic_error(400, "invalid_request_error", f"`{name}` is deprecated for this model.")
        if "max_tokens" not in body:
            return anthropic_error(400, "invalid_request_error", "max_tokens: Field required")
        if body["model"] not in MODELS:
            return anthropic_error(404, "not_found_error", f"model: {body['model']}")
        unknown = set(body.get("output_config") or {}) - {"format", "effort"}
        assert not unknown, unknown
        return None

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        size = prompt_tokens([body.get("system"), body["messages"]])
        content: list[dict[str, Any]] = [{"type": "text", "text": self.text}]
        if body.get("tools"):
            content = [{"type": "tool_use", "id": "t", "name": "annotation", "input": json.loads(self.text)}]
        usage = {"input_tokens": size, "output_tokens": 20, "cache_read_input_tokens": 0}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
        return {
            **head, "content": content, "stop_reason": "end_turn",
            "usage": {**usage, "cache_creation_input_tokens": 0},
        }  # fmt: skip

    def other(self, request: Received) -> Answer:
        path = request.path.partition("?")[0]
        if path == "/v1/models":
            facts = {
                "type": "model",
                "max_input_tokens": 200000,
                "max_tokens": 64000,
                "created_at": "2026-01-01T00:00:00Z",
            }
            return Answer(
                200, {"data": [{"id": name, "display_name": name, **facts} for name in MODELS], "has_more": False}
            )
        if path == "/v1/messages/batches" and request.method == "POST":
            return self.create_batch(request.json)
        if path == "/v1/messages/batches":
            data = [{key: value for key, value in batch.items() if key != "polls"} for batch in self.batches.values()]
            return Answer(200, {"data": data[::-1], "has_more": False, "first_id": None, "last_id": None})
        if found := re.match(r"/v1/messages/batches/([^/]+)(/results)?$", path):
            batch = self.batches[found[1]]
            if found[2]:
                lines = b"".join(json.dumps(line).encode() + b"\n" for line in self.results[found[1]])
                return Answer(200, lines, {"Content-Type": "application/x-jsonl"})
            batch["polls"] += 1
            if batch["polls"] > self.polls:
                batch["processing_status"] = "ended"
            return Answer(200, {key: value for key, value in batch.items() if key != "polls"})
        return anthropic_error(404, "not_found_error", path)

    def create_batch(self, body: dict[str, Any]) -> Answer:
        assert set(body) == {"requests"}, body
        ids = [item["custom_id"] for item in body["requests"]]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id) for id in ids), ids
        assert len(set(ids)) == len(ids)
        with self.lock:
            id = f"msgbatch_{len(self.batches) + 1}"
            now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            counts = {"processing": len(ids), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
            self.batches[id] = {
                "id": id, "type": "message_batch", "processing_status": "in_progress", "request_counts": counts,
                "created_at": now, "expires_at": now, "ended_at": None, "archived_at": None,
                "cancel_initiated_at": None, "results_url": None, "polls": 0,
            }  # fmt: skip
            self.results[id] = [self.result(item) for item in body["requests"]]
        if hook := self.hooks.pop("created", None):
            hook()
        return Answer(200, {key: value for key, value in self.batches[id].items() if key != "polls"})

    def result(self, item: dict[str, Any]) -> dict[str, Any]:
        problem = self.check_body(item["params"])
        result = (
            {"type": "errored", "error": problem.body}
            if problem
            else {"type": "succeeded", "message": self.complete(item["params"])}
        )
        return {"custom_id": item["custom_id"], "result": result}


def google_error(status: int, name: str, message: str, details: list[Any] | None = None) -> Answer:
    return Answer(status, {"error": {"code": status, "message": message, "status": name, "details": details or []}})


class FakeGemini(FakeServer):
    """generativelanguage.googleapis.com: generateContent, files, batches and models."""

    fields = {
        "contents",
        "systemInstruction",
        "generationConfig",
        "safetySettings",
        "tools",
        "toolConfig",
        "cachedContent",
    }
    config_fields = {
        "maxOutputTokens", "temperature", "topP", "topK", "seed", "frequencyPenalty", "presencePenalty",
        "responseMimeType", "responseJsonSchema", "responseSchema", "stopSequences", "candidateCount",
        "responseLogprobs", "logprobs", "thinkingConfig", "responseModalities",
    }  # fmt: skip
    states: tuple[str, ...] = ("BATCH_STATE_PENDING", "BATCH_STATE_RUNNING", "BATCH_STATE_SUCCEEDED")

    def is_call(self, request: Received) -> bool:
        return request.method == "POST" and request.path.partition("?")[0].endswith(":generateContent")

    def check_key(self, request: Received) -> Answer | None:
        if request.headers.get("x-goog-api-key") == KEY:
            return None
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
        message = "API key not valid. Please pass a valid API key."
        return google_error(400, "INVALID_ARGUMENT", message, details)

    def check(self, request: Received) -> Answer | None:
        model = request.path.partition("/models/")[2].partition(":")[0]
        if model not in MODELS:
            message = f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
            return google_error(404, "NOT_FOUND", message)
        return self.check_body(request.json)

    def check_body(self, body: dict[str, Any]) -> Answer | None:
        wrong = [(name, "") for name in body if name not in self.fields]
        config = body.get("generationConfig") or {}
        wrong += [(n, " at 'generation_config'") for n in config if n not in self.config_fields or n in self.rejected]
        if wrong:
            lines = [
                f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.' for name, at in wrong
            ]
            return google_error(400, "INVALID_ARGUMENT", "\n".join(lines))
        return None

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        size = prompt_tokens([body["contents"], body.get("systemInstruction")])
        parts = [{"text": "Thinking.", "thought": True}, {"text": self.text}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": size, "candidatesTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": size}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "judge-1", "responseId": "r1"}

    def other(self, request: Received) -> Answer:
        path = request.path.partition("?")[0]
        if re.fullmatch(r"/v1(beta)?/models", path):
            facts: dict[str, Any] = {"inputTokenLimit": 1048576, "outputTokenLimit": 65536, "thinking": True}
            facts |= {"supportedGenerationMethods": ["generateContent"]}
            return Answer(200, {"models": [{"name": f"models/{name}", **facts} for name in MODELS]})
        if path == "/upload/v1beta/files":
            assert request.headers["x-goog-upload-command"] == "start"
            return Answer(200, {}, {"x-goog-upload-url": f"{self.root}/upload/session"})
        if path == "/upload/session":
            assert request.headers["x-goog-upload-command"] == "upload, finalize"
            name = f"files/{len(self.files) + 1}"
            self.files[name] = request.content
            self.run_hook("uploaded")
            return Answer(200, {"file": {"name": name}}, {"x-goog-upload-status": "final"})
        if path.endswith(":batchGenerateContent"):
            return self.create_batch(request.json)
        if path == "/v1beta/batches":
            return Answer(200, {"operations": list(self.batches.values())})
        if path.startswith("/v1beta/batches/"):
            return Answer(200, self.advance(self.batches[path.removeprefix("/v1beta/")]))
        if path.startswith("/download/v1beta/files/"):
            return Answer(200, self.files[path.removeprefix("/download/v1beta/").removesuffix(":download")])
        return google_error(404, "NOT_FOUND", path)

    def run_hook(self, name: str) -> None:
        if hook := self.hooks.pop(name, None):
            hook()

    def create_batch(self, body: dict[str, Any]) -> Answer:
        assert set(body) == {"batch"}, body
        assert set(body["batch"]) == {"displayName", "inputConfig"}, body
        with self.lock:
            name = f"batches/{len(self.batches) + 1}"
            meta = {**body["batch"], "state": self.states[0]}
            self.batches[name] = {"name": name, "metadata": meta, "done": False}
        self.run_hook("created")
        return Answer(200, self.batches[name])

    def advance(self, batch: dict[str, Any]) -> dict[str, Any]:
        meta = batch["metadata"]
        if meta["state"] in self.states[:-1]:
            meta["state"] = self.states[self.states.index(meta["state"]) + 1]
            if meta["state"] == self.states[-1]:
                lines = [json.loads(line) for line in self.files[meta["inputConfig"]["fileName"]].splitlines()]
                name = f"files/out-{batch['name'].partition('/')[2]}"
                self.files[name] = b"".join(json.dumps(self.result(line)).encode() + b"\n" for line in lines)
                meta["output"] = {"responsesFile": name}
        return batch

    def result(self, line: dict[str, Any]) -> dict[str, Any]:
        assert set(line) == {"key", "request"}, line
        problem = self.check_body(line["request"])
        outcome = {"error": problem.body["error"]} if problem else {"response": self.complete(line["request"])}
        return {"key": line["key"], **outcome}


class FakeOllama(FakeServer):
    """A local Ollama server with its own API."""

    fields = {"model", "messages", "stream", "truncate", "format", "options", "think", "keep_alive", "tools", "shift"}

    def __init__(self, context: int = 131072) -> None:
        super().__init__()
        self.context = context

    def is_call(self, request: Received) -> bool:
        return request.method == "POST" and request.path == "/api/chat"

    def check(self, request: Received) -> Answer | None:
        body = request.json
        assert set(body) <= self.fields, set(body) - self.fields
        assert body["stream"] is False
        if body["model"] not in MODELS:
            return Answer(404, {"error": f"model '{body['model']}' not found"})
        if prompt_tokens(body["messages"]) > min(self.context, body["options"].get("num_ctx", 4096)):
            message = "the prompt is longer than the context length currently available to the model; increase num_ctx"
            return Answer(400, {"error": message})
        return None

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "thinking": "Hm."}
        counts = {"prompt_eval_count": prompt_tokens(body["messages"]), "eval_count": 20}
        return {"model": body["model"], "message": message, "done": True, "done_reason": "stop", **counts}

    def other(self, request: Received) -> Answer:
        if request.path == "/api/tags":
            return Answer(200, {"models": [{"name": name, "details": {"parameter_size": "8B"}} for name in MODELS]})
        if request.path == "/api/ps":
            return Answer(200, {"models": [{"name": MODELS[0], "context_length": self.context}]})
        return Answer(404, {"error": "404 page not found"})
