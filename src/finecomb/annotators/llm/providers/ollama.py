"""Ollama with its own API, which sets the context size and refuses prompts that do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.providers.base import Capability, HttpProvider, ModelFacts, token_count
from finecomb.core.records import ModelSettings

_MIN_CONTEXT_TOKENS = 4096


class OllamaProvider(HttpProvider):
    """Models of an Ollama server."""

    name = "ollama"
    base_url = "http://localhost:11434"
    capabilities: frozenset[Capability] = frozenset({"chat", "json_schema", "seed", "effort"})
    structure_fields = ("format",)
    may_truncate_prompts = True

    def address(self, settings: ModelSettings) -> str:
        """Return the address of the API. Addresses of the compatible API are accepted too."""
        return f"{super().address(settings).removesuffix('/v1').removesuffix('/api')}/api"

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and body. The context is large enough for the prompt and the reply."""
        optional = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "frequency_penalty": request.frequency_penalty,
        }
        context = _MIN_CONTEXT_TOKENS
        while context < request.max_prompt_tokens() // 3 + request.max_tokens:
            context *= 2  # Ollama loads the model again for each new size, so there are few sizes
        options: dict[str, Any] = {"num_predict": request.max_tokens, "num_ctx": context}
        options |= {name: value for name, value in optional.items() if value is not None}
        body: dict[str, Any] = {
            "model": self.model_name(request.model),
            "messages": [message.model_dump() for message in request.messages],
            "stream": False,
            "truncate": False,
            "options": options,
        }
        if request.json_schema is not None and structure == "json_schema":
            body["format"] = request.json_schema
        elif request.json_schema is not None and structure == "json_object":
            body["format"] = "json"
        if request.effort:
            body["think"] = {"none": False, "true": True}.get(request.effort, request.effort)
        return "/chat", body

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        """Read the message."""
        message = answer["message"]
        return ChatReply(
            text=message.get("content") or "",
            finish=str(answer.get("done_reason") or ""),
            thinking=str(message.get("thinking") or ""),
            prompt_tokens=token_count(answer.get("prompt_eval_count")),
            completion_tokens=token_count(answer.get("eval_count")),
            model=str(answer.get("model") or ""),
        )

    def parse_models(self, answer: Mapping[str, Any]) -> Iterator[ModelFacts]:
        """Yield the installed models."""
        for entry in answer["models"]:
            details = entry.get("details") if isinstance(entry.get("details"), dict) else {}
            note = " ".join(
                str(details[name]) for name in ("parameter_size", "quantization_level") if details.get(name)
            )
            yield ModelFacts(id=str(entry["name"]), note=note)

    def models_path(self) -> str:
        """Return the path of the list of installed models."""
        return "/tags"
