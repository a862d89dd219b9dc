"""The runner of model calls: requests in, replies out, with cache, journal, budget, retries and interruption.

`annotate`, `generate`, probes and judges describe their calls as a `RunnerTask`; the runner makes those that have no
stored reply. It belongs to `annotators`, the lowest package that calls models, so that `corpora` and the packages
above can use it. `engine` divides our own computations over processes, and no result there depends on a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
import typing
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from finecomb.annotators.llm.blocking import run_blocking
from finecomb.annotators.llm.budget import Budget, Price, RateLimit
from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError, Endpoint, EndpointError, require_call_packages
from finecomb.annotators.llm.journal import (
    AdaptationEntry,
    CallEntry,
    FailureEntry,
    Journal,
    PrefixEntry,
    ReplyEntry,
    read_shared_entries,
)
from finecomb.annotators.llm.providers import Provider
from finecomb.annotators.llm.run_folder import lock_run_folder, start_run_status, write_run_status
from finecomb.core.errors import FinecombError
from finecomb.core.records import ModelSettings

logging.getLogger("stamina").addHandler(logging.NullHandler())  # it logs retries, which the journal also records
BUDGET_REACHED = "stopped because the budget was reached"
# A run stops after this many consecutive failures, because further calls would fail as well.
_MAX_CONSECUTIVE_FAILURES = 8
_MAX_CONCURRENCY = 512


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request with its document and hash."""

    document: str
    request: ChatRequest
    hash: str


@dataclass(slots=True)
class CallProgress:
    """The progress of a run, in calls or texts."""

    total: int
    done: int = 0
    cached: int = 0
    failed: int = 0
    cost: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def calls_per_second(self) -> float:
        """Replies per second, without cached ones."""
        return (self.done - self.cached) / max(1e-9, time.monotonic() - self.started)

    @property
    def seconds_left(self) -> float:
        """Estimated remaining time at the current rate, in seconds."""
        return (self.total - self.done - self.failed) / self.calls_per_second if self.calls_per_second else float("inf")


ProgressCallback = Callable[[CallProgress], None]


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """Calls, cost and end of a run. The result classes of tasks extend this class."""

    folder: Path | None = None
    calls: int = 0
    """Number of calls with a reply in this session."""
    retried: int = 0
    """Number of attempts in this session that failed and were repeated."""
    cached: int = 0
    """Number of replies taken from the journal of this or another run, at no cost."""
    cost: float = 0.0
    """Total cost of the run, including earlier sessions."""
    stopped: str = ""
    """The reason for an early end."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reasons why calls failed, by request hash."""
    adaptations: tuple[str, ...] = ()
    """Parameters that were renamed or omitted because the endpoint rejected them."""
    pending: str = ""
    """The state of a batch that the provider has not finished."""

    def call_notes(self) -> Iterator[str]:
        """Yield notes about the calls, their cost, and how to resume a run that ended early."""
        paid = f", ${self.cost:.4f}" if self.cost else ""
        kept = f"; replies stored in {self.folder}" if self.folder else ""
        again = f" and {self.retried:,} retried" if self.retried else ""
        yield f"{self.calls:,} call{'' if self.calls == 1 else 's'} made{again}, {self.cached} cached{paid}{kept}"
        yield from self.adaptations
        if self.pending:
            yield f"{self.pending}; run the same command again to collect the replies"
        if self.stopped and self.folder is None:
            yield f"{self.stopped}; no replies were stored, so the next run starts from the beginning"
        elif self.stopped:
            # Once the budget is spent, the same command would stop again at once.
            raise_budget = "raise the budget and " if self.stopped == BUDGET_REACHED else ""
            yield f"{self.stopped}; {raise_budget}run the same command again to resume"


Run_co = TypeVar("Run_co", covariant=True)


class RunnerTask(typing.Protocol[Run_co]):
    """Work that needs replies from a model, such as annotations or generated texts."""

    settings: ModelSettings
    """Model, limits and budget."""
    provider: Provider
    folder_name: str
    """Name of the run's folder, shared by runs with the same requests."""
    document_ids: tuple[str, ...]
    """IDs of the documents in the run, stored in its status."""

    def open_folder(self, folder: Path) -> None:
        """Write the record of the run to its folder, or continue the record of a resumed run."""

    def first_calls(self) -> Iterable[ModelCall]:
        """Return the calls to start with. Calls with the same hash are made only once."""

    def add_reply(self, call: ModelCall, entry: ReplyEntry) -> ModelCall | None:
        """Process a reply. Return the call that must follow it, or None."""

    def progress_counts(self) -> tuple[int, int]:
        """Return the number of finished steps and the total number of steps, shown as progress."""

    def unfinished_reasons(self, outcome: RunOutcome) -> dict[str, str]:
        """Return the reasons why results are missing, by ID."""

    def build_run(self, outcome: RunOutcome) -> Run_co:
        """Return the results so far."""


def run_task(
    task: RunnerTask[Run_co],
    runs: Path | None = None,
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
) -> Run_co:
    """Make the calls of a task and return its results.

    Replies stored in `runs`, also by a crashed run, are not requested again. Without `runs`, nothing is stored on disk.
    `endpoint` replaces the endpoint of the task's provider.
    """
    if runs is None:
        return task.build_run(run_blocking(_make_missing_calls(task, None, None, endpoint, watch)))
    folder = runs / task.folder_name
    with lock_run_folder(folder):
        task.open_folder(folder)
        ids = start_run_status(folder, task.document_ids)
        try:
            outcome = run_blocking(_make_missing_calls(task, runs, folder, endpoint, watch))
        except BaseException as error:
            why = str(error) if isinstance(error, FinecombError) else "interrupted"
            write_run_status(folder, "stopped", ids, why=why)
            raise
        missing = task.unfinished_reasons(outcome)
        state: typing.Literal["stopped", "finished"] = "stopped" if outcome.stopped or missing else "finished"
        write_run_status(folder, state, ids, missing, outcome.stopped)
        return task.build_run(outcome)


def read_stored_run(task: RunnerTask[Run_co], runs: Path) -> Run_co:
    """Return the results of a task from its stored replies, without sending requests, e.g. after an interruption."""
    folder = runs / task.folder_name
    content = Journal(folder).content
    task.open_folder(folder)
    _replay_replies(task, content.replies)
    outcome = RunOutcome(
        folder=folder,
        cached=len(content.replies),
        cost=float(content.spent),
        stopped="interrupted",
        failures={hash: entry.why for hash, entry in content.failures.items()},
    )
    return task.build_run(outcome)


def _replay_replies(
    task: RunnerTask[object], replies: Mapping[str, ReplyEntry]
) -> tuple[dict[str, ReplyEntry], deque[ModelCall]]:
    """Process stored replies to a task's calls. Return the replies used and the calls that have no reply yet."""
    used: dict[str, ReplyEntry] = {}
    waiting: dict[str, ModelCall] = {}
    for first in task.first_calls():
        call: ModelCall | None = first
        while call is not None and call.hash not in used and call.hash in replies:
            entry = used[call.hash] = replies[call.hash]
            call = task.add_reply(call, entry)
        if call is not None and call.hash not in used:
            waiting.setdefault(call.hash, call)
    return used, deque(waiting.values())


async def _make_missing_calls(
    task: RunnerTask[object], runs: Path | None, folder: Path | None, endpoint: Endpoint | None, watch: ProgressCallback
) -> RunOutcome:
    journal = Journal(folder)
    journal.open()
    try:
        used, queue = await replay_shared_replies(task, journal, runs)
        if not queue:
            return RunOutcome(folder=folder, cached=len(used), cost=float(journal.content.spent))
        if endpoint is None:
            require_call_packages()
        answering = endpoint or task.provider.open_endpoint(task.settings)
        caller = ModelCaller(answering, task.settings, journal, task.provider.calls_per_slot)
        caller.restore_adaptations(read_shared_entries(runs)[1] if runs else ())
        try:
            await make_queued_calls(task, caller, queue, watch)
        finally:
            if endpoint is None:
                await answering.close()
    finally:
        await journal.close()
    # If nothing was answered, there is nothing to report but the error.
    if caller.error and not caller.replies and not used:
        raise caller.error
    return caller.outcome(folder, len(used))


async def replay_shared_replies(
    task: RunnerTask[object], journal: Journal, runs: Path | None
) -> tuple[dict[str, ReplyEntry], deque[ModelCall]]:
    """Process the replies stored in this and other runs, and copy those of others to the journal at no cost.

    Return the replies used and the calls that have no reply yet.
    """
    own = journal.content.replies
    used, queue = _replay_replies(task, {**(read_shared_entries(runs)[0] if runs else {}), **own})
    copied = [entry.model_copy(update={"cost": Decimal(0), "cached": True}) for entry in used.values()]
    if new := [entry for entry in copied if entry.hash not in own]:
        await journal.add_entries(*new)
    return used, queue


async def make_queued_calls(
    task: RunnerTask[object], caller: ModelCaller, queue: deque[ModelCall], watch: ProgressCallback
) -> None:
    """Make the queued calls and those that follow from their replies, until all are made or the run stops."""
    finished, total = task.progress_counts()
    progress = CallProgress(total, finished, finished)
    while queue and not caller.stopped:  # a late reply may queue a call after the last worker has ended
        async with contextlib.aclosing(caller.make_calls(queue)) as results:
            async for call, result in results:
                if isinstance(result, CallError):
                    caller.failures[call.hash] = str(result)
                else:
                    caller.replies += 1
                    if following := task.add_reply(call, result):
                        queue.append(following)
                progress.done, progress.failed = task.progress_counts()[0], len(caller.failures)
                progress.cost = float(caller.budget.spent)
                watch(progress)


class BudgetError(Exception):
    """Error for a call whose maximum cost exceeds the remaining budget."""


class RunStoppedError(Exception):
    """Error for a call that was not made because the run has stopped."""


CallResult = tuple[ModelCall, ReplyEntry | CallError]
"""A call with its reply, or with the error of its last attempt."""


class ModelCaller:
    """The calls of one run, made concurrently with retries, rate limits and a budget."""

    def __init__(self, endpoint: Endpoint, settings: ModelSettings, journal: Journal, calls_per_slot: int = 1) -> None:
        self.endpoint, self.settings, self.journal = endpoint, settings, journal
        self.price = Price.from_settings(settings)
        limit = None if settings.budget is None else Decimal(str(settings.budget))
        self.budget = Budget(limit, spent=journal.content.spent)
        self.stopped = ""
        """The reason for an early end."""
        self.error: EndpointError | None = None
        """The error that ended the run."""
        self.replies, self.retried = 0, 0
        self.failures: dict[str, str] = {}
        """Reasons why calls failed, by request hash."""
        self._concurrency = min(_MAX_CONCURRENCY, calls_per_slot * settings.concurrency)
        self._requests = RateLimit(settings.requests_per_minute)
        self._tokens = RateLimit(settings.tokens_per_minute)
        self._consecutive_failures = 0
        self._saving: list[asyncio.Task[None]] = []
        self._first_call = asyncio.Lock()
        self._recorded_changes = 0

    def outcome(self, folder: Path | None, cached: int, pending: str = "") -> RunOutcome:
        """Return the calls, cost and end of the run."""
        adaptation = getattr(self.endpoint, "adaptation", None)
        host = self.endpoint.host
        return RunOutcome(
            folder=folder,
            calls=self.replies,
            retried=self.retried,
            cached=cached,
            cost=float(self.budget.spent),
            stopped=self.stopped,
            failures=self.failures,
            adaptations=tuple(change.describe(host) for change in adaptation.changes) if adaptation else (),
            pending=pending,
        )

    def restore_adaptations(self, entries: Iterable[AdaptationEntry]) -> None:
        """Apply what this and other runs learned about the endpoint and the model."""
        adaptation = getattr(self.endpoint, "adaptation", None)
        if adaptation is None:
            return
        for entry in (*entries, *self.journal.content.adaptations):
            is_same = (entry.host, entry.model) == (self.endpoint.host, self.settings.model)
            if is_same and all(change.name != entry.change.name for change in adaptation.changes):
                adaptation.changes.append(entry.change)
        self._recorded_changes = len(adaptation.changes)

    async def record_adaptations(self) -> None:
        """Write what was learned since the last call to the journal."""
        adaptation = getattr(self.endpoint, "adaptation", None)
        new = adaptation.changes[self._recorded_changes :] if adaptation else []
        if new:
            self._recorded_changes += len(new)
            identity = {"host": self.endpoint.host, "model": self.settings.model, "when": datetime.now(UTC)}
            await self.journal.add_entries(*(AdaptationEntry(change=change, **identity) for change in new))

    async def make_calls(self, queue: deque[ModelCall]) -> AsyncGenerator[CallResult]:
        """Yield the results of queued calls as they arrive, including calls queued in the meantime."""
        results: asyncio.Queue[CallResult | None] = asyncio.Queue()
        workers = [asyncio.create_task(self._run_worker(queue, results)) for _ in range(self._concurrency)]

        async def wait_for_workers() -> None:
            await asyncio.gather(*workers)
            await asyncio.gather(*self._saving)

        gathered = asyncio.ensure_future(wait_for_workers())
        gathered.add_done_callback(lambda _: results.put_nowait(None))
        try:
            while (item := await results.get()) is not None:
                yield item
            await gathered
        finally:
            gathered.cancel()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, *self._saving, return_exceptions=True)

    async def _run_worker(self, queue: deque[ModelCall], results: asyncio.Queue[CallResult | None]) -> None:
        async def deliver(call: ModelCall, entry: ReplyEntry) -> None:
            await self.journal.add_entries(entry)
            results.put_nowait((call, entry))

        while queue and not self.stopped:
            call = queue.popleft()
            try:
                entry = await self._call_with_retries(call)
            except (BudgetError, RunStoppedError) as error:
                if isinstance(error, BudgetError):
                    self.stopped = self.stopped or BUDGET_REACHED
                queue.appendleft(call)
            except EndpointError as error:
                # Calls in progress are completed, because they may be paid for.
                self.error, self.stopped = self.error or error, self.stopped or str(error)
                queue.appendleft(call)
            except CallError as error:
                self._consecutive_failures += 1
                if self._consecutive_failures >= _MAX_CONSECUTIVE_FAILURES:
                    count = _MAX_CONSECUTIVE_FAILURES
                    self.stopped = f"stopped after {count} consecutive calls without a reply: {error}"
                results.put_nowait((call, error))
            else:
                self._consecutive_failures = 0
                # The reply is synced to disk before it is delivered, while the next call is in progress.
                self._saving.append(asyncio.create_task(deliver(call, entry)))

    async def _call_with_retries(self, call: ModelCall) -> ReplyEntry:
        """Make a call with retries, waiting as long as the endpoint requests or otherwise with exponential backoff."""
        import stamina

        def retry_decision(error: Exception) -> bool | float:
            if not isinstance(error, CallError) or not error.again:
                return False
            self.retried += 1
            return True if error.wait is None else error.wait

        attempts = stamina.retry_context(
            on=retry_decision,
            attempts=self.settings.attempts,
            timeout=None,
            wait_initial=0.5,
            wait_max=60.0,
            wait_jitter=0.5,
        )
        async for attempt in attempts:
            with attempt:
                if getattr(self.endpoint, "succeeded", True):
                    return await self._attempt_call(call, attempt.num)
                async with self._first_call:
                    if not getattr(self.endpoint, "succeeded", True):
                        if self.stopped:
                            raise RunStoppedError
                        return await self._attempt_call(call, attempt.num)
                return await self._attempt_call(call, attempt.num)
        raise AssertionError("stamina raises the last error")

    async def _attempt_call(self, call: ModelCall, number: int) -> ReplyEntry:
        await self._requests.wait_for_capacity()
        await self._tokens.wait_for_capacity(call.request.estimated_prompt_tokens())
        most = self.price.max_cost(call.request)
        if not await self.budget.reserve(most):
            raise BudgetError
        cost = most  # assumed until the outcome is known
        entries = self.call_entries(call, number, most)
        try:
            # On disk before the call, so that a call cut short by a crash still counts against the budget.
            await self.journal.add_entries(*entries)
            started = time.monotonic()
            reply = await self.endpoint.complete(call.request)
            cost = self.price.reply_cost(call.request, reply)
            self.check_limit(call.request, reply)
            seconds = round(time.monotonic() - started, 3)
            return ReplyEntry(hash=call.hash, reply=reply, cost=cost, seconds=seconds, when=datetime.now(UTC))
        except (CallError, EndpointError) as error:
            maybe_paid = isinstance(error, CallError) and error.maybe_paid
            is_final = isinstance(error, CallError) and not error.again
            cost = most if maybe_paid else Decimal(0)
            failure = FailureEntry(hash=call.hash, why=str(error), cost=cost, final=is_final, when=datetime.now(UTC))
            await self.journal.add_entries(failure)
            raise
        finally:
            self.budget.settle_reservation(most, cost)
            await self.record_adaptations()

    def call_entries(self, call: ModelCall, number: int, most: Decimal) -> list[PrefixEntry | CallEntry]:
        """Return the entries of a call that is about to be made. Messages that many calls share are written once."""
        *prefix, last = call.request.messages
        head = hashlib.sha256("\0".join(message.content for message in prefix).encode()).hexdigest()[:12]
        entries: list[PrefixEntry | CallEntry] = [
            CallEntry(
                hash=call.hash,
                attempt=number,
                document=call.document,
                head=head,
                message=last.content,
                reserved=most,
                when=datetime.now(UTC),
            )
        ]
        if head not in self.journal.heads:
            self.journal.heads.add(head)
            entries.insert(0, PrefixEntry(id=head, messages=tuple(prefix)))
        return entries

    def check_limit(self, request: ChatRequest, reply: ChatReply) -> None:
        """Stop the run if the endpoint ignores the limit on replies, since its cost would be unlimited."""
        if reply.completion_tokens is not None and reply.completion_tokens > 1.05 * request.max_tokens + 16:
            self.stopped = self.stopped or (
                f"{self.endpoint.host} ignored the limit of {request.max_tokens:,} tokens and sent"
                f" {reply.completion_tokens:,}; pass the server's own name of the limit as an extra parameter"
            )


def truncate_reply(reply: ChatReply, max_length: int = 20_000) -> str:
    """Return the text of a reply for a record, shortened if very long. The journal keeps the full text."""
    text = reply.text or reply.raw
    return text if len(text) <= max_length else f"{text[:max_length]}..."
