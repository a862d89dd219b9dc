"""Google Gemini: generateContent and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.providers.base import Capability, HttpProvider, ModelFacts, token_count
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import ModelSettings

if TYPE_CHECKING:
    from finecomb.annotators.llm.batches import BatchService
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint

DEFAULT_VERSION = "v1beta"
_FINISH_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"),
        "content_filter",
    ),
}


class GeminiProvider(HttpProvider):
    """Gemini models."""

    name = "gemini"
    base_url = "https://generativelanguage.googleapis.com"
    key_env = "GEMINI_API_KEY"
    capabilities: frozenset[Capability] = frozenset(
        {"chat", "json_schema", "seed", "logprobs", "batches", "effort", "thinking"}
    )
    structure_fields = ("responseJsonSchema", "responseSchema", "responseMimeType")
    version_names = (DEFAULT_VERSION, "v1")

    def host(self, settings: ModelSettings) -> str:
        """Return the host, or raise an error for two settings that the server rejects together."""
        if settings.effort and settings.thinking_tokens:
            raise ParameterError(
                f"{param('effort')} and {param('thinking_tokens')} cannot be used together with gemini",
                parameter="effort",
            )
        return super().host(settings)

    def address(self, settings: ModelSettings) -> str:
        """Return the address with the version of the API."""
        return f"{super().address(settings)}/{settings.api_version or DEFAULT_VERSION}"

    def headers(self, key: str, settings: ModelSettings) -> dict[str, str]:
        """Return the key in the header of Google."""
        return {"x-goog-api-key": key} if key else {}

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and body."""
        system = [{"text": message.content} for message in request.messages if message.role == "system"]
        turns = [
            {"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.content}]}
            for message in request.messages
            if message.role != "system"
        ]
        optional = {
            "temperature": request.temperature,
            "topP": request.top_p,
            "seed": request.seed,
            "frequencyPenalty": request.frequency_penalty,
        }
        config: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        config |= {name: value for name, value in optional.items() if value is not None}
        if request.json_schema is not None and structure in ("json_schema", "json_object"):
            config["responseMimeType"] = "application/json"
            if structure == "json_schema":
                config["responseJsonSchema"] = request.json_schema
        if request.effort:
            config["thinkingConfig"] = {"thinkingLevel": request.effort}
        elif request.thinking_tokens is not None:
            config["thinkingConfig"] = {"thinkingBudget": request.thinking_tokens}
        body: dict[str, Any] = {"contents": turns, "generationConfig": config}
        if system:
            body["systemInstruction"] = {"parts": system}
        return f"/models/{self.model_name(request.model)}:generateContent", body

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        """Read the parts of the first candidate. Reasoning is kept apart from the text."""
        usage = _read_usage(answer.get("usageMetadata"))
        feedback = answer.get("promptFeedback")
        blocked = str(feedback.get("blockReason") or "") if isinstance(feedback, dict) else ""
        if blocked and not answer.get("candidates"):
            return ChatReply(text="", finish="content_filter", refusal=f"the prompt was blocked: {blocked}", **usage)
        candidate = answer["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or ()
        reason = str(candidate.get("finishReason") or "")
        finish = _FINISH_REASONS.get(reason, reason)
        return ChatReply(
            text="".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
            finish=finish,
            refusal=f"the reply was blocked: {reason}" if finish == "content_filter" else "",
            thinking="".join(part["text"] for part in parts if "text" in part and part.get("thought")),
            model=str(answer.get("modelVersion") or ""),
            request_id=str(answer.get("responseId") or ""),
            **usage,
        )

    def parse_models(self, answer: Mapping[str, Any]) -> Iterator[ModelFacts]:
        """Yield the models that answer requests."""
        for entry in answer["models"]:
            methods = entry.get("supportedGenerationMethods") or ["generateContent"]
            if "generateContent" in methods:
                yield ModelFacts(
                    id=str(entry["name"]).removeprefix("models/"),
                    context_tokens=token_count(entry.get("inputTokenLimit")),
                    max_output_tokens=token_count(entry.get("outputTokenLimit")),
                    note="reasoning" if entry.get("thinking") else "",
                )

    def models_path(self) -> str:
        """Return the path of the list of models, as long as a page can be."""
        return "/models?pageSize=1000"

    def open_batches(self, endpoint: HttpEndpoint) -> BatchService | None:
        """Return the service for batches of requests."""
        from finecomb.annotators.llm.batches import GeminiBatches

        return GeminiBatches(endpoint)


def _read_usage(usage: Any) -> dict[str, Any]:
    """Return token counts. `candidatesTokenCount` excludes reasoning."""
    if not isinstance(usage, dict):
        return {}
    prompt, thoughts = token_count(usage.get("promptTokenCount")), token_count(usage.get("thoughtsTokenCount")) or 0
    candidates = token_count(usage.get("candidatesTokenCount"))
    completion = None if candidates is None and not thoughts else (candidates or 0) + thoughts
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cache_read_tokens": min(token_count(usage.get("cachedContentTokenCount")) or 0, prompt or 0),
        "thinking_tokens": thoughts,
    }
