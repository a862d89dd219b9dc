"""Annotation by language models as a task of the runner: planning, calls, and annotations from the replies."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.chat import ChatRequest
from finecomb.annotators.llm.chunks import check_chunked_protocol, join_chunk_marks
from finecomb.annotators.llm.endpoint import Endpoint
from finecomb.annotators.llm.journal import ReplyEntry
from finecomb.annotators.llm.judging_task import ModelTask, build_mark_judgement_tasks, build_tasks
from finecomb.annotators.llm.prompt import FewShotExample, PromptTemplate, PromptWriter, check_question_names
from finecomb.annotators.llm.providers import find_provider
from finecomb.annotators.llm.reply_parser import build_reply_content
from finecomb.annotators.llm.run_folder import (
    RECORD_FILE,
    RunRecord,
    TextRetry,
    build_folder_name,
    read_run_record,
    start_run_status,
    write_run_record,
)
from finecomb.annotators.llm.runner import (
    ModelCall,
    ProgressCallback,
    RunOutcome,
    read_stored_run,
    run_task,
    truncate_reply,
)
from finecomb.core.duplicate_marks import merge_marks
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.model_notes import LIMIT_SETTINGS, REPLACED_KEY, RUN_KEY, MarkNote, ReplyNote, read_reply_note
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Exclusion, ModelSettings, Unit
from finecomb.core.study import Study
from finecomb.version import __version__


@dataclass(frozen=True, kw_only=True)
class ModelRun(RunOutcome):
    """The result of a run."""

    record: RunRecord
    annotators: tuple[Annotator, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    states: Mapping[str, int] = field(default_factory=dict)
    """Number of annotations by state."""
    unasked: Mapping[str, str] = field(default_factory=dict)
    """Reasons why texts have no annotation, by document ID."""

    def placement_counts(self) -> Counter[str]:
        """Count marks by placement method, and marks that are `flagged`, `unlocated` or have an `invented label`."""
        counts: Counter[str] = Counter()
        for mark in (mark for annotation in self.annotations for mark in annotation.marks):
            note = MarkNote.from_mark(mark)
            counts[note.placed or "unlocated"] += 1
            counts["flagged"] += bool(note.flags)
            counts["invented label"] += bool(note.label)
        return counts


@dataclass(frozen=True, slots=True)
class PlannedAnnotation:
    """An annotation to make: a task, a sample number, and the calls whose replies it needs."""

    task: ModelTask
    sample: int
    calls: tuple[ModelCall, ...]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All requests of a run, before anything is sent."""

    record: RunRecord
    protocol: Protocol
    tasks: tuple[ModelTask, ...]
    shots: tuple[FewShotExample, ...]
    writer: PromptWriter

    def build_requests(self, task: ModelTask, sample: int) -> list[ChatRequest]:
        """Build the requests of a task."""
        others = [shot for shot in self.shots if shot[0].id != task.document.id][: self.record.settings.shots]
        requests = self.writer.build_requests(task, sample, others)
        retry = self.record.retries.get(task.document.id)
        if retry is None:
            return list(requests)
        limit = {"max_tokens": retry.max_tokens} if retry.max_tokens else {}
        return [request.model_copy(update={"retry": retry.number, **limit}) for request in requests]

    def with_retries(self, retries: Mapping[str, TextRetry], generation: int | None = None) -> RunPlan:
        """Return the plan with repeated requests for some texts, changed so that no cached reply is used."""
        changes = {"retries": dict(retries), "generation": generation or self.record.generation}
        return replace(self, record=self.record.model_copy(update=changes))

    def iter_planned_annotations(self) -> Iterator[PlannedAnnotation]:
        """Yield each planned annotation with its calls, in document order."""
        for task, sample in itertools.product(self.tasks, range(self.record.settings.samples)):
            requests = self.build_requests(task, sample)
            calls = (
                ModelCall(task.document.id, request, request.hash_at_endpoint(self.record.host)) for request in requests
            )
            yield PlannedAnnotation(task, sample, tuple(calls))

    def iter_calls(self) -> Iterator[ModelCall]:
        """Yield each call in document order."""
        return itertools.chain.from_iterable(slot.calls for slot in self.iter_planned_annotations())

    def build_annotator(self, sample: int) -> Annotator:
        """Build the annotator record of a sample."""
        record, settings = self.record, self.record.settings
        many = settings.samples > 1
        meta = {
            "model": settings.model,
            "endpoint": record.host,
            "settings": settings.model_dump(mode="json", exclude_defaults=True, exclude={"key_env", "base_url"}),
            "prompt": record.prompt,
            "date": record.created.date().isoformat(),
            RUN_KEY: run_folder_name(record),
            **({"sample": sample + 1} if many else {}),
        }
        return Annotator(id=f"{record.name}#{sample + 1}" if many else record.name, kind="llm", meta=meta)

    def build_annotators(self) -> tuple[Annotator, ...]:
        """Build the annotator records of all samples."""
        return tuple(map(self.build_annotator, range(self.record.settings.samples)))


# --- planning ----------------------------------------------------------------------------------------------------


def plan_run(
    study: Study,
    settings: ModelSettings,
    protocol: Protocol | None = None,
    documents: Iterable[Document] | None = None,
    name: str = "",
    template: PromptTemplate | None = None,
    tasks: Iterable[ModelTask] | None = None,
) -> RunPlan:
    """Plan the requests of a run, or raise an error if the run would fail."""
    protocol = protocol or study.protocol()
    provider = find_provider(settings.model)
    template = template or PromptTemplate.for_provider(provider)
    check_question_names(protocol)
    Price.from_settings(settings)
    chosen = list(study.iter_documents() if documents is None else documents)
    if settings.chunk:
        check_chunked_protocol(protocol)
        if settings.by_segment:
            raise ParameterError(
                f"{param('chunk')} and {param('by_segment')} cannot be used together", parameter="chunk"
            )
    todo = tuple(build_tasks(study, chosen, protocol, settings.by_segment, settings.chunk) if tasks is None else tasks)
    if not todo:
        raise FinecombError(f"nothing to annotate: no {protocol.work.unit} is selected for protocol {protocol.id}")
    named = name or Path(settings.model).name.removesuffix(".gguf")
    replaced = [annotator.meta.get(REPLACED_KEY, "") for annotator in study.iter_annotators()]
    record = RunRecord(
        name=named,
        generation=1 + max(replaced.count(named), replaced.count(f"{named}#1")),
        settings=settings,
        host=provider.host(settings),
        protocol=protocol.id,
        prompt=template.hash_for_protocol(protocol),
        template=template.to_text(),
        created=datetime.now(UTC),
        version=__version__,
    )
    writer = PromptWriter(protocol, settings, template)
    run_plan = RunPlan(record, protocol, todo, tuple(_select_gold_shots_with_spare(study, protocol, settings)), writer)
    context = settings.context_tokens or provider.context_tokens
    for task in todo if context else ():
        for request in run_plan.build_requests(task, 0):
            tokens = request.estimated_prompt_tokens()
            if context and tokens + settings.max_tokens > context:
                raise FinecombError(
                    f"the prompt for document {task.document.id!r} needs about {tokens:,} tokens and the reply up to"
                    f" {settings.max_tokens:,}, but the model's context has {context:,}; use {param('by_segment')} or"
                    f" {param('chunk')}, or lower {param('max_tokens')} or {param('shots')}"
                )
    return run_plan


def _select_gold_shots_with_spare(study: Study, protocol: Protocol, settings: ModelSettings) -> list[FewShotExample]:
    """Return gold texts in random order as few-shot examples, or raise an error if there are too few."""
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
            f"{param('shots', settings.shots)} requires at least {settings.shots + 1} gold annotations with protocol "
            f"{protocol.id}, found {len(work)}; lower {param('shots')} or add gold annotations",
            parameter="shots",
        )
    order = sorted(
        work, key=lambda annotation: hashlib.sha256(f"{settings.seed}/{annotation.document}".encode()).digest()
    )
    # One more than needed, because a text is never its own example.
    return [(study.document(annotation.document), annotation) for annotation in order[: settings.shots + 1]]


RETRY_STATES = ("refused", "unreadable", "truncated", "empty", "failed")
"""States of replies that can be asked for again. Calls that failed are repeated in any case."""


def plan_retries(run_plan: RunPlan, runs: Path | None, states: Sequence[str]) -> RunPlan:
    """Return a plan that asks again about the texts whose stored replies have one of the states.

    Truncated replies get twice the maximum tokens of the last attempt.
    """
    if runs is None or not (runs / run_folder_name(run_plan.record) / RECORD_FILE).exists():
        return run_plan
    task = AnnotationTask(run_plan)
    run = read_stored_run(task, runs)
    retries = dict(task.plan.record.retries)
    for annotation in run.annotations:
        state = read_reply_note(annotation).state
        if state not in states:
            continue
        last = retries.get(annotation.document)
        limit = last.max_tokens if last else None
        if state == "truncated":
            limit = 2 * (limit or run_plan.record.settings.max_tokens)
        retries[annotation.document] = TextRetry(number=last.number + 1 if last else 1, max_tokens=limit)
    return run_plan.with_retries(retries)


# --- execution ---------------------------------------------------------------------------------------------------


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
    """Annotate a study's texts with a language model. Replies already in `runs` are not requested again.

    Without `runs`, nothing is stored on disk. `endpoint` replaces the endpoint in the settings.
    """
    run_plan = plan_run(study, settings, protocol, documents, name, template)
    return execute_plan(run_plan, runs, endpoint, watch)


AnnotationCallback = Callable[[Annotation], None]
"""Function called with each annotation as soon as its replies are complete."""


def execute_plan(
    run_plan: RunPlan,
    runs: Path | None = None,
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
    deliver: AnnotationCallback = lambda annotation: None,
) -> ModelRun:
    """Execute a plan, resuming from the journal after a crash."""
    return run_task(AnnotationTask(run_plan, deliver), runs, endpoint, watch)


def save_plan(run_plan: RunPlan, folder: Path) -> None:
    """Write the plan to the run's folder, and set the status to `running`."""
    task = AnnotationTask(run_plan)
    task.open_folder(folder)
    start_run_status(folder, task.document_ids)


def run_folder_name(record: RunRecord) -> str:
    """Return the name of a run's folder. Runs with the same requests and settings share a folder."""
    # Later settings are part of the name only if set, so that folders of earlier versions are found.
    later = {
        name for name in ("effort", "thinking_tokens", "api_version", "extra") if not getattr(record.settings, name)
    }
    settings = record.settings.model_dump(mode="json", exclude={*LIMIT_SETTINGS, *later})
    return build_folder_name(record.name, [record.name, record.host, record.protocol, record.prompt, settings])


class AnnotationTask:
    """The annotations of a plan as a task of the runner, each built as soon as all of its replies are available."""

    def __init__(self, run_plan: RunPlan, deliver: AnnotationCallback = lambda annotation: None) -> None:
        self.plan, self.deliver = run_plan, deliver
        self.settings = run_plan.record.settings
        self.provider = find_provider(self.settings.model)
        self.folder_name = run_folder_name(run_plan.record)
        self.document_ids = tuple(dict.fromkeys(task.document.id for task in run_plan.tasks))
        self._entries: dict[str, ReplyEntry] = {}
        self._annotations: dict[int, Annotation] = {}
        self._slots: list[PlannedAnnotation] = []
        self._slots_by_call: dict[str, list[int]] = {}

    def open_folder(self, folder: Path) -> None:
        """Write the run's record; a resumed run keeps its creation date and its repeated requests."""
        record, before = self.plan.record, None
        if (folder / RECORD_FILE).exists():
            before = read_run_record(folder)
            retries = {**before.retries, **record.retries}
            record = record.model_copy(update={"created": before.created, "retries": retries})
        if record != before:
            write_run_record(folder, record)
        self.plan = replace(self.plan, record=record)

    def first_calls(self) -> list[ModelCall]:
        """Return the calls of all annotations in document order."""
        self._slots = list(self.plan.iter_planned_annotations())
        for number, slot in enumerate(self._slots):
            for call in slot.calls:
                self._slots_by_call.setdefault(call.hash, []).append(number)
        return [call for slot in self._slots for call in slot.calls]

    def add_reply(self, call: ModelCall, entry: ReplyEntry) -> None:
        """Build the annotations whose last missing reply has arrived."""
        self._entries[call.hash] = entry
        for number in dict.fromkeys(self._slots_by_call[call.hash]):
            slot = self._slots[number]
            if all(needed.hash in self._entries for needed in slot.calls):
                replies = [(needed.hash, self._entries[needed.hash]) for needed in slot.calls]
                self._annotations[number] = build_annotation(self.plan, slot.task, slot.sample, replies)
                self.deliver(self._annotations[number])

    def progress_counts(self) -> tuple[int, int]:
        """Return the numbers of replies and of calls. Identical requests count as one call."""
        return len(self._entries), len(self._slots_by_call)

    def unfinished_reasons(self, outcome: RunOutcome) -> dict[str, str]:
        """Return the reasons why texts have no annotation, by document ID."""
        open_slots = (slot for number, slot in enumerate(self._slots) if number not in self._annotations)
        return {
            slot.task.document.id: next(
                (outcome.failures[call.hash] for call in slot.calls if call.hash in outcome.failures),
                outcome.stopped or "not asked yet",
            )
            for slot in open_slots
        }

    def build_run(self, outcome: RunOutcome) -> ModelRun:
        """Return the run with all complete annotations in document order."""
        annotations = tuple(self._annotations[number] for number in sorted(self._annotations))
        return ModelRun(
            **vars(outcome),
            record=self.plan.record,
            annotators=self.plan.build_annotators(),
            annotations=annotations,
            states=dict(Counter(str(read_reply_note(annotation).state) for annotation in annotations)),
            unasked=self.unfinished_reasons(outcome),
        )


# --- annotations from replies ------------------------------------------------------------------------------------


def build_annotation(
    run_plan: RunPlan, task: ModelTask, sample: int, replies: Sequence[tuple[str, ReplyEntry]]
) -> Annotation:
    """Build an annotation from the replies to a task. It is excluded with a reason if any reply could not be read."""
    annotator = run_plan.build_annotator(sample).id
    name = annotator if run_plan.record.generation == 1 else f"{annotator}~{run_plan.record.generation}"
    id = "/".join(filter(None, (name, run_plan.protocol.id, task.document.id, task.about or "")))
    parts = task.parts or (None,)
    readings = [
        build_reply_content(
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
    entries = [entry for _, entry in replies]
    if task.is_chunked:
        joined = join_chunk_marks([reading.marks for reading in readings], task.parts, task.document.text)
    else:
        joined = [mark for reading in readings for mark in reading.marks]
    marks, repeated = merge_marks(joined)
    answered = any(reading.answers or reading.unit for reading in readings)
    state = readings[bad].state if bad is not None else "marked" if marks else "answered" if answered else "no errors"
    note = ReplyNote(
        state=state,
        calls=tuple(hash for hash, _ in replies),
        flags=tuple(dict.fromkeys(flag for reading in readings for flag in reading.flags)),
        duplicates=repeated,
        malformed=sum(reading.malformed for reading in readings),
        prompt_tokens=sum(entry.reply.prompt_tokens or 0 for entry in entries),
        completion_tokens=sum(entry.reply.completion_tokens or 0 for entry in entries),
        model=entries[-1].reply.model,
        run=run_folder_name(run_plan.record),
        reply=truncate_reply(entries[bad].reply) if bad is not None else "",
    )
    excluded = None
    if bad is not None:
        where = f" (part {bad + 1} of {len(parts)})" if task.parts else ""
        excluded = Exclusion(
            by="finecomb", when=last, reason=f"reply {readings[bad].state}{where}: {readings[bad].why}"
        )
    answers = (
        dict(itertools.chain.from_iterable(reading.answers.items() for reading in readings)) if bad is None else {}
    )
    # The model saw the two texts in reverse order, so its preference is mapped back.
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
        marks=marks if bad is None else (),
        units=tuple(
            Unit(start=part.start, end=part.end, answers=reading.unit)
            for part, reading in zip(task.parts, readings if bad is None else (), strict=False)
            if not task.is_chunked
        ),
        answers=answers,
        excluded=excluded,
        submitted=last,
        seconds=round(sum(entry.seconds for _, entry in replies), 3),
        meta={"llm": note.model_dump(mode="json", exclude_defaults=True), **order},
    )


# --- audits ------------------------------------------------------------------------------------------------------


def judge_marks_with_model(
    study: Study,
    annotations: Iterable[Annotation],
    settings: ModelSettings,
    audit: Protocol,
    runs: Path | None = None,
    name: str = "",
    endpoint: Endpoint | None = None,
    watch: ProgressCallback = lambda progress: None,
) -> ModelRun | None:
    """Judge each located mark with a model, based on the text and its evidence, under the audit protocol.

    Return None if no mark is located.
    """
    documents = {document.id: document for document in study.iter_documents()}
    tasks = [
        task
        for annotation in annotations
        for task in build_mark_judgement_tasks(
            documents[annotation.document], annotation, study.protocols[annotation.protocol]
        )
    ]
    if not tasks:
        return None
    return execute_plan(plan_run(study, settings, audit, (), name, tasks=tasks), runs, endpoint, watch)
