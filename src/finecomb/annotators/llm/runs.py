"""Runs: a study's texts put to a language model, and its replies made into annotations like anybody's."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from finecomb.annotators.llm.blocking import run_blocking
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.chat import ChatRequest
from finecomb.annotators.llm.endpoint import Endpoint, need_call_packages, parse_host
from finecomb.annotators.llm.journal import Journal, ReplyEntry, cached_replies
from finecomb.annotators.llm.judging_task import ModelTask, build_tasks, mark_tasks
from finecomb.annotators.llm.local_models import DEFAULT_CONTEXT_TOKENS, LocalEndpoint, is_local, model_file
from finecomb.annotators.llm.model_calls import (
    Caller,
    CallProgress,
    ModelCall,
    ProgressCallback,
    reuse_reply,
    truncate_reply,
)
from finecomb.annotators.llm.prompt import FewShotExample, PromptTemplate, PromptWriter, check_question_names
from finecomb.annotators.llm.reply_parser import ReplyContent, interpret_reply
from finecomb.annotators.llm.run_folder import (
    RECORD_FILE,
    RunRecord,
    TextRetry,
    lock_run_folder,
    read_record,
    read_status,
    write_record,
    write_status,
)
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.model_notes import MarkNote, ReplyNote, read_reply_note
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Exclusion, ModelSettings, Unit
from finecomb.core.study import Study
from finecomb.version import __version__


@dataclass(frozen=True, slots=True)
class ModelRun:
    """What a run has brought."""

    record: RunRecord
    folder: Path | None
    annotators: tuple[Annotator, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    states: Mapping[str, int] = field(default_factory=dict)
    """Annotations by state."""
    unasked: Mapping[str, str] = field(default_factory=dict)
    """Why texts have no annotation, by document."""
    calls: int = 0
    """Made now."""
    cached: int = 0
    """Answered from this or another run's journal."""
    cost: float = 0.0
    """Of the run so far, earlier sessions included."""
    stopped: str = ""
    """Why it ended early."""

    def placement_counts(self) -> Counter[str]:
        """How the marks were placed: by method, and `flagged`, `unlocated`, `invented label`."""
        counts: Counter[str] = Counter()
        for mark in (mark for annotation in self.annotations for mark in annotation.marks):
            note = MarkNote.from_mark(mark)
            counts[note.placed or "unlocated"] += 1
            counts["flagged"] += bool(note.flags)
            counts["invented label"] += bool(note.label)
        return counts


@dataclass(frozen=True, slots=True)
class PlannedAnnotation:
    """One annotation to be made: a task, a sample, and the calls whose replies it is made from."""

    task: ModelTask
    sample: int
    calls: tuple[ModelCall, ...]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything a run will ask, before anything is sent."""

    record: RunRecord
    protocol: Protocol
    tasks: tuple[ModelTask, ...]
    shots: tuple[FewShotExample, ...]
    writer: PromptWriter

    def requests(self, task: ModelTask, sample: int) -> list[ChatRequest]:
        """The requests of one task."""
        others = [shot for shot in self.shots if shot[0].id != task.document.id][: self.record.settings.shots]
        requests = self.writer.requests(task, sample, others)
        retry = self.record.retries.get(task.document.id)
        return [_apply_retry(request, retry) for request in requests] if retry else list(requests)

    def with_retries(self, retries: Mapping[str, TextRetry]) -> RunPlan:
        """The plan with some texts asked once more, in words that the cache does not know."""
        return replace(self, record=self.record.model_copy(update={"retries": dict(retries)}))

    def planned_annotations(self) -> Iterator[PlannedAnnotation]:
        """Every annotation to be, with its calls, text by text."""
        for task, sample in itertools.product(self.tasks, range(self.record.settings.samples)):
            requests = self.requests(task, sample)
            calls = (ModelCall(task.document.id, request, request.hash(self.record.host)) for request in requests)
            yield PlannedAnnotation(task, sample, tuple(calls))

    def calls(self) -> Iterator[ModelCall]:
        """Every call, text by text."""
        return itertools.chain.from_iterable(slot.calls for slot in self.planned_annotations())

    def annotator(self, sample: int) -> Annotator:
        """Whose the annotations of a sample are."""
        record, settings = self.record, self.record.settings
        many = settings.samples > 1
        meta = {
            "model": settings.model,
            "endpoint": record.host,
            "settings": settings.model_dump(mode="json", exclude_defaults=True, exclude={"key_env", "base_url"}),
            "prompt": record.prompt,
            "date": record.created.date().isoformat(),
            **({"sample": sample + 1} if many else {}),
        }
        return Annotator(id=f"{record.name}#{sample + 1}" if many else record.name, kind="llm", meta=meta)


# --- plan --------------------------------------------------------------------------------------------------------


def plan_run(
    study: Study,
    settings: ModelSettings,
    protocol: Protocol | None = None,
    documents: Iterable[Document] | None = None,
    name: str = "",
    template: PromptTemplate | None = None,
    tasks: Iterable[ModelTask] | None = None,
) -> RunPlan:
    """What a run would ask; refused when it cannot work, with the reason."""
    protocol = protocol or study.protocol()
    template = template or (PromptTemplate.for_local_models() if is_local(settings.model) else PromptTemplate())
    check_question_names(protocol)
    Price.from_settings(settings)
    chosen = list(study.iter_documents() if documents is None else documents)
    todo = tuple(build_tasks(study, chosen, protocol, settings.by_segment) if tasks is None else tasks)
    if not todo:
        raise FinecombError(f"there is nothing to ask: no {protocol.work.unit} of the study is for {protocol.id}")
    record = RunRecord(
        name=name or Path(settings.model).name.removesuffix(".gguf"),
        settings=settings,
        host=_host(settings),
        protocol=protocol.id,
        prompt=template.hash(protocol),
        template=template.to_text(),
        created=datetime.now(UTC),
        version=__version__,
    )
    writer = PromptWriter(protocol, settings, template)
    run_plan = RunPlan(record, protocol, todo, tuple(_select_shots(study, protocol, settings)), writer)
    _check_lengths(run_plan)
    return run_plan


def name_clash(study: Study, run_plan: RunPlan) -> str:
    """Why the annotator's name is taken, as two prompts or models under one name would be mixed up; empty when free."""
    samples = range(run_plan.record.settings.samples)
    names = {annotator.id: annotator for annotator in map(run_plan.annotator, samples)}
    for annotator in study.iter_annotators():
        if annotator.id in names and (
            clash := _describe_name_clash(study, annotator, names[annotator.id], run_plan.protocol.id)
        ):
            return clash
    return ""


def _describe_name_clash(study: Study, before: Annotator, now: Annotator, protocol: str) -> str:
    if before.kind != "llm":
        return f"annotator {before.id!r} is a {before.kind} already; name this one with {param('name')}"
    work = study.annotations.filter((pl.col("annotator") == before.id) & (pl.col("protocol") == protocol))
    changed = [key for key in ("model", "endpoint", "prompt") if before.meta.get(key) != now.meta.get(key)]
    if work.is_empty() or not changed:
        return ""
    key = changed[0]
    return (
        f"annotator {before.id!r} was asked with another {key} before"
        f" ({before.meta.get(key)}, now {now.meta.get(key)}); name this one with {param('name')}"
    )


def _host(settings: ModelSettings) -> str:
    if is_local(settings.model):
        model_file(settings.model)
        return "local"
    if not settings.base_url:
        raise ParameterError(
            f"say where the model answers: {param('base_url', 'URL')}, or {param('model', 'local:smollm2')} for one"
            " that runs here",
            parameter="base_url",
        )
    return parse_host(settings.base_url)


def _select_shots(study: Study, protocol: Protocol, settings: ModelSettings) -> list[FewShotExample]:
    """Gold texts in an order drawn by the seed; an error when there are too few."""
    if not settings.shots:
        return []
    gold = {annotator.id for annotator in study.iter_annotators() if annotator.kind == "gold"}
    work = [
        annotation
        for annotation in study.submitted_work().iter_annotations()
        if annotation.annotator in gold and annotation.protocol == protocol.id
    ]
    if len(work) <= settings.shots:
        raise ParameterError(
            f"{param('shots', settings.shots)}: the study has {len(work)} gold texts; it needs at least"
            f" {settings.shots + 1}",
            parameter="shots",
        )
    order = sorted(
        work, key=lambda annotation: hashlib.sha256(f"{settings.seed}/{annotation.document}".encode()).digest()
    )
    return [(study.document(annotation.document), annotation) for annotation in order[: settings.shots + 1]]


def _check_lengths(run_plan: RunPlan) -> None:
    settings = run_plan.record.settings
    context = settings.context_tokens or (DEFAULT_CONTEXT_TOKENS if is_local(settings.model) else None)
    if context is None:
        return
    for task in run_plan.tasks:
        for request in run_plan.requests(task, 0):
            tokens = request.estimated_prompt_tokens()
            if tokens + settings.max_tokens > context:
                raise FinecombError(
                    f"document {task.document.id!r} needs about {tokens:,} tokens and {settings.max_tokens:,} for the"
                    f" reply, but {context:,} fit; ask part by part with {param('by_segment')}, or lower"
                    f" {param('max_tokens')} or {param('shots')}"
                )


# --- run ---------------------------------------------------------------------------------------------------------


def annotate(
    study: Study,
    settings: ModelSettings,
    protocol: Protocol | None = None,
    documents: Iterable[Document] | None = None,
    runs: Path | None = None,
    name: str = "",
    template: PromptTemplate | None = None,
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
) -> ModelRun:
    """Let a language model annotate a study's texts; what is in `runs` already is not asked again.

    Without `runs` nothing is kept on disk. `endpoint` takes the place of the one that the settings name.
    """
    run_plan = plan_run(study, settings, protocol, documents, name, template)
    return execute_plan(run_plan, runs, endpoint, watch)


AnnotationCallback = Callable[[Annotation], None]
"""Called with every annotation as soon as its replies are there."""


def execute_plan(
    run_plan: RunPlan,
    runs: Path | None = None,
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
    deliver: AnnotationCallback = lambda annotation: None,
) -> ModelRun:
    """Carry out a plan; also after a crash, where it goes on from what the journal has."""
    if runs is None:
        return run_blocking(_execute_async(run_plan, None, None, endpoint, watch, deliver))
    folder = runs / run_folder_name(run_plan.record)
    with lock_run_folder(folder):
        run_plan = save_plan(run_plan, folder)
        documents = _run_document_ids(run_plan, folder)
        try:
            run = run_blocking(_execute_async(run_plan, runs, folder, endpoint, watch, deliver))
        except BaseException as error:
            why = str(error) if isinstance(error, FinecombError) else "interrupted"
            write_status(folder, "stopped", documents, why=why)
            raise
        complete = not run.stopped and len(run.unasked) == 0
        write_status(folder, "finished" if complete else "stopped", documents, run.unasked, run.stopped)
        return run


def save_plan(run_plan: RunPlan, folder: Path) -> RunPlan:
    """The plan as the run's folder has it, which says from now on that it is at work."""
    run_plan = _load_or_write_record(run_plan, folder)
    write_status(folder, "running", _run_document_ids(run_plan, folder))
    return run_plan


def _run_document_ids(run_plan: RunPlan, folder: Path) -> tuple[str, ...]:
    """The texts that a run is about: those of this plan, and those that it was about before."""
    status = read_status(folder)
    before = status.documents if status else ()
    return tuple(dict.fromkeys([*before, *(task.document.id for task in run_plan.tasks)]))


def _apply_retry(request: ChatRequest, retry: TextRetry) -> ChatRequest:
    return request.model_copy(update={"retry": retry.number, "max_tokens": retry.max_tokens or request.max_tokens})


def run_folder_name(record: RunRecord) -> str:
    """The name of a run's folder: runs that ask the same in the same way share one."""
    limits = {
        "price",
        "budget",
        "concurrency",
        "requests_per_minute",
        "tokens_per_minute",
        "timeout",
        "attempts",
        "key_env",
        "base_url",
    }
    identity = [
        record.name,
        record.host,
        record.protocol,
        record.prompt,
        record.settings.model_dump(mode="json", exclude=limits),
    ]
    short = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
    safe = "".join(character if character.isalnum() or character in "-_." else "-" for character in record.name)
    return f"{safe}-{short}"


def _load_or_write_record(run_plan: RunPlan, folder: Path) -> RunPlan:
    """The plan with the date of the run that it goes on with; a new run is written down first."""
    record = run_plan.record
    if (folder / RECORD_FILE).exists():
        before = read_record(folder)
        retries = {**before.retries, **record.retries}
        record = record.model_copy(update={"created": before.created, "retries": retries})
        if record != before:
            write_record(folder, record)
    else:
        write_record(folder, record)
    return replace(run_plan, record=record)


async def _execute_async(
    run_plan: RunPlan,
    runs: Path | None,
    folder: Path | None,
    endpoint: Endpoint | None,
    watch: ProgressCallback,
    deliver: AnnotationCallback,
) -> ModelRun:
    journal = Journal(folder)
    slots = list(run_plan.planned_annotations())
    collector = AnnotationCollector(run_plan, slots, deliver)
    journal.open()
    try:
        collector.add_replies(journal.content.replies)
        await _reuse_replies(journal, collector, cached_replies(runs) if runs else {})
        cached = len(collector.entries)
        outcome = await _send_requests(run_plan, journal, collector, endpoint, watch)
    finally:
        await journal.close()
    return collector.finish_run(replace(outcome, folder=folder, cached=cached))


async def _reuse_replies(journal: Journal, collector: AnnotationCollector, elsewhere: Mapping[str, ReplyEntry]) -> None:
    """Replies that other runs have got to the same requests."""
    entries = {hash: reuse_reply(elsewhere[hash]) for hash in collector.missing if hash in elsewhere}
    if entries:
        await journal.add(*entries.values())
        collector.add_replies(entries)


async def _send_requests(
    run_plan: RunPlan,
    journal: Journal,
    collector: AnnotationCollector,
    endpoint: Endpoint | None,
    watch: ProgressCallback,
) -> ModelRun:
    """Ask for the replies that are missing."""
    calls = list(collector.missing.values())
    if not calls:
        return ModelRun(run_plan.record, None, cost=journal.content.spent)
    settings, cached = run_plan.record.settings, len(collector.entries)
    progress = CallProgress(cached + len(calls), cached, cached)
    answering = endpoint or open_endpoint(settings)
    caller = Caller(answering, settings, journal, Price.from_settings(settings))
    try:
        async for call, entry in caller.make_calls(calls, progress, watch):
            collector.add_replies({call.hash: entry})
    finally:
        if endpoint is None:
            await answering.close()
    collector.failures = caller.failures
    made = len(collector.entries) - cached
    return ModelRun(run_plan.record, None, cost=caller.budget.spent, calls=made, stopped=caller.stopped)


def collect_results(run_plan: RunPlan, runs: Path) -> ModelRun:
    """What a run has brought so far, without asking anything: after an interruption."""
    folder = runs / run_folder_name(run_plan.record)
    content = Journal(folder).content
    run_plan = _load_or_write_record(run_plan, folder)
    collector = AnnotationCollector(run_plan, list(run_plan.planned_annotations()))
    collector.add_replies(content.replies)
    collector.failures = {hash: entry.why for hash, entry in content.failures.items()}
    run = ModelRun(run_plan.record, folder, cost=content.spent, cached=len(content.replies), stopped="interrupted")
    return collector.finish_run(run)


def open_endpoint(settings: ModelSettings) -> Endpoint:
    """The endpoint that settings name."""
    need_call_packages()
    if is_local(settings.model):
        return LocalEndpoint(settings.model, settings.context_tokens or DEFAULT_CONTEXT_TOKENS)
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint

    return HttpEndpoint(settings.base_url, settings.key_env, settings.timeout)


# --- replies as annotations --------------------------------------------------------------------------------------


class AnnotationCollector:
    """Makes annotations of replies, each as soon as all replies of its text are there."""

    def __init__(
        self,
        run_plan: RunPlan,
        slots: Sequence[PlannedAnnotation],
        deliver: AnnotationCallback = lambda annotation: None,
    ) -> None:
        self.plan, self.slots, self.deliver = run_plan, slots, deliver
        self.entries: dict[str, ReplyEntry] = {}
        """Replies by the hash of their request."""
        self.missing = {call.hash: call for slot in slots for call in slot.calls}
        """Calls without a reply; equal requests are one call."""
        self.failures: dict[str, str] = {}
        """Why calls got no reply."""
        self._annotations: dict[int, Annotation] = {}
        self._slots_of: dict[str, list[int]] = {}
        for number, slot in enumerate(slots):
            for call in slot.calls:
                self._slots_of.setdefault(call.hash, []).append(number)

    def add_replies(self, entries: Mapping[str, ReplyEntry]) -> None:
        """Take replies; those to questions that this plan does not ask are left alone."""
        mine = {hash: entry for hash, entry in entries.items() if hash in self.missing}
        self.entries |= mine
        for hash in mine:
            del self.missing[hash]
        for number in dict.fromkeys(itertools.chain.from_iterable(self._slots_of[hash] for hash in mine)):
            self._make_annotation(number)

    def _make_annotation(self, number: int) -> None:
        slot = self.slots[number]
        if any(call.hash in self.missing for call in slot.calls):
            return
        replies = [(call.hash, self.entries[call.hash]) for call in slot.calls]
        annotation = build_annotation(self.plan, slot.task, slot.sample, replies)
        self._annotations[number] = annotation
        self.deliver(annotation)

    def finish_run(self, run: ModelRun) -> ModelRun:
        """The run with the annotations of all texts whose replies are there, in the order of the texts."""
        annotations = tuple(self._annotations[number] for number in sorted(self._annotations))
        samples = range(self.plan.record.settings.samples)
        return replace(
            run,
            annotators=tuple(self.plan.annotator(sample) for sample in samples),
            annotations=annotations,
            states=dict(Counter(str(read_reply_note(annotation).state) for annotation in annotations)),
            unasked=self._unasked_reasons(run.stopped or "not asked yet"),
        )

    def _unasked_reasons(self, otherwise: str) -> dict[str, str]:
        """Why texts have no annotation, by document."""
        open_slots = (slot for number, slot in enumerate(self.slots) if number not in self._annotations)
        return {
            slot.task.document.id: next(
                (self.failures[call.hash] for call in slot.calls if call.hash in self.failures), otherwise
            )
            for slot in open_slots
        }


def build_annotation(
    run_plan: RunPlan, task: ModelTask, sample: int, replies: Sequence[tuple[str, ReplyEntry]]
) -> Annotation:
    """One annotation from the replies to one task; excluded, with the reason, unless all of them could be read."""
    annotator = run_plan.annotator(sample).id
    id = "/".join(filter(None, (annotator, run_plan.protocol.id, task.document.id, task.about or "")))
    parts = task.parts or (None,)
    readings = [
        interpret_reply(
            entry.reply,
            task.document,
            task.part_protocol(number, run_plan.protocol),
            f"{id}/{number}" if task.parts else id,
            part,
        )
        for number, (part, (_, entry)) in enumerate(zip(parts, replies, strict=True))
    ]
    bad = next((number for number, reading in enumerate(readings) if reading.state != "read"), None)
    last = max(entry.when for _, entry in replies)
    note = _build_reply_note(readings, replies, bad)
    excluded = None
    if bad is not None:
        where = f" (part {bad + 1} of {len(parts)})" if task.parts else ""
        excluded = Exclusion(
            by="finecomb", when=last, reason=f"reply {readings[bad].state}{where}: {readings[bad].why}"
        )
    answers = (
        dict(itertools.chain.from_iterable(reading.answers.items() for reading in readings)) if bad is None else {}
    )
    if task.swapped and answers.get("prefer") in ("a", "b"):
        answers["prefer"] = "b" if answers["prefer"] == "a" else "a"
    order = {"shown_first": "b" if task.swapped else "a"} if run_plan.protocol.work.unit == "pair" else {}
    return Annotation(
        id=id,
        document=task.document.id,
        annotator=annotator,
        protocol=run_plan.protocol.id,
        about=task.about,
        status="submitted" if bad is None else "excluded",
        marks=tuple(mark for reading in readings for mark in reading.marks) if bad is None else (),
        units=_build_units(task, readings) if bad is None else (),
        answers=answers,
        excluded=excluded,
        submitted=last,
        seconds=round(sum(entry.seconds for _, entry in replies), 3),
        meta={"llm": note.model_dump(mode="json", exclude_defaults=True), **order},
    )


def _build_units(task: ModelTask, readings: Sequence[ReplyContent]) -> tuple[Unit, ...]:
    pairs = zip(task.parts, readings, strict=False)
    return tuple(Unit(start=part.start, end=part.end, answers=reading.unit) for part, reading in pairs)


def _build_reply_note(
    readings: Sequence[ReplyContent], replies: Sequence[tuple[str, ReplyEntry]], bad: int | None
) -> ReplyNote:
    marks = sum(len(reading.marks) for reading in readings)
    answered = any(reading.answers or reading.unit for reading in readings)
    state = readings[bad].state if bad is not None else "marked" if marks else "answered" if answered else "no errors"
    entries = [entry for _, entry in replies]
    return ReplyNote(
        state=state,
        calls=tuple(hash for hash, _ in replies),
        flags=tuple(dict.fromkeys(flag for reading in readings for flag in reading.flags)),
        malformed=sum(reading.malformed for reading in readings),
        prompt_tokens=sum(entry.reply.prompt_tokens or 0 for entry in entries),
        completion_tokens=sum(entry.reply.completion_tokens or 0 for entry in entries),
        model=entries[-1].reply.model,
        reply=truncate_reply(entries[bad].reply) if bad is not None else "",
    )


# --- one text at a time, and second opinions ---------------------------------------------------------------------


_PLACEHOLDER_TASK = ModelTask(Document(id="none", text=""))


@dataclass(frozen=True)
class LanguageModelJudge:
    """A language model as a function from a document to an annotation, like a detector."""

    protocol: Protocol
    settings: ModelSettings
    runs: Path | None = None
    name: str = ""
    template: PromptTemplate | None = None
    endpoint: Endpoint | None = None

    @property
    def signature(self) -> str:
        """What makes the marks."""
        run_plan = plan_run(
            Study.from_items([self.protocol]),
            self.settings,
            self.protocol,
            template=self.template,
            tasks=[_PLACEHOLDER_TASK],
        )
        prompt = run_plan.record.prompt
        return f"llm:{self.settings.model}|protocol:{self.protocol.id}|prompt:{prompt}|version:{__version__}"

    def __call__(self, document: Document) -> Annotation:
        """The annotation of one document; an error when there was no reply."""
        study = Study.from_items([self.protocol, document])
        run = annotate(
            study, self.settings, self.protocol, [document], self.runs, self.name, self.template, self.endpoint
        )
        if not run.annotations:
            raise FinecombError(f"document {document.id!r}: {next(iter(run.unasked.values()), 'no reply')}")
        return run.annotations[0]


def make_judge(settings: ModelSettings, protocol: Protocol, **options: Any) -> LanguageModelJudge:
    """A language model as a judge of single documents; `options` are fields of LanguageModelJudge."""
    return LanguageModelJudge(protocol, settings, **options)


def verify_marks(
    study: Study,
    annotations: Iterable[Annotation],
    settings: ModelSettings,
    audit: Protocol,
    runs: Path | None = None,
    name: str = "",
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
) -> ModelRun | None:
    """A model's opinion of each located mark against text and evidence, under the audit protocol; None for no marks."""
    documents = {document.id: document for document in study.iter_documents()}
    tasks = [
        task
        for annotation in annotations
        for task in mark_tasks(documents[annotation.document], annotation, study.protocols[annotation.protocol])
    ]
    if not tasks:
        return None
    return execute_plan(plan_run(study, settings, audit, (), name, tasks=tasks), runs, endpoint, watch)
