"""Chat requests and replies as records, with the request hash that serves as cache key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from finecomb.core.records import Json, Record

Role = Literal["system", "user", "assistant"]
Structure = Literal["json_schema", "tool", "json_object", "none"]
"""A means of obtaining JSON from a model, from the strongest to none at all."""
FINISH_PROMPT_TRUNCATED = "prompt truncated"
"""Finish reason of a reply to a prompt that the server shortened."""
FINISH_MALFORMED = "malformed"
"""Finish reason of a response that is not a completion."""
FINISH_CONTEXT_OVERFLOW = "context"
"""Finish reason of a local model whose context is too small for the request."""
_TEMPLATE_TOKENS_PER_MESSAGE = 16  # upper bound on the tokens that a chat template adds around a message


class ChatMessage(Record):
    """A message of a conversation."""

    role: Role
    """The sender of the message."""
    content: str
    """The text of the message."""


class ChatRequest(Record):
    """A request with all parameters that determine the reply. Equal requests have equal hashes."""

    model: str
    """The model's name at the endpoint."""
    messages: tuple[ChatMessage, ...]
    """The messages in order."""
    temperature: float | None = None
    """Sampling temperature, not sent when None."""
    max_tokens: int = 2048
    """Maximum number of tokens in the reply."""
    seed: int | None = None
    """Random seed. Endpoints that support it return the same reply again."""
    sample: int = 0
    """Sample number, which keeps the hashes of samples distinct even if the endpoint ignores the seed."""
    retry: int = 0
    """Number of deliberate repetitions. It changes the hash, so that no cached reply is used."""
    json_schema: Json = None
    """JSON schema of the reply, for endpoints that support structured output."""
    top_p: float | None = None
    """Nucleus sampling probability, not sent when None."""
    frequency_penalty: float | None = None
    """Frequency penalty, not sent when None."""
    continued: bool = False
    """True if the messages form one text for the model to continue, instead of a conversation."""
    effort: str = ""
    """Reasoning effort, not sent when empty."""
    thinking_tokens: int | None = None
    """Maximum number of tokens for reasoning, not sent when None."""
    extra: Mapping[str, Json] = {}
    """Further parameters, sent as they are. A dot in a name leads into an object."""

    def hash_at_endpoint(self, endpoint: str) -> str:
        """Return the hash that identifies the request at an endpoint, used as cache key."""
        settings = [endpoint, self.model, self.temperature, self.max_tokens, self.seed, self.sample]
        # Later parameters are included only if set, so that hashes of earlier versions stay valid.
        parts = [*map(json.dumps, settings), _schema_text(self.json_schema), *([str(self.retry)] if self.retry else [])]
        later = {
            "top_p": self.top_p,
            "frequency_penalty": self.frequency_penalty,
            "continued": self.continued or None,
        }
        parts += [f"{name}={value:g}" for name, value in later.items() if value is not None]
        texts = {
            "effort": self.effort,
            "thinking_tokens": self.thinking_tokens,
            "extra": json.dumps(dict(self.extra), sort_keys=True) if self.extra else "",
        }
        parts += [f"{name}={value}" for name, value in texts.items() if value]
        digest = hashlib.sha256(f"[{', '.join(parts)}]".encode())
        for message in self.messages:
            digest.update(f"\0{message.role}\0{message.content}".encode())
        return digest.hexdigest()[:32]

    @property
    def continuation_prompt(self) -> str:
        """The text for the model to continue."""
        return "".join(message.content for message in self.messages)

    def max_prompt_tokens(self) -> int:
        """Return an upper bound for the prompt tokens of any byte-level tokenizer, for the budget."""
        # A byte-level tokenizer never produces more tokens than there are bytes.
        return sum(len(message.content.encode()) + _TEMPLATE_TOKENS_PER_MESSAGE for message in self.messages)

    def estimated_prompt_tokens(self) -> int:
        """Estimate the prompt tokens at four bytes of English per token."""
        return sum(len(message.content.encode()) // 4 + 4 for message in self.messages)

    def request_body(self, structure: Structure = "none") -> dict[str, Any]:
        """Return the JSON body of the request in the API of OpenAI."""
        names = ("temperature", "seed", "top_p", "frequency_penalty")
        optional: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.json_schema is not None and structure == "json_schema":
            schema = {"name": "annotation", "strict": True, "schema": self.json_schema}
            optional["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.json_schema is not None and structure == "json_object":
            optional["response_format"] = {"type": "json_object"}
        given = {name: value for name, value in optional.items() if value is not None}
        content: dict[str, Any] = {"messages": [message.model_dump() for message in self.messages]}
        if self.continued:
            content = {"prompt": self.continuation_prompt}
        return {"model": self.model, **content, "max_tokens": self.max_tokens, **given}


_SCHEMA_TEXTS: dict[int, tuple[Json, str]] = {}


def _schema_text(schema: Json) -> str:
    """Serialise a schema. Results are cached, because thousands of requests share one schema."""
    schema_and_text = _SCHEMA_TEXTS.get(id(schema))
    if schema_and_text is None or schema_and_text[0] is not schema:
        if len(_SCHEMA_TEXTS) > 64:
            _SCHEMA_TEXTS.clear()
        schema_and_text = _SCHEMA_TEXTS[id(schema)] = (schema, json.dumps(schema, sort_keys=True))
    return schema_and_text[1]


def storable_text(value: Any) -> Any:
    """Return a text without NUL characters and lone surrogates, which cannot be stored. Other values are unchanged.

    >>> storable_text("a\\0b\\ud83d")
    'a\ufffdb\ufffd'
    """
    if not isinstance(value, str):
        return value
    if "\0" in value:
        value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        value.encode()
    except UnicodeEncodeError:
        value = value.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")
    return value


StorableText = Annotated[str, BeforeValidator(storable_text)]
TokenCount = Annotated[int, Field(ge=0)]


class ChatReply(Record):
    """A reply as received from the endpoint."""

    text: StorableText
    """The text of the reply."""
    finish: StorableText = ""
    """The finish reason: `stop`, `length`, `content_filter`, ..."""
    refusal: StorableText = ""
    """The text of a refusal reported by the endpoint."""
    prompt_tokens: TokenCount | None = None
    """Prompt tokens as counted by the endpoint, including those read from and written to its cache."""
    completion_tokens: TokenCount | None = None
    """Reply tokens as counted by the endpoint, including those for reasoning."""
    cache_read_tokens: TokenCount = 0
    """Prompt tokens that the endpoint read from its cache."""
    cache_write_tokens: TokenCount = 0
    """Prompt tokens that the endpoint wrote to its cache."""
    cache_write_1h_tokens: TokenCount = 0
    """Prompt tokens that the endpoint wrote to its cache for one hour."""
    thinking_tokens: TokenCount = 0
    """Reply tokens for reasoning."""
    charged: Decimal | None = None
    """Cost in US dollars as reported by the endpoint."""
    model: StorableText = ""
    """The name of the answering model as reported by the endpoint."""
    structured: bool = False
    """True if the endpoint enforced the JSON schema."""
    thinking: StorableText = ""
    """The reasoning, if the endpoint returns it."""
    fingerprint: StorableText = ""
    """Version of the model's runtime as reported by the endpoint."""
    request_id: StorableText = ""
    """ID of the request at the endpoint, for questions to its operator."""
    sent: Mapping[str, Json] = {}
    """Parameters as sent, without messages and schema."""
    raw: StorableText = ""
    """The start of a response that is not a completion."""

    def truncated_prompt_reason(self, request: ChatRequest, context_tokens: int | None) -> str:
        """Return why the server must have shortened the prompt, or an empty string.

        No common tokenizer needs fewer than one token per 8 bytes of prose. If the context size is known, a prompt that
        fills it counts as shortened if English would not fit.
        """
        if self.prompt_tokens is None:
            return ""
        size = sum(len(message.content.encode()) for message in request.messages)
        is_over_context = (
            context_tokens is not None and size / 5 > context_tokens and self.prompt_tokens <= context_tokens
        )
        if size > 4_000 and (self.prompt_tokens < size / 8 or is_over_context):
            return (
                f"the server processed {self.prompt_tokens:,} prompt tokens of about {size // 4:,}, so it shortened the"
                " prompt; increase the context size of the server"
            )
        return ""
