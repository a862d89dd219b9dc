"""The interface of providers: names, addresses, keys, requests, replies and lists of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal

from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.endpoint import CallError, Endpoint, parse_host
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import ModelSettings, Record

if TYPE_CHECKING:
    from finecomb.annotators.llm.batches import BatchService
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint

Capability = Literal["chat", "completions", "json_schema", "seed", "logprobs", "batches", "effort", "thinking"]
"""A feature of a provider: an interface, structured output, a parameter, or requests in batches."""
_MAX_TOKEN_COUNT = 10**12


class ModelFacts(Record):
    """A model as listed by its provider."""

    id: str
    """Name of the model at the provider."""
    context_tokens: int | None = None
    """Maximum number of prompt tokens."""
    max_output_tokens: int | None = None
    """Maximum number of reply tokens."""
    note: str = ""
    """Features, or the date on which the provider will remove the model."""


class Provider:
    """A service or runtime that answers requests to its models."""

    name: str
    """Prefix of the provider's models, as in `NAME:MODEL`."""
    capabilities: frozenset[Capability] = frozenset()
    base_url: str = ""
    """Default URL, if the provider has one; `base_url` in the settings replaces it."""
    key_env: str = ""
    """Environment variable that usually holds the API key; `key_env` in the settings replaces it."""
    context_tokens: int | None = None
    """Context size of the provider's models in tokens, if the settings give none."""
    short_prompt: bool = False
    """True if the models are too small for the full prompt."""
    calls_per_slot: int = 1
    """Number of simultaneous calls per unit of `concurrency`."""

    def owns_model(self, model: str) -> bool:
        """Return whether a model's name refers to this provider."""
        return model.startswith(f"{self.name}:")

    def model_name(self, model: str) -> str:
        """Return a model's name at the provider, without the prefix."""
        return model.removeprefix(f"{self.name}:")

    def host(self, settings: ModelSettings) -> str:
        """Return the host that is part of cache keys and records, or raise an error if the model cannot be used."""
        raise NotImplementedError

    def open_endpoint(self, settings: ModelSettings) -> Endpoint:
        """Open the endpoint that answers the requests of a run."""
        raise NotImplementedError


class HttpProvider(Provider):
    """A provider reached over HTTP with the API of OpenAI. Subclasses override the methods that differ."""

    capabilities: frozenset[Capability] = frozenset({"chat", "completions", "json_schema", "seed", "effort"})
    structures: Sequence[Structure] = ("json_schema", "json_object", "none")
    """Means of structured output, the strongest first."""
    structure_fields: Sequence[str] = ("response_format",)
    """Parameters that request structured output."""
    renames: Mapping[str, str] = {}
    """Names that replace a rejected parameter, where the error does not give one."""
    may_truncate_prompts: bool = False
    """True if a server may shorten prompts without an error, so that its context size must be known."""
    version_names: Sequence[str] = ()
    """Formats of `api_version`, for error messages; empty if the provider has only one version of its API."""

    def host(self, settings: ModelSettings) -> str:
        """Return the host and port of the server's address, or raise an error if an option does not apply."""
        base_url = settings.base_url or self.base_url
        if not base_url:
            raise ParameterError(
                f"{param('base_url', 'URL')} is required for model {settings.model!r}; to run a model locally, use"
                f" {param('model', 'local:smollm2')}",
                parameter="base_url",
            )
        if settings.api_version and not self.version_names:
            raise ParameterError(
                f"{param('api_version')} does not apply to {self.name}; it applies to azure, anthropic and gemini",
                parameter="api_version",
            )
        needs: tuple[tuple[str, Capability], ...] = (("effort", "effort"), ("thinking_tokens", "thinking"))
        for option, capability in needs:
            if getattr(settings, option) and capability not in self.capabilities:
                raise ParameterError(
                    f"{param(option)} does not apply to {self.name}; pass the provider's own parameter with"
                    f" {param('extra')}",
                    parameter=option,
                )
        return parse_host(base_url)

    def uses_usual_key(self, settings: ModelSettings) -> bool:
        """Return whether the key in `key_env` of the provider may be sent to the address in the settings.

        A key is sent to another host only if the user names its environment variable.
        """
        if not settings.base_url:
            return True
        return bool(self.base_url) and parse_host(settings.base_url) == parse_host(self.base_url)

    def open_endpoint(self, settings: ModelSettings) -> HttpEndpoint:
        """Open a client of the server."""
        from finecomb.annotators.llm.http_endpoint import HttpEndpoint  # imported here because httpx is optional

        return HttpEndpoint(self, settings)

    def address(self, settings: ModelSettings) -> str:
        """Return the address that precedes the paths of requests."""
        return (settings.base_url or self.base_url).rstrip("/")

    def query(self, settings: ModelSettings) -> str:
        """Return the query of every address."""
        return ""

    def headers(self, key: str, settings: ModelSettings) -> dict[str, str]:
        """Return the headers of every request. `key` is empty if no API key is set."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path after the address and the JSON body of a request.

        `structure` is the strongest means of structured output that the server has not rejected.
        """
        path = "/completions" if request.continued else "/chat/completions"
        body = {**request.request_body(structure), "model": self.model_name(request.model)}
        return path, body | self.reasoning_parameters(request)

    def reasoning_parameters(self, request: ChatRequest) -> dict[str, Any]:
        """Return the parameters for effort and for the maximum number of reasoning tokens."""
        return {"reasoning_effort": request.effort} if request.effort else {}

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        """Read a reply from the JSON of a response. A lookup or type error means that the response is not a reply.

        A CallError means that the server failed to complete the reply.
        """
        choice = answer["choices"][0]
        message = choice["message"] if "message" in choice else {"content": choice["text"]}
        text, thinking = split_content(message.get("content"))
        finish = str(choice.get("finish_reason") or "")
        if finish == "error":
            what = choice.get("error") or {}
            reason = str(what.get("message") or "no reason given") if isinstance(what, dict) else str(what)
            raise CallError(f"the model failed while generating its reply: {reason}", again=True, maybe_paid=True)
        return ChatReply(
            text=text,
            finish={"model_length": "length"}.get(finish, finish),
            refusal=str(message.get("refusal") or ""),
            thinking=thinking or str(message.get("reasoning_content") or message.get("reasoning") or ""),
            model=str(answer.get("model") or ""),
            fingerprint=str(answer.get("system_fingerprint") or ""),
            **chat_usage(answer.get("usage")),
        )

    def parse_models(self, answer: Mapping[str, Any]) -> Iterator[ModelFacts]:
        """Yield the models in the JSON of the response to `models_path`."""
        for entry in answer["data"]:
            meta = entry.get("meta") if isinstance(entry.get("meta"), dict) else {}
            sizes = (entry.get(name) for name in ("context_length", "max_context_length", "max_model_len"))
            yield ModelFacts(
                id=str(entry["id"]),
                context_tokens=next((size for size in map(token_count, sizes) if size), None),
                note=f"trained with a context of {meta['n_ctx_train']:,}"
                if token_count(meta.get("n_ctx_train"))
                else "",
            )

    def models_path(self) -> str:
        """Return the path of the list of models."""
        return "/models"

    def open_batches(self, endpoint: HttpEndpoint) -> BatchService | None:
        """Return the service for requests in batches, or None if the provider has none."""
        return None


def token_count(value: Any) -> int | None:
    """Return a number of tokens that a server reported, or None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _MAX_TOKEN_COUNT else None


def split_content(content: Any) -> tuple[str, str]:
    """Return the text and the reasoning in a message's content, which is a string or a list of parts.

    >>> split_content([{"type": "text", "text": "Fine."}])
    ('Fine.', '')
    """
    if content is None or isinstance(content, str):
        return content or "", ""
    texts, thinking = [], []
    for part in content:
        if part.get("type") in ("text", "output_text"):
            texts.append(str(part["text"]))
        elif part.get("type") == "thinking":
            thinking.append(split_content(part["thinking"])[0])
    return "".join(texts), "".join(thinking)


def chat_usage(usage: Any) -> dict[str, Any]:
    """Return the token counts of a reply from the `usage` of OpenAI's API and its variants."""
    if not isinstance(usage, dict):
        return {}
    inner = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    outer = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    completion = usage.get("completion_tokens", usage.get("output_tokens"))
    read = inner.get("cached_tokens") if isinstance(inner, dict) else None
    written = inner.get("cache_write_tokens") if isinstance(inner, dict) else None
    thinking = outer.get("reasoning_tokens") if isinstance(outer, dict) else None
    prompt_tokens, completion_tokens = token_count(prompt), token_count(completion)
    if prompt_tokens is None and "prompt_cache_miss_tokens" in usage:
        misses, hits = (token_count(usage.get(f"prompt_cache_{name}_tokens")) or 0 for name in ("miss", "hit"))
        prompt_tokens = misses + hits
    limit = prompt_tokens or 0
    read_tokens = min(token_count(read) or token_count(usage.get("prompt_cache_hit_tokens")) or 0, limit)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "cache_read_tokens": read_tokens,
        "cache_write_tokens": min(token_count(written) or 0, limit - read_tokens),
        "thinking_tokens": min(token_count(thinking) or 0, completion_tokens or 0),
        "charged": money(usage.get("cost")),
    }


def money(value: Any) -> Decimal | None:
    """Return an amount that a server reported, or None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < 10**6 else None
