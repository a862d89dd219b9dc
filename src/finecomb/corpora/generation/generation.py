"""Texts from prompts: every prompt with every setting of decoding, sampled again until a text is of the right length.

Calls, journal, budget and cache are those of annotating language models. A run that was stopped, in whatever way, goes
on from its journal; equal questions are asked once.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from finecomb.annotators.llm.blocking import run_blocking
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.chat import FINISH_CONTEXT_OVERFLOW, ChatMessage, ChatReply, ChatRequest, Role
from finecomb.annotators.llm.endpoint import Endpoint, need_call_packages, parse_host
from finecomb.annotators.llm.journal import Journal, ReplyEntry, cached_replies
from finecomb.annotators.llm.local_models import DEFAULT_CONTEXT_TOKENS, LocalEndpoint, is_local, model_file
from finecomb.annotators.llm.model_calls import Caller, CallProgress, ModelCall, ProgressCallback, reuse_reply
from finecomb.annotators.llm.run_folder import lock_run_folder, write_status
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.records import Document, ModelSettings, Record
from finecomb.core.sentences import sentences
from finecomb.corpora.generation.decoding import Decoding
from finecomb.corpora.generation.lengths import CutText, LengthRule
from finecomb.corpora.generation.local_model import HOST, TransformersEndpoint
from finecomb.corpora.generation.priming import HEADLINE, PROMPT, Priming, document_prompt
from finecomb.corpora.generation.section_markers import parse_section_markers
from finecomb.version import __version__

Interface = Literal["completions", "chat"]
Runtime = Literal["transformers", "gguf", "http"]
SETTINGS_FILE = "generation.json"
_ARGMAX_REASON = "argmax would write the same again"
_INSTRUCTION = (
    "Go on with the text that you are given, in the same style. Write only what comes next, as running text, and do not"
    " repeat what you were given."
)
_PROMPT_TOO_LONG = "prompt longer than the context"


class GenerationSettings(Record):
    """What texts are written with: all that decides what a run asks, but for the prompts."""

    model: ModelSettings
    """The model, where it answers and what it may cost; its seed is the run's."""
    runtime: Runtime
    """What computes: transformers or llama.cpp in this process, or an endpoint."""
    decodings: tuple[Decoding, ...]
    rule: LengthRule | None = LengthRule()
    """None writes to the end of the text."""
    tries: int = 20
    """How often a text is sampled at most."""
    interface: Interface = "completions"
    """Whether the model goes on with a text, or is asked to in a conversation."""
    sections: bool = False
    """Whether sections are read back from their markers."""
    name: str = ""
    """The system's name in `meta.model`."""

    def max_tokens(self) -> int:
        """Most subword tokens of one text."""
        return self.rule.token_budget() if self.rule else self.model.max_tokens

    def system_name(self) -> str:
        """What the system is called."""
        return self.name or Path(self.model.model.removeprefix("local:")).name.removesuffix(".gguf")


class GenerationNote(Record):
    """How a text came about; stored as `meta.generation` of its document."""

    prompt: str
    """Id of the prompt's document."""
    decoding: str
    """Name of the setting."""
    sample: int
    """1 for the first."""
    attempt: int
    """1 where the first that was sampled was taken."""
    seed: int
    """Sent to the model for this attempt."""
    run_seed: int
    """From which all seeds of the run were made."""
    words: int
    rule: str
    """Of the length; empty for texts written to their end."""
    runtime: str
    endpoint: str
    interface: str
    priming: tuple[str, ...] = ()
    """Ids of the texts before the prompt."""
    request: str
    """Hash by which the run's journal has request and reply."""
    version: str


def generation_note(document: Document) -> GenerationNote:
    """How a generated text came about."""
    return GenerationNote.model_validate(document.meta["generation"])


class TextTask(NamedTuple):
    """One text to be written."""

    prompt: Document
    decoding: Decoding
    sample: int


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """Everything that a run writes, before anything is computed."""

    settings: GenerationSettings
    prompts: tuple[Document, ...]
    priming: Priming
    host: str

    def tasks(self) -> list[TextTask]:
        """Every text to be, prompt by prompt; argmax has no second sample."""
        return [
            TextTask(prompt, decoding, sample)
            for prompt in self.prompts
            for decoding in self.settings.decodings
            for sample in range(1 if decoding.is_argmax else self.settings.model.samples)
        ]

    def build_call(self, task: TextTask, attempt: int) -> ModelCall:
        """The call for one attempt, counted from 0."""
        settings, decoding = self.settings, task.decoding
        request = ChatRequest(
            model=settings.model.model,
            messages=self._messages(task.prompt),
            temperature=decoding.temperature,
            top_p=None if decoding.is_argmax else decoding.top_p,
            frequency_penalty=decoding.frequency_penalty or None,
            max_tokens=settings.max_tokens(),
            seed=attempt_seed(settings.model.seed, task, attempt),
            sample=task.sample,
            retry=attempt,
            continued=settings.interface == "completions",
        )
        return ModelCall(task.prompt.id, request, request.hash(self._endpoint_identity()))

    def _messages(self, prompt: Document) -> tuple[ChatMessage, ...]:
        if self.settings.interface == "chat":
            return conversation(self.priming, prompt)
        whole, prompt_text = self.priming.full_prompt(prompt), document_prompt(prompt)
        shots = whole.removesuffix(prompt_text)
        parts = [shots, prompt_text] if shots else [prompt_text]
        return tuple(ChatMessage(role="user", content=part) for part in parts)

    def _endpoint_identity(self) -> str:
        """What answers; transformers stop by the rule, so that another rule is another question."""
        if self.settings.runtime != "transformers":
            return self.host
        return f"{self.host}|{self.settings.rule}|{self.priming.delimiter}|{self.settings.model.context_tokens or ''}"

    def folder_name(self) -> str:
        """The name of the run's folder: runs that ask the same in the same way share one."""
        limits = {"price", "budget", "concurrency", "requests_per_minute", "tokens_per_minute", "timeout", "attempts"}
        settings = self.settings.model_dump(mode="json", exclude={"model": {*limits, "key_env", "base_url"}})
        prompts = [[prompt.id, document_prompt(prompt)] for prompt in self.prompts]
        shots = [[shot.id, shot.text] for shot in self.priming.documents]
        identity = json.dumps([self.host, settings, prompts, shots, self.priming.delimiter], sort_keys=True)
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in self.settings.system_name())
        return f"{safe}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def conversation(priming: Priming, prompt: Document) -> tuple[ChatMessage, ...]:
    """Priming texts and prompt for a model that follows instructions: what was given, and what came next."""
    shots = [
        ChatMessage(role=role, content=content)
        for shot in priming.other_documents(prompt)
        for role, content in _turns(document_prompt(shot) if PROMPT in shot.context else "", shot.text.strip())
    ]
    return (
        ChatMessage(role="system", content=_INSTRUCTION),
        *shots,
        ChatMessage(role="user", content=document_prompt(prompt)),
    )


def _turns(prompt: str, text: str) -> tuple[tuple[Role, str], tuple[Role, str]]:
    """A priming text as two turns; one without a prompt is given by its first sentence."""
    if not prompt:
        end = int(sentences(text)[0, 1]) if text else 0
        prompt, text = text[:end], text[end:].strip()
    return ("user", prompt), ("assistant", text)


def attempt_seed(run_seed: int, task: TextTask, attempt: int) -> int:
    """The seed of one attempt: of the run's seed, prompt, setting and sample, and of nothing else."""
    parts = (run_seed, task.prompt.id, task.decoding.name, task.sample, attempt)
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big") >> 1


def plan_generation(
    settings: GenerationSettings, prompts: Sequence[Document], priming: Priming | None = None
) -> GenerationPlan:
    """What a run would write; refused when it cannot work, with the reason."""
    usable = tuple(prompt for prompt in prompts if document_prompt(prompt))
    if not usable:
        raise FinecombError("there are no prompts: no document has a prompt or a text to go on from")
    Price.from_settings(settings.model)
    _check_settings(settings)
    return GenerationPlan(settings, usable, priming or Priming(), _host(settings))


def _check_settings(settings: GenerationSettings) -> None:
    if settings.runtime == "gguf" and any(decoding.frequency_penalty for decoding in settings.decodings):
        raise ParameterError(
            f"{param('runtime', 'gguf')}: its frequency penalty also counts the words of the prompt; use"
            f" {param('runtime', 'transformers')}",
            parameter="runtime",
        )
    if settings.runtime == "transformers" and settings.interface == "chat":
        raise ParameterError(
            f"{param('interface', 'chat')} does not apply to {param('runtime', 'transformers')}, which goes on"
            " with texts",
            parameter="interface",
        )


def _host(settings: GenerationSettings) -> str:
    if settings.runtime == "http":
        return parse_host(settings.model.base_url)
    if is_local(settings.model.model):
        model_file(settings.model.model)
    elif settings.runtime == "gguf":
        raise ParameterError(
            f"{param('runtime', 'gguf')}: {settings.model.model} is no GGUF file; use"
            f" {param('runtime', 'transformers')}",
            parameter="runtime",
        )
    return HOST if settings.runtime == "transformers" else "local"


# --- verdicts ----------------------------------------------------------------------------------------------------


def cut_reply(reply: ChatReply, rule: LengthRule | None, priming: Priming) -> CutText:
    """A reply cut to a text, or why it is none: its length, its end, or because it copies a priming text."""
    if reply.finish == FINISH_CONTEXT_OVERFLOW:
        return CutText("", 0, _PROMPT_TOO_LONG)
    if reply.refusal or reply.finish == "content_filter":
        return CutText("", 0, "refused by the model")
    before, delimiter, _ = reply.text.partition(priming.delimiter) if priming.delimiter else (reply.text, "", "")
    is_whole = bool(delimiter) or reply.finish == "stop"
    cut = rule.cut(before, is_whole) if rule else _require_complete_text(before, is_whole)
    if cut.text and priming.is_copy(cut.text):
        return CutText("", cut.words, "copies a priming text")
    return cut


def _require_complete_text(text: str, is_whole: bool) -> CutText:
    words = len(text.split())
    if not is_whole:
        return CutText("", words, "did not end within --max-tokens")
    return CutText(text.strip(), words) if words else CutText("", 0, "empty")


# --- run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GenerationRun:
    """What a run has brought."""

    plan: GenerationPlan
    folder: Path | None
    documents: tuple[Document, ...]
    """In the order of prompts and settings."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Why texts were given up, by their id."""
    unwritten: Mapping[str, str] = field(default_factory=dict)
    """Why texts are still to be written, by their id."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Samples that were not taken, by reason."""
    calls: int = 0
    """Made now."""
    cached: int = 0
    """Answered from this or another run's journal."""
    cost: float = 0.0
    stopped: str = ""
    """Why it ended early."""


def generate(
    run_plan: GenerationPlan,
    runs: Path | None = None,
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
) -> GenerationRun:
    """Write the texts of a plan; what is in `runs` already is not asked again, also after a crash."""
    if runs is None:
        return run_blocking(_generate(run_plan, None, None, endpoint, watch))
    folder = runs / run_plan.folder_name()
    ids = tuple(prompt.id for prompt in run_plan.prompts)
    with lock_run_folder(folder):
        (folder / SETTINGS_FILE).write_text(run_plan.settings.model_dump_json(indent=1), encoding="utf-8")
        write_status(folder, "running", ids)
        try:
            run = run_blocking(_generate(run_plan, runs, folder, endpoint, watch))
        except BaseException as error:
            write_status(folder, "stopped", ids, why=str(error) if isinstance(error, FinecombError) else "interrupted")
            raise
        state: Literal["stopped", "finished"] = "stopped" if run.stopped or run.unwritten else "finished"
        write_status(folder, state, ids, run.unwritten, run.stopped)
        return run


def collect_run(run_plan: GenerationPlan, runs: Path) -> GenerationRun:
    """What a run has brought so far, without asking anything: after an interruption."""
    folder = runs / run_plan.folder_name()
    content = Journal(folder).content
    collector = TextCollector(run_plan, content.replies)
    return collector.build_run(folder, cost=content.spent, cached=len(content.replies), stopped="interrupted")


async def _generate(
    run_plan: GenerationPlan, runs: Path | None, folder: Path | None, endpoint: Endpoint | None, watch: ProgressCallback
) -> GenerationRun:
    journal = Journal(folder)
    journal.open()
    elsewhere = cached_replies(runs) if runs else {}
    try:
        collector = TextCollector(run_plan, {**elsewhere, **journal.content.replies})
        new = [reuse_reply(entry) for hash, entry in collector.used.items() if hash not in journal.content.replies]
        if new:
            await journal.add(*new)
        if not collector.queue:
            return collector.build_run(folder, cost=journal.content.spent, cached=len(collector.used))
        return await _send_requests(run_plan, journal, collector, endpoint, watch, folder)
    finally:
        await journal.close()


async def _send_requests(
    run_plan: GenerationPlan,
    journal: Journal,
    collector: TextCollector,
    endpoint: Endpoint | None,
    watch: ProgressCallback,
    folder: Path | None,
) -> GenerationRun:
    """Ask until every text is written or given up, or the run has to stop."""
    settings = run_plan.settings.model
    cached = len(collector.used)
    progress = CallProgress(len(collector.tasks), collector.settled_count(), collector.settled_count())
    answering = endpoint or open_endpoint(run_plan)
    if run_plan.settings.runtime == "transformers":  # while a batch is computed, the next is waiting
        settings = settings.model_copy(update={"concurrency": min(512, 2 * settings.concurrency)})
    caller = Caller(answering, settings, journal, Price.from_settings(settings))
    try:
        while collector.queue and not caller.stopped:
            async for call, entry in caller.make_calls(collector.pending_calls(), progress, lambda _: None):
                collector.add_reply(call, entry)
                progress.done, progress.cost = collector.settled_count(), caller.budget.spent
                progress.failed = len(caller.failures)
                watch(progress)
    finally:
        if endpoint is None:
            await answering.close()
    collector.failures = caller.failures
    calls = len(collector.used) - cached
    return collector.build_run(folder, caller.budget.spent, cached, calls, caller.stopped)


def open_endpoint(run_plan: GenerationPlan) -> Endpoint:
    """What answers, as the settings say."""
    need_call_packages()
    settings = run_plan.settings
    model = settings.model
    if settings.runtime == "http":
        from finecomb.annotators.llm.http_endpoint import HttpEndpoint

        return HttpEndpoint(model.base_url, model.key_env, model.timeout)
    if settings.runtime == "gguf":
        return LocalEndpoint(model.model, model.context_tokens or DEFAULT_CONTEXT_TOKENS)
    delimiter = run_plan.priming.delimiter
    return TransformersEndpoint(model.model, settings.rule, model.concurrency, delimiter, model.context_tokens)


class TextCollector:
    """Makes documents of replies, and says what is to be asked next."""

    def __init__(self, run_plan: GenerationPlan, replies: Mapping[str, ReplyEntry]) -> None:
        self.plan, self.tasks = run_plan, run_plan.tasks()
        self.documents: dict[int, Document] = {}
        """By the number of the task, as all that follows."""
        self.dropped: dict[int, str] = {}
        self.rejected: Counter[str] = Counter()
        self.used: dict[str, ReplyEntry] = {}
        """Replies that were looked at, by the hash of their request."""
        self.failures: dict[str, str] = {}
        self.queue: deque[tuple[int, int]] = deque()
        """Attempts to be made: number of the task and of the attempt."""
        self._open: dict[str, tuple[int, int]] = {}
        for number in range(len(self.tasks)):
            self._replay_attempts(number, replies)

    def _replay_attempts(self, number: int, replies: Mapping[str, ReplyEntry]) -> None:
        """Go through the attempts at a text whose replies are known."""
        attempt: int | None = 0
        while attempt is not None:
            call = self.plan.build_call(self.tasks[number], attempt)
            if call.hash not in replies:
                self.queue.append((number, attempt))
                return
            attempt = self._process_reply(number, attempt, call, replies[call.hash])

    def pending_calls(self) -> Iterator[ModelCall]:
        """What is to be asked; what is added meanwhile comes too."""
        return _PendingCalls(self)

    def next_call(self) -> ModelCall | None:
        """The next attempt, or None where there is none just now."""
        if not self.queue:
            return None
        number, attempt = self.queue.popleft()
        call = self.plan.build_call(self.tasks[number], attempt)
        self._open[call.hash] = number, attempt
        return call

    def add_reply(self, call: ModelCall, entry: ReplyEntry) -> None:
        """Take a reply; a text that it does not give is asked for again."""
        number, attempt = self._open.pop(call.hash)
        following = self._process_reply(number, attempt, call, entry)
        if following is not None:
            self.queue.append((number, following))

    def _process_reply(self, number: int, attempt: int, call: ModelCall, entry: ReplyEntry) -> int | None:
        """The number of the attempt that is to follow, or None where the text is settled."""
        self.used[call.hash] = entry
        task, settings = self.tasks[number], self.plan.settings
        cut = cut_reply(entry.reply, settings.rule, self.plan.priming)
        if not cut.why:
            self.documents[number] = self._document(task, attempt, call, cut)
            return None
        self.rejected[cut.why] += 1
        if cut.why == _PROMPT_TOO_LONG or task.decoding.is_argmax or attempt + 1 >= settings.tries:
            more = f"; {_ARGMAX_REASON}" if task.decoding.is_argmax and cut.why != _PROMPT_TOO_LONG else ""
            self.dropped[number] = f"{cut.why}{more}"
            return None
        return attempt + 1

    def settled_count(self) -> int:
        """How many texts are written or given up."""
        return len(self.documents) + len(self.dropped)

    def text_id(self, task: TextTask) -> str:
        """The id of a text."""
        many = self.plan.settings.model.samples > 1
        return "/".join(
            [
                task.prompt.id,
                self.plan.settings.system_name(),
                task.decoding.name,
                *([str(task.sample + 1)] if many else []),
            ]
        )

    def _document(self, task: TextTask, attempt: int, call: ModelCall, cut: CutText) -> Document:
        settings, prompt = self.plan.settings, task.prompt
        note = GenerationNote(
            prompt=prompt.id,
            decoding=task.decoding.name,
            sample=task.sample + 1,
            attempt=attempt + 1,
            seed=call.request.seed or 0,
            run_seed=settings.model.seed,
            words=cut.words,
            rule=str(settings.rule or ""),
            runtime=settings.runtime,
            endpoint=self.plan.host,
            interface=settings.interface,
            priming=tuple(shot.id for shot in self.plan.priming.documents),
            request=call.hash,
            version=__version__,
        )
        context = prompt.context if PROMPT in prompt.context else {PROMPT: prompt.text}
        document = Document(
            id=self.text_id(task),
            text=cut.text,
            context={name: context[name] for name in (HEADLINE, PROMPT) if name in context},
            references=(prompt.text,) if PROMPT in prompt.context and prompt.text.strip() else (),
            meta={
                **{name: value for name, value in prompt.meta.items() if name not in ("model", "generation")},
                "model": settings.system_name(),
                "prompt_id": prompt.id,
                "decoding": task.decoding.name,
                **task.decoding.meta(),
                "generation": note.model_dump(mode="json"),
            },
        )
        return parse_section_markers(document) if settings.sections else document

    def build_run(
        self, folder: Path | None, cost: float = 0.0, cached: int = 0, calls: int = 0, stopped: str = ""
    ) -> GenerationRun:
        """The run with the texts that are there."""
        failures = {self._open[hash][0]: why for hash, why in self.failures.items() if hash in self._open}
        unwritten = [
            number for number in range(len(self.tasks)) if number not in self.documents and number not in self.dropped
        ]
        return GenerationRun(
            plan=self.plan,
            folder=folder,
            documents=tuple(self.documents[number] for number in sorted(self.documents)),
            dropped={self.text_id(self.tasks[number]): why for number, why in sorted(self.dropped.items())},
            unwritten={
                self.text_id(self.tasks[number]): failures.get(number, stopped or "not written yet")
                for number in unwritten
            },
            rejected=dict(self.rejected),
            calls=calls,
            cached=cached,
            cost=cost,
            stopped=stopped,
        )


class _PendingCalls(Iterator[ModelCall]):
    """Attempts as they are wanted. It may end and go on: a reply that came meanwhile may ask for another attempt."""

    def __init__(self, collector: TextCollector) -> None:
        self.collector = collector

    def __next__(self) -> ModelCall:
        call = self.collector.next_call()
        if call is None:
            raise StopIteration
        return call
