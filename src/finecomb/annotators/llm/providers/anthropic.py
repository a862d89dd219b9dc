"""Anthropic: the Messages API and its batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.providers.base import Capability, HttpProvider, ModelFacts, token_count
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import ModelSettings

if TYPE_CHECKING:
    from finecomb.annotators.llm.batches import BatchService
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint

DEFAULT_VERSION = "2023-06-01"
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicProvider(HttpProvider):
    """Claude models. The system prompt is marked for caching, because all texts of a run share it."""

    name = "anthropic"
    base_url = "https://api.anthropic.com"
    key_env = "ANTHROPIC_API_KEY"
    capabilities: frozenset[Capability] = frozenset({"chat", "json_schema", "batches", "effort", "thinking"})
    structures = ("json_schema", "tool", "none")
    structure_fields = ("output_config", "output_format", "tools", "tool_choice")
    version_names = (DEFAULT_VERSION, "2026-10-21")

    def host(self, settings: ModelSettings) -> str:
        """Return the host, or raise an error if reasoning would leave no tokens for the reply."""
        if settings.thinking_tokens and settings.thinking_tokens >= settings.max_tokens:
            raise ParameterError(
                f"{param('thinking_tokens')} must be lower than {param('max_tokens')}, which includes reasoning; found"
                f" {settings.thinking_tokens} and {settings.max_tokens}",
                parameter="thinking_tokens",
            )
        return super().host(settings)

    def address(self, settings: ModelSettings) -> str:
        """Return the address with the version of the path."""
        return f"{super().address(settings).removesuffix('/v1')}/v1"

    def headers(self, key: str, settings: ModelSettings) -> dict[str, str]:
        """Return the key and the version of the API."""
        return {"anthropic-version": settings.api_version or DEFAULT_VERSION, **({"x-api-key": key} if key else {})}

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and body. There are no seeds and penalties in this API."""
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        body: dict[str, Any] = {
            "model": self.model_name(request.model),
            "max_tokens": request.max_tokens,
            "messages": [message.model_dump() for message in request.messages if message.role != "system"],
        }
        if system:
            body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        for name in ("temperature", "top_p"):
            if (value := getattr(request, name)) is not None:
                body[name] = value
        output: dict[str, Any] = {"effort": request.effort} if request.effort else {}
        if request.json_schema is not None and structure == "json_schema":
            output["format"] = {"type": "json_schema", "schema": request.json_schema}
        elif request.json_schema is not None and structure == "tool":
            tool = {"name": "annotation", "description": "Report the result.", "input_schema": request.json_schema}
            body |= {"tools": [tool], "tool_choice": {"type": "auto"}}
        if output:
            body["output_config"] = output
        if request.thinking_tokens:
            body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_tokens}
        return "/messages", body

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        """Read the text blocks, or the input of the tool. Reasoning is kept apart from the text."""
        blocks, usage = answer["content"], answer.get("usage")
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        calls = [json.dumps(block["input"], ensure_ascii=False) for block in blocks if block["type"] == "tool_use"]
        reason = str(answer.get("stop_reason") or "")
        details = answer.get("stop_details") if isinstance(answer.get("stop_details"), dict) else None
        refusal = ""
        if reason == "refusal":
            refusal = (
                ": ".join(str(details[name]) for name in ("category", "explanation") if details.get(name))
                if details
                else ""
            )
            refusal = refusal or "the model declined"
        return ChatReply(
            text=calls[0] if calls else "".join(texts),
            finish=_FINISH_REASONS.get(reason, reason),
            refusal=refusal,
            thinking="\n".join(str(block["thinking"]) for block in blocks if block["type"] == "thinking"),
            model=str(answer.get("model") or ""),
            **_read_usage(usage if isinstance(usage, dict) else {}),
        )

    def parse_models(self, answer: Mapping[str, Any]) -> Iterator[ModelFacts]:
        """Yield the models with the sizes and features that the provider reports."""
        for entry in answer["data"]:
            features = entry.get("capabilities") if isinstance(entry.get("capabilities"), dict) else {}
            names = [name for name in ("structured_outputs", "batch") if (features.get(name) or {}).get("supported")]
            yield ModelFacts(
                id=str(entry["id"]),
                context_tokens=token_count(entry.get("max_input_tokens")),
                max_output_tokens=token_count(entry.get("max_tokens")),
                note=", ".join(name.replace("_", " ") for name in names),
            )

    def models_path(self) -> str:
        """Return the path of the list of models, as long as a page can be."""
        return "/models?limit=1000"

    def open_batches(self, endpoint: HttpEndpoint) -> BatchService | None:
        """Return the service for message batches."""
        from finecomb.annotators.llm.batches import AnthropicBatches

        return AnthropicBatches(endpoint)


def _read_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return token counts. `input_tokens` excludes tokens that were read from or written to the cache."""
    plain, output = token_count(usage.get("input_tokens")), token_count(usage.get("output_tokens"))
    if plain is None:
        return {"completion_tokens": output}
    read = token_count(usage.get("cache_read_input_tokens")) or 0
    written = token_count(usage.get("cache_creation_input_tokens")) or 0
    split, details = usage.get("cache_creation"), usage.get("output_tokens_details")
    hour = (token_count(split.get("ephemeral_1h_input_tokens")) or 0) if isinstance(split, dict) else 0
    written = max(written, hour)
    thinking = (token_count(details.get("thinking_tokens")) or 0) if isinstance(details, dict) else 0
    return {
        "prompt_tokens": plain + read + written,
        "completion_tokens": output,
        "cache_read_tokens": read,
        "cache_write_tokens": written - hour,
        "cache_write_1h_tokens": hour,
        "thinking_tokens": min(thinking, output or 0),
    }
