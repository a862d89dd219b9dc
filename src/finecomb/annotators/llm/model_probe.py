"""A test of a model with a few cheap calls: parameters, schema, limit, context, determinism, logprobs and price."""

from __future__ import annotations

from decimal import Decimal

from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.chat import FINISH_MALFORMED, ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.http_endpoint import HttpEndpoint
from finecomb.core.records import ModelSettings

_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
_LIMIT = 16
_FILLER = "The ferry leaves the harbour at six and returns before nightfall. "
ProbeRow = dict[str, object]


class ModelProbe:
    """The calls of one test. `rows` has the checks with their results, and `cost` the sum of what was charged."""

    def __init__(self, endpoint: HttpEndpoint, settings: ModelSettings) -> None:
        self.endpoint, self.settings = endpoint, settings
        self.price = Price.from_settings(settings)
        self.rows: list[ProbeRow] = []
        self.cost = Decimal(0)
        self.calls = 0

    async def run(self) -> None:
        """Make all checks. The first raises an error if the model cannot be used at all."""
        first = await self._call("Reply with a JSON object whose `colour` is the colour of the sky.", schema=True)
        self._add("model", "answers", first.model or "no name reported")
        sent = {change.name: change for change in self.endpoint.adaptation.changes}
        for name in ("temperature", "seed", "max_tokens", "max_completion_tokens"):
            if name in sent:
                self._add(name, sent[name].change, sent[name].why)
        accepted = [name for name in ("temperature", "seed") if name not in sent]
        if accepted:
            self._add(", ".join(accepted), "accepted", "the server may still ignore it")
        is_valid = first.text.strip().replace(" ", "") in ('{"colour":"blue"}', '{"colour":"red"}')
        step = self.endpoint.adaptation.structure
        self._add(
            "structured output", step, "the reply follows the schema" if is_valid else f"reply: {first.text[:60]!r}"
        )
        self._add_usage(first)
        second = await self._call("Reply with a JSON object whose `colour` is the colour of the sky.", schema=True)
        equal = "equal" if first.text == second.text else "different"
        self._add("determinism", f"two replies are {equal}", "two calls cannot prove that replies are always equal")
        await self._check_limit()
        await self._check_context()
        await self._check_logprobs()
        self._add("price", "known" if self.price.is_known else "unknown", self._price_detail())

    async def _call(self, message: str, schema: bool = False, limit: int = 1024, **extra: object) -> ChatReply:
        values = {
            "model": self.settings.model,
            "messages": (ChatMessage(role="user", content=message),),
            "temperature": 0.0 if self.settings.temperature is None else self.settings.temperature,
            "seed": self.settings.seed,
            "max_tokens": limit,
            "json_schema": _SCHEMA if schema else None,
            "effort": self.settings.effort,
            "thinking_tokens": self.settings.thinking_tokens,
            "extra": {**self.settings.extra, **extra},
        }
        request = ChatRequest.model_validate(values)
        reply = await self.endpoint.complete(request)
        if reply.finish == FINISH_MALFORMED:
            raise CallError(reply.raw.partition("\n")[0])
        self.calls += 1
        self.cost += self.price.reply_cost(request, reply)
        return reply

    def _add(self, check: str, result: str, detail: str = "") -> None:
        self.rows.append({"check": check, "result": result, "detail": detail})

    def _add_usage(self, reply: ChatReply) -> None:
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            self._add("usage", "not reported", "each reply counts as its maximum cost")
            return
        thinking = f", {reply.thinking_tokens:,} of them for reasoning" if reply.thinking_tokens else ""
        self._add("usage", "reported", f"{reply.prompt_tokens:,} sent, {reply.completion_tokens:,} received{thinking}")

    async def _check_limit(self) -> None:
        try:
            reply = await self._call("Count from 1 to 200, separated by spaces.", limit=_LIMIT)
        except CallError as error:
            self._add("limit on replies", "failed", str(error))
            return
        if reply.completion_tokens is not None and reply.completion_tokens > 2 * _LIMIT:
            self._add("limit on replies", "IGNORED", f"{reply.completion_tokens:,} tokens instead of {_LIMIT}")
        else:
            result = "respected" if reply.finish == "length" else f"unclear (finish reason {reply.finish!r})"
            self._add("limit on replies", result, f"{reply.completion_tokens} tokens of {_LIMIT}")

    async def _check_context(self) -> None:
        context = await self.endpoint.look_up_context(self.endpoint.provider.model_name(self.settings.model))
        self._add("context length", f"{context:,}" if context else "not reported", "")
        message = f"The password is plover. {_FILLER * 400}\nReply with the password only."
        try:
            reply = await self._call(message)
        except CallError as error:
            self._add("long prompt", "refused", str(error))
            return
        if reply.finish == "prompt truncated":
            self._add("long prompt", "TRUNCATED", reply.raw)
        else:
            is_remembered = "plover" in reply.text.lower()
            result = "read completely" if is_remembered else "not answered"
            self._add("long prompt", result, f"{reply.prompt_tokens} tokens for {len(message):,} characters")

    async def _check_logprobs(self) -> None:
        if "logprobs" not in self.endpoint.provider.capabilities:
            self._add("logprobs", "not requested", f"{self.endpoint.provider.name} has none in its API")
            return
        name = "generationConfig.responseLogprobs" if self.endpoint.provider.name == "gemini" else "logprobs"
        try:
            await self._call("Say yes.", **{name: True})
        except CallError as error:
            self._add("logprobs", "rejected", str(error))
        else:
            self._add("logprobs", "accepted", "")

    def _price_detail(self) -> str:
        rates = self.price.rates
        if rates is None:
            return "pass the price as IN,OUT, or add it to a price file"
        return f"${rates.input} in, ${rates.output} out per million tokens; this test cost ${self.cost:.4f}"
