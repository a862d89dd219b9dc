"""Providers that follow the API of OpenAI with small differences: Mistral, DeepSeek and OpenRouter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from finecomb.annotators.llm.chat import ChatRequest, Structure
from finecomb.annotators.llm.providers.base import Capability, HttpProvider, ModelFacts, token_count

if TYPE_CHECKING:
    from finecomb.annotators.llm.batches import BatchService
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint


class MistralProvider(HttpProvider):
    """Mistral. The seed is called `random_seed`, and replies can be lists of parts."""

    name = "mistral"
    base_url = "https://api.mistral.ai/v1"
    key_env = "MISTRAL_API_KEY"
    capabilities: frozenset[Capability] = frozenset({"chat", "json_schema", "seed", "batches", "effort"})
    renames = {"seed": "random_seed"}

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and body."""
        path, body = super().build_request(request, structure)
        if "seed" in body:
            body["random_seed"] = body.pop("seed")
        return path, body

    def open_batches(self, endpoint: HttpEndpoint) -> BatchService | None:
        """Return the service for batch jobs."""
        from finecomb.annotators.llm.batches import MistralBatches

        return MistralBatches(endpoint)


class DeepSeekProvider(HttpProvider):
    """DeepSeek. There are no JSON schemas, and reasoning is on unless `effort` is `none`."""

    name = "deepseek"
    base_url = "https://api.deepseek.com"
    key_env = "DEEPSEEK_API_KEY"
    capabilities: frozenset[Capability] = frozenset({"chat", "seed", "effort"})
    structures = ("json_object", "none")

    def reasoning_parameters(self, request: ChatRequest) -> dict[str, Any]:
        """Return the effort; `none` turns reasoning off."""
        if request.effort == "none":
            return {"thinking": {"type": "disabled"}}
        return super().reasoning_parameters(request)


class OpenRouterProvider(HttpProvider):
    """OpenRouter. It selects only servers that accept all parameters, and reports what a reply cost."""

    name = "openrouter"
    base_url = "https://openrouter.ai/api/v1"
    key_env = "OPENROUTER_API_KEY"
    capabilities: frozenset[Capability] = frozenset({"chat", "json_schema", "seed", "effort", "thinking"})

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and body. Without `require_parameters`, servers silently ignore parameters."""
        path, body = super().build_request(request, structure)
        return path, {**body, "provider": {"require_parameters": True}}

    def reasoning_parameters(self, request: ChatRequest) -> dict[str, Any]:
        """Return the effort and the maximum number of reasoning tokens."""
        reasoning = {"effort": request.effort or None, "max_tokens": request.thinking_tokens}
        given = {name: value for name, value in reasoning.items() if value}
        return {"reasoning": given} if given else {}

    def parse_models(self, answer: Mapping[str, Any]) -> Iterator[ModelFacts]:
        """Yield the models with their context size and whether they support JSON schemas."""
        for entry in answer["data"]:
            parameters = entry.get("supported_parameters") or ()
            top = entry.get("top_provider") if isinstance(entry.get("top_provider"), dict) else {}
            yield ModelFacts(
                id=str(entry["id"]),
                context_tokens=token_count(entry.get("context_length")),
                max_output_tokens=token_count(top.get("max_completion_tokens")),
                note="structured outputs" if "structured_outputs" in parameters else "",
            )
