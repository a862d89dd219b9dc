"""Random replies with fixed seeds: each is read, or named as unreadable, and can always be stored."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from finecomb.annotators.llm.chat import ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError, EndpointError
from finecomb.annotators.llm.http_endpoint import HttpEndpoint, HttpResponse
from finecomb.annotators.llm.providers import PROVIDERS, HttpProvider
from finecomb.annotators.llm.reply_parser import MAX_MARKS, build_reply_content, parse_reply
from finecomb.core.records import Document, ModelSettings
from finecomb.protocols import load

DOCUMENT = Document(id="d", text="The ferry left at 6:45. The captain said the the word again.")
SCARECROW = load("scarecrow")
MARK = {"quote": "the the", "before": "said", "after": "word", "label": "grammar-usage", "severity": 1}
GOOD = json.dumps({"marks": [{**MARK, "explanation": "Doubled."}]})
STRANGE: list[Any] = [
    None, True, -1, 0, 1e308, 10**4000, float("nan"), float("inf"), "", "\ud83d", "\0", "x" * 5000, [], {}, [[[[]]]],
    "the the", {"quote": None}, {"quote": "\udc00"}, ["the the"], "{}", "null", "\u202e", {"a": {"b": {"c": []}}},
]  # fmt: skip


INSERTIONS = ['"', "\\", "{", "}", "[", "]", ",", "\ud83d", "\\ud83d", "\0", "```", "9" * 400]


def damage_text(rng: random.Random, text: str) -> str:
    """Cut, repeat, exchange or insert characters."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        part = text[at:to]
        text = rng.choice(
            [
                text[:at],
                text[:at] + text[to:],
                text[:to] + part * rng.randint(1, 3) + text[to:],
                text[:at] + rng.choice(INSERTIONS)
                + text[at:],
                json.dumps(text, ensure_ascii=rng.random() < 0.5),
                f"<think>{part}</think>{text}",
            ]
        )[:20_000]  # fmt: skip
    return text


def damage_value(rng: random.Random, value: Any) -> Any:
    """Replace a random part of a JSON value."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.2:
        return rng.choice(STRANGE)
    if isinstance(value, list):
        number = rng.randrange(len(value))
        return [*value[:number], damage_value(rng, value[number]), *value[number + 1 :]]
    name = rng.choice(list(value))
    if rng.random() < 0.2:
        return {**value, rng.choice(["\ud800", "marks", "quote", "severity", "x"]): rng.choice(STRANGE)}
    return {**value, name: damage_value(rng, value[name])}


def check_stored(reply: ChatReply) -> None:
    stored = ChatReply.model_validate_json(reply.model_dump_json())
    assert stored == reply
    content = build_reply_content(stored, DOCUMENT, SCARECROW, "p")
    assert (content.state == "read") == (not content.why)
    for mark in content.marks:
        assert mark.model_validate_json(mark.model_dump_json()) == mark
    if content.state == "read" and not content.marks:
        # "No errors" is believed only if the list is there and empty.
        assert parse_reply(stored).value["marks"] == []


@pytest.mark.parametrize("seed", range(6))
def test_damaged_replies_are_read_or_named(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        check_stored(ChatReply(text=damage_text(rng, GOOD)))
        check_stored(ChatReply(text=json.dumps(damage_value(rng, json.loads(GOOD)))))


LARGE = {
    "deep": "[" * 100_000,
    "deep objects": '{"marks": ' * 20_000 + "1" + "}" * 20_000,
    "digits": '{"marks": [{"quote": "the the", "label": "grammar-usage", "severity": ' + "9" * 4000 + "}]}",
    "more digits": '{"marks": [{"quote": "the the", "severity": ' + "9" * 5000 + "}]}",
    "marks": json.dumps({"marks": [{"quote": "a"}] * 60_000}, separators=(",", ":")),
    "encoded twice": json.dumps(GOOD),
    "encoded marks": json.dumps({"marks": json.dumps([MARK])}),
    "open quotes": '\\"' * 200_000,
    "open tags": "<think>" * 100_000,
    "fences": "```\n" * 100_000,
    "prose": "word " * 150_000,
    "invalid": "{" + "a:b," * 100_000 + "}",
}
READ = {"digits", "more digits", "encoded twice", "encoded marks"}


@pytest.mark.parametrize("name", LARGE)
def test_large_replies_are_bounded(name: str) -> None:
    reply = ChatReply(text=LARGE[name])
    check_stored(reply)
    content = build_reply_content(reply, DOCUMENT, SCARECROW, "p")
    assert (content.state == "read") == (name in READ), content.why
    if name == "marks":
        assert f"60,000 marks; at most {MAX_MARKS:,} are read" in content.why


BODIES: dict[str, Callable[[], Any]] = {
    "openai-compatible": lambda: {
        "choices": [{"message": {"content": GOOD, "refusal": None}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}},
        "model": "m",
    },
    "openai-responses": lambda: {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": GOOD}]}],
        "usage": {"input_tokens": 9, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}},
    },
    "anthropic": lambda: {
        "content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": GOOD}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 3, "cache_creation": {"ephemeral_1h_input_tokens": 1}},
    },
    "gemini": lambda: {
        "candidates": [{"content": {"parts": [{"text": GOOD}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
    },
    "mistral": lambda: {
        "choices": [{"message": {"content": [{"type": "text", "text": GOOD}]}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3},
    },
    "ollama": lambda: {"message": {"content": GOOD}, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 3},
}


@pytest.mark.parametrize("name", BODIES)
def test_damaged_responses_become_replies_or_errors(name: str) -> None:
    provider = PROVIDERS[name]
    assert isinstance(provider, HttpProvider)
    endpoint = HttpEndpoint(provider, ModelSettings(model="m", base_url="http://localhost:1"))
    request = ChatRequest(model="m", messages=(ChatMessage(role="user", content="x"),))
    rng = random.Random(name)
    outcomes = set()
    for _ in range(250):
        if rng.random() < 0.7:
            content = json.dumps(damage_value(rng, BODIES[name]())).encode()
        else:
            content = damage_text(rng, json.dumps(BODIES[name]())).encode("utf-8", errors="surrogatepass")
        try:
            reply = endpoint.read_reply(request, HttpResponse(200, {}, content), {"seed": 1})
        except (CallError, EndpointError) as error:
            outcomes.add(type(error).__name__)
        else:
            check_stored(reply)
            outcomes.add(reply.finish)
    assert {"malformed", "stop"} <= outcomes
