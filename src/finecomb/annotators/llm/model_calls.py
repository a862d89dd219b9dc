"""Calls to an endpoint, many at a time: retried, limited, journalled and within the budget."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from finecomb.annotators.llm.budget import Budget, Price, RateLimit
from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError, Endpoint
from finecomb.annotators.llm.journal import CallEntry, FailureEntry, Journal, PrefixEntry, ReplyEntry
from finecomb.core.records import ModelSettings

logging.getLogger("stamina").addHandler(logging.NullHandler())  # it tells of every retry; the journal does too
_MAX_CONSECUTIVE_FAILURES = 8  # calls in a row that the endpoint will not take: the rest would fare no better


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request with what it is for."""

    document: str
    request: ChatRequest
    hash: str


@dataclass(slots=True)
class CallProgress:
    """How far a run is, for whoever watches it."""

    total: int
    done: int = 0
    cached: int = 0
    failed: int = 0
    cost: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def calls_per_second(self) -> float:
        """Calls answered a second; those from the cache do not count."""
        return (self.done - self.cached) / max(1e-9, time.monotonic() - self.started)

    @property
    def seconds_left(self) -> float:
        """At the rate so far."""
        return (self.total - self.done - self.failed) / self.calls_per_second if self.calls_per_second else float("inf")


ProgressCallback = Callable[[CallProgress], None]


class BudgetError(Exception):
    """The next call could cost more than is left."""


class Caller:
    """Makes the calls of one run."""

    def __init__(self, endpoint: Endpoint, settings: ModelSettings, journal: Journal, price: Price) -> None:
        self.endpoint, self.settings, self.journal, self.price = endpoint, settings, journal, price
        self.budget = Budget(settings.budget, spent=journal.content.spent)
        self.failures: dict[str, str] = {}
        self.stopped = ""
        self._requests = RateLimit(settings.requests_per_minute)
        self._tokens = RateLimit(settings.tokens_per_minute)
        self._refused_in_a_row = 0
        self._saving: list[asyncio.Task[None]] = []

    async def make_calls(
        self, calls: Iterable[ModelCall], progress: CallProgress, watch: ProgressCallback
    ) -> AsyncIterator[tuple[ModelCall, ReplyEntry]]:
        """Replies as they come; failures are left in `failures`, the reason for an early end in `stopped`."""
        queue: asyncio.Queue[tuple[ModelCall, ReplyEntry] | None] = asyncio.Queue()
        waiting = iter(calls)
        workers = [
            asyncio.create_task(self._run_worker(waiting, queue, progress, watch))
            for _ in range(self.settings.concurrency)
        ]
        gathered = asyncio.ensure_future(self._wait_for_workers(workers))
        gathered.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (item := await queue.get()) is not None:
                yield item
            await gathered
        finally:
            gathered.cancel()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, *self._saving, return_exceptions=True)

    async def _wait_for_workers(self, workers: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*workers)
        await asyncio.gather(*self._saving)

    async def _run_worker(
        self,
        waiting: Iterator[ModelCall],
        queue: asyncio.Queue[tuple[ModelCall, ReplyEntry] | None],
        progress: CallProgress,
        watch: ProgressCallback,
    ) -> None:
        for call in waiting:
            if self.stopped:
                return
            try:
                entry = await self._call_with_retries(call)
            except BudgetError:
                self.stopped = "stopped at its budget"
                return
            except CallError as error:
                self._record_failure(call, error)
                progress.failed += 1
            else:
                self._refused_in_a_row = 0
                self._saving.append(asyncio.create_task(self._deliver(call, entry, queue)))
                progress.done += 1
            progress.cost = self.budget.spent
            watch(progress)

    async def _deliver(
        self, call: ModelCall, entry: ReplyEntry, queue: asyncio.Queue[tuple[ModelCall, ReplyEntry] | None]
    ) -> None:
        """Pass a reply on once it is on disk; meanwhile the next call is under way."""
        await self.journal.add(entry)
        queue.put_nowait((call, entry))

    def _record_failure(self, call: ModelCall, error: CallError) -> None:
        self.failures[call.hash] = str(error)
        self._refused_in_a_row += 1
        if self._refused_in_a_row >= _MAX_CONSECUTIVE_FAILURES:
            self.stopped = f"stopped after {_MAX_CONSECUTIVE_FAILURES} calls in a row without a reply: {error}"

    async def _call_with_retries(self, call: ModelCall) -> ReplyEntry:
        """The reply to a call, tried several times with growing waits or those that the endpoint asks for."""
        import stamina

        attempts = stamina.retry_context(
            on=_retry_delay,
            attempts=self.settings.attempts,
            timeout=None,
            wait_initial=0.5,
            wait_max=60.0,
            wait_jitter=0.5,
        )
        async for attempt in attempts:
            with attempt:
                return await self._attempt(call, attempt.num)
        raise AssertionError("stamina raises the last error")

    async def _attempt(self, call: ModelCall, number: int) -> ReplyEntry:
        await self._requests.wait()
        await self._tokens.wait(call.request.estimated_prompt_tokens())
        most = self.price.max_cost(call.request)
        if not self.budget.reserve(most):
            raise BudgetError
        cost = most  # until the outcome is known
        try:
            await self.journal.add(*self._call_entries(call, number, most))
            started = time.monotonic()
            reply = await self.endpoint.complete(call.request)
            cost = self.price.reply_cost(call.request, reply)
            seconds = round(time.monotonic() - started, 3)
            return ReplyEntry(hash=call.hash, reply=reply, cost=cost, seconds=seconds, when=datetime.now(UTC))
        except CallError as error:
            cost = most if error.maybe_paid else 0.0
            await self.journal.add(FailureEntry(hash=call.hash, why=str(error), cost=cost, when=datetime.now(UTC)))
            raise
        finally:
            self.budget.settle(most, cost)

    def _call_entries(self, call: ModelCall, number: int, most: float) -> list[PrefixEntry | CallEntry]:
        messages = call.request.messages
        head = hashlib.sha256("\0".join(message.content for message in messages[:-1]).encode()).hexdigest()[:12]
        new = [] if head in self.journal.heads else [PrefixEntry(id=head, messages=messages[:-1])]
        self.journal.heads.add(head)
        entry = CallEntry(
            hash=call.hash,
            attempt=number,
            document=call.document,
            head=head,
            message=messages[-1].content,
            reserved=most,
            when=datetime.now(UTC),
        )
        return [*new, entry]


def _retry_delay(error: Exception) -> bool | float:
    """Whether to try again, and after how many seconds where the endpoint says so."""
    if not isinstance(error, CallError) or not error.again:
        return False
    return True if error.wait is None else error.wait


def reuse_reply(entry: ReplyEntry) -> ReplyEntry:
    """A reply from another run: the same words, at no cost."""
    return entry.model_copy(update={"cost": 0.0, "cached": True})


def truncate_reply(reply: ChatReply, max_length: int = 20_000) -> str:
    """A reply's words for a record; the journal has all of a long one."""
    return reply.text if len(reply.text) <= max_length else f"{reply.text[:max_length]}..."
