"""Text generation: each prompt with each decoding setting, resampled until a text has the required length.

The runner of `finecomb.annotators.llm` makes the calls, as for LLM annotators, so an interrupted run resumes from its
journal and identical requests are sent once.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.chat import FINISH_CONTEXT_OVERFLOW, ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import Endpoint
from finecomb.annotators.llm.journal import ReplyEntry
from finecomb.annotators.llm.local_models import is_local_model
from finecomb.annotators.llm.model_options import short_model_name
from finecomb.annotators.llm.providers import PROVIDERS, CompatibleProvider, Provider, find_provider
from finecomb.annotators.llm.run_folder import build_folder_name
from finecomb.annotators.llm.runner import ModelCall, ProgressCallback, RunOutcome, run_task
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.model_notes import LIMIT_SETTINGS
from finecomb.core.records import Document, ModelSettings, Record
from finecomb.core.sentences import sentence_offsets
from finecomb.corpora.generation.decoding import Decoding
from finecomb.corpora.generation.lengths import CutText, LengthRule
from finecomb.corpora.generation.local_model import TransformersProvider
from finecomb.corpora.generation.priming import HEADLINE, PROMPT, Priming, document_prompt
from finecomb.corpora.generation.section_markers import parse_section_markers
from finecomb.version import __version__

Interface = Literal["completions", "chat"]
Runtime = Literal["transformers", "gguf", "http"]
SETTINGS_FILE = "generation.json"
_ARGMAX_REASON = "greedy decoding would give the same text again"
# part of the request hash; with another wording, the replies of earlier runs would not be found
_INSTRUCTION = (
    "Go on with the text that you are given, in the same style. Write only what comes next, as running text, and do not"
    " repeat what you were given."
)
_NOT_ENDED_REASON = "did not end within the maximum number of tokens"
_PROMPT_TOO_LONG_REASON = "the prompt and the requested tokens exceed the model's context"


class GenerationSettings(Record):
    """Settings of a generation run: everything except the prompts that determines its requests."""

    model: ModelSettings
    """Model, endpoint and budget; its seed is the seed of the run."""
    runtime: Runtime
    """Runtime of the model: transformers or llama.cpp in this process, or an HTTP endpoint."""
    decodings: tuple[Decoding, ...]
    rule: LengthRule | None = LengthRule()
    """Length rule; None keeps the complete text."""
    tries: int = 20
    """Maximum samples per text."""
    interface: Interface = "completions"
    """Interface of the model: continue the prompt, or follow an instruction in a chat."""
    sections: bool = False
    """Parse section markers in the generated texts."""
    name: str = ""
    """Name of the system in `meta.model`."""

    def max_tokens(self) -> int:
        """Return the maximum number of subword tokens per text."""
        return self.rule.token_budget() if self.rule else self.model.max_tokens

    def system_name(self) -> str:
        """Return the name of the system, by default that of the model."""
        return self.name or short_model_name(self.model.model)


class GenerationNote(Record):
    """Provenance of a generated text, stored as `meta.generation` of its document."""

    prompt: str
    """ID of the prompt's document."""
    decoding: str
    """Name of the decoding setting."""
    sample: int
    """Number of the sample, from 1."""
    attempt: int
    """Number of the accepted attempt, from 1."""
    seed: int
    """Seed sent to the model for this attempt."""
    run_seed: int
    """Seed of the run, from which all attempt seeds are derived."""
    words: int
    rule: str
    """Length rule; empty for complete texts."""
    runtime: str
    endpoint: str
    interface: str
    priming: tuple[str, ...] = ()
    """IDs of the priming texts."""
    request: str
    """Hash of the request in the run's journal."""
    version: str


def generation_note(document: Document) -> GenerationNote:
    """Return the provenance of a generated text."""
    return GenerationNote.model_validate(document.meta["generation"])


class TextTask(NamedTuple):
    """One text to generate."""

    prompt: Document
    decoding: Decoding
    sample: int


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """Plan of a run: all texts to generate, made before any request."""

    settings: GenerationSettings
    prompts: tuple[Document, ...]
    priming: Priming
    provider: Provider
    host: str
    messages: Mapping[str, tuple[ChatMessage, ...]]
    """Messages by prompt ID, shared by all requests for a prompt."""

    def tasks(self) -> list[TextTask]:
        """Return one task per text, ordered by prompt. Argmax decoding has a single sample."""
        return [
            TextTask(prompt, decoding, sample)
            for prompt in self.prompts
            for decoding in self.settings.decodings
            for sample in range(1 if decoding.is_argmax else self.settings.model.samples)
        ]

    def build_call(self, task: TextTask, attempt: int) -> ModelCall:
        """Return the model call for an attempt, counted from 0."""
        settings, decoding = self.settings, task.decoding
        request = ChatRequest(
            model=settings.model.model,
            messages=self.messages[task.prompt.id],
            temperature=decoding.temperature,
            top_p=None if decoding.is_argmax else decoding.top_p,
            frequency_penalty=decoding.frequency_penalty or None,
            max_tokens=settings.max_tokens(),
            seed=attempt_seed(settings.model.seed, task, attempt),
            sample=task.sample,
            retry=attempt,
            continued=settings.interface == "completions",
        )
        host = self.host
        if settings.runtime == "transformers":  # the length rule decides where these texts stop
            host = f"{host}|{settings.rule}|{self.priming.delimiter}|{settings.model.context_tokens or ''}"
        return ModelCall(task.prompt.id, request, request.hash_at_endpoint(host))

    def folder_name(self) -> str:
        """Return the name of the run's folder; runs with identical requests share one folder."""
        settings = self.settings.model_dump(mode="json", exclude={"model": set(LIMIT_SETTINGS)})
        prompts = [[prompt.id, document_prompt(prompt)] for prompt in self.prompts]
        shots = [[shot.id, shot.text] for shot in self.priming.documents]
        identity = [self.host, settings, prompts, shots, self.priming.delimiter]
        return build_folder_name(self.settings.system_name(), identity)

    def text_id(self, task: TextTask) -> str:
        """Return the document ID of a text."""
        number = [str(task.sample + 1)] if self.settings.model.samples > 1 else []
        return "/".join([task.prompt.id, self.settings.system_name(), task.decoding.name, *number])


def build_messages(interface: Interface, priming: Priming, prompt: Document) -> tuple[ChatMessage, ...]:
    """Return the messages for a prompt: the text to continue, or the instruction with priming texts as turns."""
    prompt_text = document_prompt(prompt)
    if interface == "completions":
        shots = priming.full_prompt(prompt).removesuffix(prompt_text)
        return tuple(ChatMessage(role="user", content=part) for part in (shots, prompt_text) if part)
    messages = [ChatMessage(role="system", content=_INSTRUCTION)]
    for shot in priming.other_documents(prompt):
        before, text = document_prompt(shot) if PROMPT in shot.context else "", shot.text.strip()
        if not before:  # without a prompt, the user's turn is the first sentence
            end = int(sentence_offsets(text)[0, 1]) if text else 0
            before, text = text[:end], text[end:].strip()
        messages += [ChatMessage(role="user", content=before), ChatMessage(role="assistant", content=text)]
    return (*messages, ChatMessage(role="user", content=prompt_text))


def attempt_seed(run_seed: int, task: TextTask, attempt: int) -> int:
    """Return the seed of an attempt, derived from the run's seed, prompt, decoding setting and sample number."""
    parts = (run_seed, task.prompt.id, task.decoding.name, task.sample, attempt)
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big") >> 1


def plan_generation(
    settings: GenerationSettings, prompts: Sequence[Document], priming: Priming | None = None
) -> GenerationPlan:
    """Return the texts that a run would generate, or raise an error if the settings cannot work."""
    usable = tuple(prompt for prompt in prompts if document_prompt(prompt))
    if not usable:
        raise FinecombError("no prompts; each document needs a prompt or a non-empty text")
    model, runtime = settings.model, settings.runtime
    Price.from_settings(model)
    if runtime == "gguf" and any(decoding.frequency_penalty for decoding in settings.decodings):
        raise ParameterError(
            f"{param('runtime', 'gguf')} cannot be used with {param('frequency_penalty')}, because llama.cpp also "
            f"counts the words of the prompt; use {param('runtime', 'transformers')}",
            parameter="runtime",
        )
    if runtime == "transformers" and settings.interface == "chat":
        raise ParameterError(
            f"{param('interface', 'chat')} cannot be used with {param('runtime', 'transformers')}, which only continues"
            " texts",
            parameter="interface",
        )
    if runtime == "gguf" and not is_local_model(model.model):
        raise ParameterError(
            f"{param('runtime', 'gguf')}: {model.model} is not a GGUF file; use {param('runtime', 'transformers')}",
            parameter="runtime",
        )
    shots = priming or Priming()
    provider = find_provider(model.model)
    if runtime == "transformers":
        provider = TransformersProvider(settings.rule, shots.delimiter)
    elif runtime == "http" and is_local_model(model.model):  # with a base URL, the name is a model on the server
        provider = PROVIDERS[CompatibleProvider.name]
    if settings.interface != "chat" and "completions" not in provider.capabilities:
        raise ParameterError(
            f"{param('interface', settings.interface)} cannot be used with {provider.name}; use"
            f" {param('interface', 'chat')}",
            parameter="interface",
        )
    messages = {prompt.id: build_messages(settings.interface, shots, prompt) for prompt in usable}
    return GenerationPlan(settings, usable, shots, provider, provider.host(model), messages)


# --- acceptance --------------------------------------------------------------------------------------------------


def cut_reply(reply: ChatReply, rule: LengthRule | None, priming: Priming) -> CutText:
    """Cut a reply to an acceptable text, or return why it is rejected: length, missing end, refusal or copying."""
    if reply.finish == FINISH_CONTEXT_OVERFLOW:
        return CutText("", 0, _PROMPT_TOO_LONG_REASON)
    if reply.refusal or reply.finish == "content_filter":
        return CutText("", 0, "refused by the model or its content filter")
    before, delimiter, _ = reply.text.partition(priming.delimiter) if priming.delimiter else (reply.text, "", "")
    is_whole = bool(delimiter) or reply.finish == "stop"
    if rule:
        cut = rule.cut_to_length(before, is_whole)
    else:
        words, text = len(before.split()), before.strip()
        why = "" if text else "empty"
        cut = CutText(text, words, why) if is_whole else CutText("", words, _NOT_ENDED_REASON)
    if cut.text and priming.is_copy(cut.text):
        return CutText("", cut.words, "copies a priming text")
    return cut


# --- run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GenerationRun(RunOutcome):
    """Texts and statistics of a generation run."""

    plan: GenerationPlan
    documents: tuple[Document, ...]
    """Generated texts in the order of prompts and decoding settings."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Reasons why texts were abandoned, by text ID."""
    unwritten: Mapping[str, str] = field(default_factory=dict)
    """Reasons why texts have not been generated yet, by text ID."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Number of rejected samples by reason."""


def generate(
    run_plan: GenerationPlan,
    runs: Path | None = None,
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
) -> GenerationRun:
    """Generate the texts of a plan. Replies stored in `runs`, even by a crashed run, are not requested again."""
    return run_task(GenerationTask(run_plan), runs, endpoint, watch)


class GenerationTask:
    """The texts of a plan as a task of the runner. A rejected text is requested again with another seed."""

    def __init__(self, run_plan: GenerationPlan) -> None:
        self.plan, self.tasks = run_plan, run_plan.tasks()
        self.settings, self.provider = run_plan.settings.model, run_plan.provider
        self.folder_name = run_plan.folder_name()
        self.document_ids = tuple(prompt.id for prompt in run_plan.prompts)
        self._documents: dict[int, Document] = {}
        """Documents by task number."""
        self._dropped: dict[int, str] = {}
        self._rejected: Counter[str] = Counter()
        self._open: dict[str, tuple[int, int]] = {}
        """Task number and attempt number of each call without a reply, by the hash of the call."""

    def open_folder(self, folder: Path) -> None:
        """Write the run's settings."""
        (folder / SETTINGS_FILE).write_text(self.plan.settings.model_dump_json(indent=1), encoding="utf-8")

    def first_calls(self) -> Iterator[ModelCall]:
        """Yield the first attempt of each text."""
        return (self._build_call(number, 0) for number in range(len(self.tasks)))

    def _build_call(self, number: int, attempt: int) -> ModelCall:
        call = self.plan.build_call(self.tasks[number], attempt)
        self._open[call.hash] = number, attempt
        return call

    def add_reply(self, call: ModelCall, entry: ReplyEntry) -> ModelCall | None:
        """Accept, reject or abandon a text; if it is rejected, return the call for the next attempt."""
        number, attempt = self._open.pop(call.hash)
        task, settings = self.tasks[number], self.plan.settings
        cut = cut_reply(entry.reply, settings.rule, self.plan.priming)
        if not cut.why:
            self._documents[number] = _build_document(self.plan, task, attempt, call, cut)
            return None
        self._rejected[cut.why] += 1
        if cut.why == _PROMPT_TOO_LONG_REASON or task.decoding.is_argmax or attempt + 1 >= settings.tries:
            more = f"; {_ARGMAX_REASON}" if task.decoding.is_argmax and cut.why != _PROMPT_TOO_LONG_REASON else ""
            self._dropped[number] = f"{cut.why}{more}"
            return None
        return self._build_call(number, attempt + 1)

    def progress_counts(self) -> tuple[int, int]:
        """Return the number of accepted or abandoned texts, and the number of all texts."""
        return len(self._documents) + len(self._dropped), len(self.tasks)

    def unfinished_reasons(self, outcome: RunOutcome) -> dict[str, str]:
        """Return the reasons why texts have not been generated yet, by text ID."""
        otherwise = outcome.stopped or "not written yet"
        reasons = {number: outcome.failures.get(hash, otherwise) for hash, (number, _) in self._open.items()}
        return {self.plan.text_id(self.tasks[number]): why for number, why in sorted(reasons.items())}

    def build_run(self, outcome: RunOutcome) -> GenerationRun:
        """Return the run with the texts generated so far."""
        return GenerationRun(
            **vars(outcome),
            plan=self.plan,
            documents=tuple(self._documents[number] for number in sorted(self._documents)),
            dropped={self.plan.text_id(self.tasks[number]): why for number, why in sorted(self._dropped.items())},
            unwritten=self.unfinished_reasons(outcome),
            rejected=dict(self._rejected),
        )


def _build_document(run_plan: GenerationPlan, task: TextTask, attempt: int, call: ModelCall, cut: CutText) -> Document:
    settings, prompt = run_plan.settings, task.prompt
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
        endpoint=run_plan.host,
        interface=settings.interface,
        priming=tuple(shot.id for shot in run_plan.priming.documents),
        request=call.hash,
        version=__version__,
    )
    context = prompt.context if PROMPT in prompt.context else {PROMPT: prompt.text}
    document = Document(
        id=run_plan.text_id(task),
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
