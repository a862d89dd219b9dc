"""Chat requests and replies: what is sent to a language model and what comes back, as records with a hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from finecomb.core.records import Json, Record

Role = Literal["system", "user", "assistant"]
FINISH_CONTEXT_OVERFLOW = "context"
"""Why a reply of a local model has no words: what it was asked does not fit into it."""
_TEMPLATE_TOKENS_PER_MESSAGE = 16  # tokens that a chat template may add around a message


class ChatMessage(Record):
    """One message of a conversation."""

    role: Role
    """Who speaks."""
    content: str
    """What is said."""


class ChatRequest(Record):
    """Everything that decides what a model answers; equal requests have equal hashes."""

    model: str
    """As the endpoint calls it."""
    messages: tuple[ChatMessage, ...]
    """In order."""
    temperature: float | None = None
    """Not sent when None."""
    max_tokens: int = 2048
    """Most tokens of the reply."""
    seed: int | None = None
    """Sent along; endpoints that know it answer the same again."""
    sample: int = 0
    """Separates samples, also where an endpoint knows no seed."""
    retry: int = 0
    """Counts how often it was asked again on purpose, so that the cache does not answer."""
    json_schema: Json = None
    """What the reply should look like, where the endpoint can promise it."""
    top_p: float | None = None
    """Mass of the nucleus; not sent when None."""
    frequency_penalty: float | None = None
    """Not sent when None."""
    continued: bool = False
    """Whether the messages are one text that the model goes on with, and no conversation."""

    def hash(self, endpoint: str) -> str:
        """Identifies the request at an endpoint; the key of the cache."""
        settings = [endpoint, self.model, self.temperature, self.max_tokens, self.seed, self.sample]
        parts = [*map(json.dumps, settings), _schema_text(self.json_schema), *([str(self.retry)] if self.retry else [])]
        parts += [f"{name}={value:g}" for name, value in self._decoding_parameters().items()]
        digest = hashlib.sha256(f"[{', '.join(parts)}]".encode())
        for message in self.messages:
            digest.update(f"\0{message.role}\0{message.content}".encode())
        return digest.hexdigest()[:32]

    def _decoding_parameters(self) -> dict[str, float]:
        """What texts are written with and annotations are not; empty for those, whose hashes are thus as ever."""
        values = {
            "top_p": self.top_p,
            "frequency_penalty": self.frequency_penalty,
            "continued": self.continued or None,
        }
        return {name: value for name, value in values.items() if value is not None}

    @property
    def prompt(self) -> str:
        """The text that is to be continued."""
        return "".join(message.content for message in self.messages)

    def max_prompt_tokens(self) -> int:
        """More tokens than any byte-level tokenizer makes of the messages: what a budget has to reckon with."""
        return sum(len(message.content.encode()) + _TEMPLATE_TOKENS_PER_MESSAGE for message in self.messages)

    def estimated_prompt_tokens(self) -> int:
        """About as many tokens as the messages have: four bytes of English a token."""
        return sum(len(message.content.encode()) // 4 + 4 for message in self.messages)

    def body(self, structured: bool) -> dict[str, Any]:
        """The JSON that is sent."""
        names = ("temperature", "seed", "top_p", "frequency_penalty")
        optional: dict[str, Any] = {name: getattr(self, name) for name in names}
        if structured and self.json_schema is not None:
            schema = {"name": "annotation", "strict": True, "schema": self.json_schema}
            optional["response_format"] = {"type": "json_schema", "json_schema": schema}
        given = {name: value for name, value in optional.items() if value is not None}
        asked: dict[str, Any] = {"messages": [message.model_dump() for message in self.messages]}
        if self.continued:
            asked = {"prompt": self.prompt}
        return {"model": self.model, **asked, "max_tokens": self.max_tokens, **given}


_SCHEMA_TEXTS: dict[int, tuple[Json, str]] = {}


def _schema_text(schema: Json) -> str:
    """A schema as text; thousands of requests share one, so the last ones are kept."""
    schema_and_text = _SCHEMA_TEXTS.get(id(schema))
    if schema_and_text is None or schema_and_text[0] is not schema:
        if len(_SCHEMA_TEXTS) > 64:
            _SCHEMA_TEXTS.clear()
        schema_and_text = _SCHEMA_TEXTS[id(schema)] = (schema, json.dumps(schema, sort_keys=True))
    return schema_and_text[1]


class ChatReply(Record):
    """What came back, unchanged."""

    text: str
    """The message as it came."""
    finish: str = ""
    """Why the model stopped: `stop`, `length`, `content_filter`, ..."""
    refusal: str = ""
    """A refusal that the endpoint reports as such."""
    prompt_tokens: int | None = Field(default=None, ge=0)
    """As the endpoint counted them."""
    completion_tokens: int | None = Field(default=None, ge=0)
    """As the endpoint counted them."""
    model: str = ""
    """The model that answered, by the endpoint's own word."""
    structured: bool = False
    """Whether the endpoint promised the shape of the reply."""
