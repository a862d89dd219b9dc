"""Runs with requests in batches: they submit, resume after a crash, collect results, and repeat what failed.

The journal has an entry for each step before the next one is taken. A batch that was planned but has no ID is searched
for at the provider, because a second batch would be paid for as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter, deque
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from finecomb.annotators.llm.batches import BatchRequest, BatchResult, BatchService, ambiguous_batch_error
from finecomb.annotators.llm.blocking import run_blocking
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError, EndpointError, require_call_packages
from finecomb.annotators.llm.failures import classify_failure
from finecomb.annotators.llm.http_endpoint import HttpEndpoint, HttpResponse
from finecomb.annotators.llm.journal import BatchEntry, FailureEntry, Journal, ReplyEntry, read_shared_entries
from finecomb.annotators.llm.providers.base import HttpProvider
from finecomb.annotators.llm.run_folder import lock_run_folder, start_run_status, write_run_status
from finecomb.annotators.llm.runner import (
    BUDGET_REACHED,
    ModelCall,
    ModelCaller,
    ProgressCallback,
    Run_co,
    RunnerTask,
    RunOutcome,
    make_queued_calls,
    replay_shared_replies,
)
from finecomb.core.errors import FinecombError, ParameterError, param

MAX_BATCHES_PER_REQUEST = 2
"""Number of batches in which a request is tried before it is sent directly."""
_RESULTS_FILE = "batch-{part}.jsonl"


def run_task_in_batches(
    task: RunnerTask[Run_co],
    runs: Path,
    watch: ProgressCallback = lambda progress: None,
    wait_seconds: float | None = None,
    batch_id: str = "",
) -> Run_co:
    """Submit the calls of a task in batches, or collect the results of batches that were submitted before.

    Without `wait_seconds`, return as soon as nothing more can be done; otherwise look again after this time until all
    batches have ended. `batch_id` names the batch of an interrupted run that cannot be identified, or `new`.
    """
    if not (isinstance(task.provider, HttpProvider) and "batches" in task.provider.capabilities):
        raise ParameterError(
            f"{param('batch')} does not apply to {task.provider.name}; it applies to openai, openai-responses, azure,"
            " anthropic, gemini and mistral",
            parameter="batch",
        )
    require_call_packages()
    folder = runs / task.folder_name
    with lock_run_folder(folder):
        task.open_folder(folder)
        ids = start_run_status(folder, task.document_ids)
        try:
            outcome = run_blocking(_BatchRun(task, runs, folder, watch).run(wait_seconds, batch_id))
        except BaseException as error:
            why = str(error) if isinstance(error, FinecombError) else "interrupted"
            write_run_status(folder, "stopped", ids, why=why)
            raise
        missing = task.unfinished_reasons(outcome)
        is_done = not (outcome.stopped or outcome.pending or missing)
        write_run_status(folder, "finished" if is_done else "stopped", ids, missing, outcome.stopped or outcome.pending)
        return task.build_run(outcome)


class _BatchRun:
    """One session of a run in batches."""

    def __init__(self, task: RunnerTask[object], runs: Path, folder: Path, watch: ProgressCallback) -> None:
        self.task, self.runs, self.folder, self.watch = task, runs, folder, watch
        self.journal = Journal(folder)
        assert isinstance(task.provider, HttpProvider)
        self.provider = task.provider
        self.price = Price.from_settings(task.settings, is_batch=True)
        self.calls: dict[str, ModelCall] = {}

    async def run(self, wait_seconds: float | None, batch_id: str) -> RunOutcome:
        """Take all steps that are possible now, and wait for more if asked to."""
        self.journal.open()
        endpoint = self.provider.open_endpoint(self.task.settings)
        service = self.provider.open_batches(endpoint)
        assert service is not None
        try:
            used, queue = await replay_shared_replies(self.task, self.journal, self.runs)
            self.caller = ModelCaller(endpoint, self.task.settings, self.journal)
            self.caller.restore_adaptations(read_shared_entries(self.runs)[1])
            self.calls = {call.hash: call for call in queue}
            pending = await self._take_steps(endpoint, service, batch_id)
            while pending and wait_seconds is not None and not self.caller.stopped:
                await asyncio.sleep(wait_seconds)
                pending = await self._take_steps(endpoint, service, "")
        except EndpointError as error:
            self.caller.error, self.caller.stopped, pending = error, str(error), ""
        except CallError as error:
            # Nothing is lost: the journal has every step, and the same command continues.
            self.caller.stopped, pending = f"stopped: {error}", ""
        finally:
            await endpoint.close()
            await self.journal.close()
        if self.caller.error and not self.caller.replies and not used:
            raise self.caller.error
        return self.caller.outcome(self.folder, len(used), pending)

    async def _take_steps(self, endpoint: HttpEndpoint, service: BatchService, batch_id: str) -> str:
        """Continue all batches, then submit what is left. Return the state of batches that are still open."""
        while True:
            states: list[str] = []
            for part, steps in dict(self.journal.content.batches).items():
                if steps[-1].step not in ("collected", "failed"):
                    states += await self._continue_batch(endpoint, service, part, steps, batch_id)
            if states or self.caller.stopped or not await self._submit_rest(endpoint, service):
                return "; ".join(states)

    async def _continue_batch(
        self,
        endpoint: HttpEndpoint,
        service: BatchService,
        part: int,
        steps: Sequence[BatchEntry],
        batch_id: str,
    ) -> list[str]:
        """Find, create or look up a batch, and collect its results if it has ended."""
        planned = steps[0]
        batch = next((step.id for step in steps if step.step == "created"), "")
        file = next((step.id for step in steps if step.step == "uploaded"), "")
        if not batch:
            batch = await self._find_or_create(endpoint, service, part, planned, file, batch_id)
        progress = await service.look_up(batch)
        if progress.state == "waiting":
            size = len(planned.hashes)
            return [f"batch {part} ({batch}) with {size:,} request{'' if size == 1 else 's'} is {progress.why.lower()}"]
        if progress.state == "failed":
            why = f"batch {part} was rejected: {progress.why}"
            await self._fail_batch(part, planned, why)
            self.caller.stopped = why
            return []
        await self._collect(endpoint, service, part, planned, batch)
        return []

    async def _find_or_create(
        self,
        endpoint: HttpEndpoint,
        service: BatchService,
        part: int,
        planned: BatchEntry,
        file: str,
        batch_id: str,
    ) -> str:
        """Return the ID of a planned batch: that of the batch at the provider, or of a new one if there is none."""
        tag = f"{self.folder.name}-{part}-{planned.digest[:12]}"
        candidates = [] if batch_id == "new" else [batch_id] if batch_id else []
        if not batch_id:
            candidates = await service.find(tag, planned.hashes, planned.when)
            if len(candidates) > 1:
                raise ambiguous_batch_error(endpoint.host, candidates)
        if candidates:
            await self._add_step(part, "created", candidates[0])
            return candidates[0]
        missing = [hash for hash in planned.hashes if hash not in self.calls]
        if missing:
            raise FinecombError(
                f"batch {part} was interrupted before it was created, and {len(missing)} of its texts are not selected"
                " now; run the command with the same texts as before"
            )
        requests = self._build_requests(endpoint, [self.calls[hash] for hash in planned.hashes])
        if not file:
            file = await service.upload(requests, tag)
            await self._add_step(part, "uploaded", file)
        batch = await service.create(requests, file, tag)
        await self._add_step(part, "created", batch)
        return batch

    async def _collect(
        self, endpoint: HttpEndpoint, service: BatchService, part: int, planned: BatchEntry, batch: str
    ) -> None:
        """Download the results to a file, then write each of them to the journal once."""
        file = self.folder / _RESULTS_FILE.format(part=part)
        if not file.exists():
            data = await service.fetch(batch)
            temporary = file.with_suffix(".part")
            with temporary.open("wb") as target:
                target.write(data)
                target.flush()
                os.fsync(target.fileno())
            temporary.replace(file)
        known = Journal(self.folder).content
        closed = {*known.replies, *(hash for hash, entry in known.failures.items() if entry.when > planned.when)}
        results: dict[str, BatchResult] = {}
        for line in service.parse_results(file.read_bytes()):
            results.setdefault(line.id, line)
        endpoint.succeeded = True
        if results and not set(results) & set(planned.hashes):
            raise EndpointError(
                f"batch {batch} of {endpoint.host} has no result of this run; check {param('batch_id')}"
            )
        entries: list[ReplyEntry | FailureEntry] = []
        for hash in planned.hashes:
            if hash in closed:
                continue
            # A text may no longer be selected, but its reply was paid for and is kept.
            unselected = ModelCall("", ChatRequest(model=self.task.settings.model, messages=()), hash)
            call, result = self.calls.get(hash, unselected), results.get(hash)
            if result is None:
                entries.append(FailureEntry(hash=hash, why=f"batch {part} has no result", when=datetime.now(UTC)))
            else:
                entries.append(self._read_result(endpoint, call, result.status, result.body))
        await self.journal.add_entries(*entries)
        await self._add_step(part, "collected", batch)
        for entry in entries:
            if isinstance(entry, ReplyEntry):
                self.caller.replies += 1
                self.caller.failures.pop(entry.hash, None)
                if entry.hash in self.calls:
                    self.task.add_reply(self.calls.pop(entry.hash), entry)
            else:
                self.caller.failures[entry.hash] = entry.why
        self.caller.budget.spent = self.journal.content.spent

    def _read_result(
        self, endpoint: HttpEndpoint, call: ModelCall, status: int, text: str
    ) -> ReplyEntry | FailureEntry:
        """Read a result as if it were the response to a direct call."""
        now = datetime.now(UTC)
        try:
            if status < 300:
                body = endpoint.build_body(call.request)[1]
                reply = endpoint.read_reply(call.request, HttpResponse(status, {}, text.encode()), body)
            else:
                failure = classify_failure(status, {}, endpoint.redact_key(text))
                if failure.kind != "refused":
                    error = endpoint.failure_error(failure, status)
                    final = not isinstance(error, EndpointError) and not error.again
                    return FailureEntry(hash=call.hash, why=str(error), final=final, when=now)
                reply = ChatReply(text="", finish="content_filter", refusal=failure.message, charged=Decimal(0))
            why = reply.truncated_prompt_reason(call.request, endpoint.context_tokens)
            if why:
                reply = reply.model_copy(update={"finish": "prompt truncated", "raw": why})
            cost = self.price.reply_cost(call.request, reply)
            return ReplyEntry(hash=call.hash, reply=reply, cost=cost, when=now)
        except CallError as error:
            return FailureEntry(hash=call.hash, why=str(error), final=not error.again, when=now)

    async def _submit_rest(self, endpoint: HttpEndpoint, service: BatchService) -> bool:
        """Plan a batch of the calls without a reply; those that failed in two batches are made directly.

        Return False if no batch was planned.
        """
        content = Journal(self.folder).content
        tries: Counter[str] = Counter()
        for steps in content.batches.values():
            if steps[-1].step != "failed":
                tries.update(steps[0].hashes)
        finals = {hash for hash, entry in content.failures.items() if entry.final and hash in tries}
        waiting = [call for hash, call in self.calls.items() if hash not in finals]
        if not waiting:
            return False
        direct = [call for call in waiting if tries[call.hash] >= MAX_BATCHES_PER_REQUEST]
        fresh = [call for call in waiting if tries[call.hash] < MAX_BATCHES_PER_REQUEST]
        if not any(not entry.cached for entry in content.replies.values()) and fresh:
            # The first request is sent directly: a parameter that the provider rejects would fail a whole batch.
            direct.append(fresh.pop(0))
        if direct:
            await make_queued_calls(self.task, self.caller, deque(direct), self.watch)
            for call in direct:
                self.calls.pop(call.hash, None)
        if self.caller.stopped or not fresh:
            return False
        chosen: list[tuple[ModelCall, Decimal]] = []
        requests: list[BatchRequest] = []
        reserved, size = Decimal(0), 0
        for call, request in zip(fresh, self._build_requests(endpoint, fresh), strict=True):
            size += len(json.dumps(request.body)) + 200
            most = self.price.max_cost(call.request)
            limit = self.caller.budget.limit
            if limit is not None and self.caller.budget.spent + reserved + most > limit:
                break
            if len(chosen) >= service.max_requests or size > service.max_bytes:
                break
            chosen.append((call, most))
            requests.append(request)
            reserved += most
        if not chosen:
            self.caller.stopped = BUDGET_REACHED
            return False
        part = max(content.batches, default=0) + 1
        digest = hashlib.sha256(json.dumps([request.body for request in requests], sort_keys=True).encode()).hexdigest()
        entries = [
            entry for call, most in chosen for entry in self.caller.call_entries(call, tries[call.hash] + 1, most)
        ]
        hashes = tuple(call.hash for call, _ in chosen)
        planned = BatchEntry(part=part, step="planned", hashes=hashes, digest=digest, when=datetime.now(UTC))
        # On disk before the provider hears of the batch, so that it is found again after a crash.
        await self.journal.add_entries(*entries, planned)
        self.caller.budget.spent += reserved
        self.journal.content = Journal(self.folder).content
        return True

    def _build_requests(self, endpoint: HttpEndpoint, calls: Sequence[ModelCall]) -> list[BatchRequest]:
        return [BatchRequest(call.hash, *endpoint.build_body(call.request)) for call in calls]

    async def _fail_batch(self, part: int, planned: BatchEntry, why: str) -> None:
        """Record that the provider rejected a whole batch, which costs nothing."""
        now = datetime.now(UTC)
        failures = [FailureEntry(hash=hash, why=why, when=now) for hash in planned.hashes]
        await self.journal.add_entries(*failures, BatchEntry(part=part, step="failed", why=why, when=now))
        self.caller.budget.spent = Journal(self.folder).content.spent
        self.caller.failures |= dict.fromkeys(planned.hashes, why)

    async def _add_step(self, part: int, step: str, id: str) -> None:
        entry = BatchEntry.model_validate({"part": part, "step": step, "id": id, "when": datetime.now(UTC)})
        await self.journal.add_entries(entry)
        self.journal.content = Journal(self.folder).content
