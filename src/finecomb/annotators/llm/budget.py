"""Budgets and rates: what calls may cost, and how many may be made in a minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.core.errors import ParameterError, param
from finecomb.core.model_notes import token_cost
from finecomb.core.records import ModelSettings


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, sent and received."""

    sent: float = 0.0
    received: float = 0.0

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Price:
        """The price that settings name; nothing when they name none. A budget without a price is refused."""
        if settings.budget is not None and settings.price is None:
            raise ParameterError(
                f"{param('budget')} needs {param('price', 'IN,OUT')}, the price of a million tokens sent and received",
                parameter="price",
            )
        return cls(*settings.price) if settings.price else cls()

    def max_cost(self, request: ChatRequest) -> float:
        """The most that a request can cost."""
        return self.cost(request.max_prompt_tokens(), request.max_tokens)

    def estimated_cost(self, request: ChatRequest) -> float:
        """About what a request costs when its reply is a quarter of what it may be."""
        return self.cost(request.estimated_prompt_tokens(), request.max_tokens // 4)

    def reply_cost(self, request: ChatRequest, reply: ChatReply) -> float:
        """What a reply cost by the endpoint's own count; the most it can have cost where it does not count."""
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            return self.max_cost(request)
        return self.cost(reply.prompt_tokens, reply.completion_tokens)

    def cost(self, sent: int, received: int) -> float:
        """What so many tokens cost."""
        return token_cost((self.sent, self.received), sent, received)


@dataclass(slots=True)
class Budget:
    """What has been spent and what calls under way may still cost, against a limit that is never passed."""

    limit: float | None = None
    spent: float = 0.0
    reserved: float = 0.0

    def reserve(self, amount: float) -> bool:
        """Set an amount aside for a call; False when it could pass the limit."""
        if self.limit is not None and self.spent + self.reserved + amount > self.limit + 1e-12:
            return False
        self.reserved += amount
        return True

    def settle(self, amount: float, cost: float) -> None:
        """A call has ended: what it cost takes the place of what was set aside."""
        self.reserved -= amount
        self.spent += cost


@dataclass(slots=True)
class RateLimit:
    """So many a minute, evenly spread; the first come at once."""

    per_minute: float | None
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)

    async def wait(self, amount: float = 1.0) -> None:
        """Wait until `amount` more may be used."""
        if self.per_minute is None:
            return
        start = max(self._free_at, self.clock())
        self._free_at = start + 60 * amount / self.per_minute
        await asyncio.sleep(max(0.0, start - self.clock()))
