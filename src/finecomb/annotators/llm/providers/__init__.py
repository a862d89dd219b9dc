"""Providers of models: the registry that turns a model's name and settings into an endpoint.

A provider is an object with a name, capabilities and a way to open an endpoint. The model `acme:big` belongs to the
provider `acme`, if one is registered. Names without a registered prefix belong to the OpenAI-compatible server at the
base URL. Plugins add providers to the registry `PROVIDERS`.
"""

from __future__ import annotations

from finecomb.annotators.llm.endpoint import Endpoint
from finecomb.annotators.llm.local_models import DEFAULT_CONTEXT_TOKENS, LocalEndpoint, is_local_model, local_model_file
from finecomb.annotators.llm.providers.anthropic import AnthropicProvider
from finecomb.annotators.llm.providers.azure import AzureProvider
from finecomb.annotators.llm.providers.base import Capability, HttpProvider, ModelFacts, Provider
from finecomb.annotators.llm.providers.gemini import GeminiProvider
from finecomb.annotators.llm.providers.ollama import OllamaProvider
from finecomb.annotators.llm.providers.openai import OpenAIProvider, ResponsesProvider
from finecomb.annotators.llm.providers.others import DeepSeekProvider, MistralProvider, OpenRouterProvider
from finecomb.core.records import ModelSettings
from finecomb.plugins import Registry

__all__ = [
    "PROVIDERS",
    "Capability",
    "CompatibleProvider",
    "HttpProvider",
    "LocalProvider",
    "ModelFacts",
    "Provider",
    "find_provider",
]


class CompatibleProvider(HttpProvider):
    """Any OpenAI-compatible server at a base URL, for model names without the prefix of a provider."""

    name = "openai-compatible"
    may_truncate_prompts = True
    capabilities: frozenset[Capability] = HttpProvider.capabilities | {"logprobs"}

    def owns_model(self, model: str) -> bool:
        """Return False, because this provider is used only when no other provider owns a model."""
        return False

    def model_name(self, model: str) -> str:
        """Return the name unchanged, because a colon can be part of it, as in `qwen3:8b`."""
        return model


class LocalProvider(Provider):
    """GGUF models that run in this process."""

    name = "local"
    capabilities: frozenset[Capability] = frozenset({"chat", "completions", "json_schema", "seed"})
    context_tokens = DEFAULT_CONTEXT_TOKENS
    short_prompt = True

    def owns_model(self, model: str) -> bool:
        """Return whether a model's name has the prefix or is that of a GGUF file."""
        return is_local_model(model)

    def host(self, settings: ModelSettings) -> str:
        """Return `local`, or raise an error if the model's file is missing."""
        local_model_file(settings.model)
        return LocalEndpoint.host

    def open_endpoint(self, settings: ModelSettings) -> Endpoint:
        """Load the model."""
        return LocalEndpoint(settings.model, settings.context_tokens or DEFAULT_CONTEXT_TOKENS)


_BUILT_IN: tuple[Provider, ...] = (
    LocalProvider(),
    OpenAIProvider(),
    ResponsesProvider(),
    AzureProvider(),
    AnthropicProvider(),
    GeminiProvider(),
    MistralProvider(),
    DeepSeekProvider(),
    OpenRouterProvider(),
    OllamaProvider(),
    CompatibleProvider(),
)
PROVIDERS = Registry[Provider]("providers", Provider, {provider.name: provider for provider in _BUILT_IN})
"""Providers by name."""


def find_provider(model: str) -> Provider:
    """Return the provider of a model. Names without a registered prefix belong to `openai-compatible`.

    >>> find_provider("local:smollm2").name, find_provider("qwen3:8b").name
    ('local', 'openai-compatible')
    """
    owners = (provider for provider in PROVIDERS.values() if provider.owns_model(model))
    return next(owners, PROVIDERS[CompatibleProvider.name])
