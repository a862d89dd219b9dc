"""Prices, budgets and rate limits for calls to language models. Amounts are exact decimal numbers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import ModelRates, ModelSettings

_MILLION = Decimal(1_000_000)
_DEFAULT_WRITE_FACTOR = 2  # the highest price of a cache write that any provider is known to charge


@dataclass(frozen=True, slots=True)
class Price:
    """The price of tokens, and of tokens read from or written to a cache, in US dollars per million."""

    rates: ModelRates | None = None
    """The prices, or None if they are unknown. The cost is then 0 unless the endpoint reports it."""
    factor: Decimal = Decimal(1)
    """Factor on all prices, for requests in batches."""

    @classmethod
    def from_settings(cls, settings: ModelSettings, is_batch: bool = False) -> Price:
        """Return the price in the settings, or else that of the price file. A budget requires a price.

        A price in the settings is that of a call as it is made, and so has no further discount in a batch.
        """
        if settings.price:
            sent, received = (Decimal(str(value)) for value in settings.price)
            same = {"cache_read": sent, "cache_write": sent, "cache_write_1h": sent}
            return cls(ModelRates(model=settings.model, input=sent, output=received, **same))
        if settings.rates is None and settings.budget is not None:
            raise ParameterError(
                f"{param('budget')} requires {param('price', 'IN,OUT')} in dollars per million tokens, or an entry for"
                " the model in a price file; see finecomb prices",
                parameter="price",
            )
        rates = settings.rates
        return cls(rates, (rates.batch or Decimal(1)) if rates and is_batch else Decimal(1))

    @property
    def is_known(self) -> bool:
        """True if the price is known."""
        return self.rates is not None

    def max_cost(self, request: ChatRequest) -> Decimal:
        """Return the maximum cost of a request, with every prompt token at the highest of the prices."""
        if self.rates is None:
            return Decimal(0)
        prompt = request.max_prompt_tokens()
        dearest = max(self.rates.input, self._cache_read, self._cache_write, self._cache_write_1h)
        return self._total(dearest * prompt, self.rates.output * request.max_tokens, prompt)

    def estimated_cost(self, request: ChatRequest) -> Decimal:
        """Estimate the cost of a request whose reply uses a quarter of the maximum tokens."""
        return self.cost(request.estimated_prompt_tokens(), request.max_tokens // 4)

    def reply_cost(self, request: ChatRequest, reply: ChatReply) -> Decimal:
        """Return the cost of a reply: as the endpoint reports it, from its token counts, or else the maximum cost."""
        if reply.charged is not None:
            return reply.charged
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            return self.max_cost(request)
        return self.cost(
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.cache_read_tokens,
            reply.cache_write_tokens,
            reply.cache_write_1h_tokens,
        )

    def cost(self, sent: int, received: int, read: int = 0, written: int = 0, written_1h: int = 0) -> Decimal:
        """Return the cost of tokens. `sent` includes those read from and written to the cache."""
        if self.rates is None:
            return Decimal(0)
        plain = max(0, sent - read - written - written_1h)
        prompt = self.rates.input * plain + self._cache_read * read
        prompt += self._cache_write * written + self._cache_write_1h * written_1h
        return self._total(prompt, self.rates.output * received, sent)

    def _total(self, prompt: Decimal, reply: Decimal, prompt_tokens: int) -> Decimal:
        above = self.rates.above if self.rates else None
        if above and prompt_tokens > above.tokens:
            prompt, reply = prompt * above.input, reply * above.output
        return (prompt + reply) * self.factor / _MILLION

    @property
    def _cache_read(self) -> Decimal:
        assert self.rates is not None
        return self.rates.input if self.rates.cache_read is None else self.rates.cache_read

    @property
    def _cache_write(self) -> Decimal:
        assert self.rates is not None
        return self.rates.input * _DEFAULT_WRITE_FACTOR if self.rates.cache_write is None else self.rates.cache_write

    @property
    def _cache_write_1h(self) -> Decimal:
        assert self.rates is not None
        hour = self.rates.cache_write_1h
        return self.rates.input * _DEFAULT_WRITE_FACTOR if hour is None else hour


@dataclass(slots=True)
class Budget:
    """The amount spent and reserved for calls in progress, with a limit that is never exceeded."""

    limit: Decimal | None = None
    spent: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def reserve(self, amount: Decimal) -> bool:
        """Reserve an amount for a call, or return False if it could exceed the limit.

        Calls in progress usually cost less than is reserved for them, so their end is awaited before giving up.
        """
        while not self.try_reserve(amount):
            if not self.reserved:
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    def try_reserve(self, amount: Decimal) -> bool:
        """Reserve an amount if it fits the limit together with all calls in progress."""
        if self.limit is not None and self.spent + self.reserved + amount > self.limit:
            return False
        self.reserved += amount
        return True

    def settle_reservation(self, amount: Decimal, cost: Decimal) -> None:
        """Replace the reserved amount of a finished call with its actual cost."""
        self.reserved -= amount
        self.spent += cost
        self._changed.set()


@dataclass(slots=True)
class RateLimit:
    """A rate limit per minute that spaces uses evenly. The first use is immediate."""

    per_minute: float | None
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)

    async def wait_for_capacity(self, amount: float = 1.0) -> None:
        """Wait until `amount` can be used without exceeding the limit."""
        if self.per_minute is None:
            return
        start = max(self._free_at, self.clock())
        self._free_at = start + 60 * amount / self.per_minute
        await asyncio.sleep(max(0.0, start - self.clock()))
