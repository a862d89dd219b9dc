"""Runs of language models that researchers start from their page: each in a process of its own, outside the event loop.

What comes in is written to the study as it comes. Where several workers serve a study, each knows the runs that it has
started itself, and learns of the others from their folders: who is at work there holds the lock. Keys stay in the
environment: a run names a variable, the server must have been told that it may be used, and only the process of the run
reads it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import polars as pl
from pydantic_core import to_json

from finecomb import formats
from finecomb.annotators.llm.local_models import PACKAGES, install_hint, is_local
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.run_folder import (
    RUNS_FOLDER,
    RunRecord,
    TextRetry,
    clear_stop_request,
    is_locked,
    is_stop_requested,
    read_record,
    request_stop,
    run_folders,
    write_error,
)
from finecomb.annotators.llm.runs import RunPlan, name_clash, plan_run, run_folder_name, save_plan
from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.collection.database.store import Store
from finecomb.collection.machine_work_storage import put_machine_work
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.model_notes import read_reply_note
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, ModelSettings
from finecomb.core.study import Study, StudyItem
from finecomb.server.researchers.run_process import RunEvent, RunJob
from finecomb.server.researchers.run_schema import NewRun

log = logging.getLogger(__name__)
_BATCH_SECONDS = 0.5
_STOP_TIMEOUT = 20.0  # seconds until a run that was asked to stop is ended


def default_runs_folder(store: Store) -> Path | None:
    """Where the runs of a served study are kept: beside its database; None for one that is not in a file."""
    file = store.database.place.file
    if file is None:
        return None
    return file.parent / RUNS_FOLDER if file.name == DATABASE_FILENAME else file.with_name(f"{file.name}.{RUNS_FOLDER}")


@dataclass
class ActiveRun:
    """A run that goes on in its process."""

    process: subprocess.Popen[bytes]
    study: Path
    """A folder with what the process reads."""
    done: int = 0
    total: int = 0
    cost: float = 0.0
    seconds_left: float | None = None
    stopping: bool = False
    annotations: dict[str, Annotation] = field(default_factory=dict)
    """What has come in, by id."""

    def close(self) -> None:
        """Wait for the end of the process and let go of its pipes."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


class RunManager:
    """The runs of one study: those on disk, and those that this server has started."""

    def __init__(
        self,
        store: Store,
        runs: Path | None,
        key_envs: Iterable[str] = (),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self._runs, self.key_envs, self._changed = store, runs, frozenset(key_envs), changed
        self.active: dict[str, ActiveRun] = {}
        """Runs that this process has started and follows, by id."""
        self._lock = threading.Lock()
        self._work: dict[tuple[str, ...], tuple[Study, Sequence[Annotation]]] = {}

    def cached_annotations(self, study: Study, record: RunRecord) -> Sequence[Annotation]:
        """The annotations of a run's annotators; read once for each moment of the study."""
        key = (record.protocol, *run_annotator_ids(record))
        study_and_work = self._work.get(key)
        if study_and_work is None or study_and_work[0] is not study:
            study_and_work = self._work[key] = (study, annotations_of_run(study, record))
        return study_and_work[1]

    @property
    def runs_folder(self) -> Path:
        """Where runs are kept."""
        if self._runs is None:
            raise FinecombError("runs are kept in a folder: serve the study's folder, with --db for its work")
        return self._runs

    # --- what is asked -------------------------------------------------------------------------------------------

    def model_settings(self, new: NewRun) -> ModelSettings:
        """How the model is asked; refused when the study does not know it."""
        models = self.store.head.settings.models
        base = models.get(new.model)
        if base is None and is_local(new.model) and new.model.removeprefix("local:") in PACKAGES:
            base = ModelSettings(model=new.model)
        if base is None:
            raise FinecombError(f"the study has no model {new.model!r}{did_you_mean(new.model, models)}; add it first")
        budget = new.budget if base.price else None
        update = {"samples": new.samples, "max_tokens": new.max_tokens, "budget": budget}
        return ModelSettings.model_validate(base.model_dump() | update)

    def model_problem(self, settings: ModelSettings) -> str:
        """Why a model cannot be asked from this server; empty when it can."""
        if is_local(settings.model):
            hint = install_hint(settings.model)
            return f"it is not installed here: {hint}" if hint else ""
        if settings.key_env and settings.key_env not in self.key_envs:
            return f"this server may not use {settings.key_env}; start it with --key-env {settings.key_env}"
        if settings.key_env and not os.environ.get(settings.key_env, "").strip():
            return f"the environment variable {settings.key_env} is not set where the server runs"
        return ""

    def plan_run(self, study: Study, new: NewRun) -> RunPlan:
        """What a run would ask; refused with the reason when it cannot work."""
        protocol = study.protocol(new.protocol) if new.protocol else self.store.head.protocol
        template = PromptTemplate.parse(new.template, "the prompt") if new.template else None
        name = new.name or new.model.removeprefix("local:")
        return plan_run(study, self.model_settings(new), protocol, _select_documents(study, new), name, template)

    # --- starting and stopping -----------------------------------------------------------------------------------

    def start(self, study: Study, new: NewRun) -> str:
        """Start a run or go on with it; returns its id."""
        run_plan = self.plan_run(study, new)
        if problem := self.model_problem(run_plan.record.settings) or name_clash(study, run_plan):
            raise FinecombError(problem)
        return self._start_process(study, run_plan, new.template)

    def retry_text(self, study: Study, id: str, document: str, max_tokens: int | None) -> None:
        """Put one text to the model of a run once more."""
        record = self.run_record(id)
        before = record.retries.get(document)
        retry = TextRetry(number=(before.number if before else 0) + 1, max_tokens=max_tokens)
        protocol = study.protocol(record.protocol)
        template = PromptTemplate.parse(record.template, "the prompt")
        run_plan = plan_run(study, record.settings, protocol, [study.document(document)], record.name, template)
        run_plan = run_plan.with_retries({document: retry})
        if problem := self.model_problem(record.settings):
            raise FinecombError(problem)
        self._start_process(study, run_plan, record.template)

    def run_record(self, id: str) -> RunRecord:
        """What a run is."""
        names = [folder.name for folder in run_folders(self.runs_folder)]
        if id not in names:
            raise FinecombError(f"no run is called {id!r}{did_you_mean(id, names)}")
        return read_record(self.runs_folder / id)

    def _start_process(self, study: Study, run_plan: RunPlan, template: str) -> str:
        id = run_folder_name(run_plan.record)
        with self._lock:
            if id in self.active or is_locked(self.runs_folder / id):
                raise FinecombError("this run is at work already; stop it first")
            write_error(self.runs_folder / id, "")
            clear_stop_request(self.runs_folder / id)
            save_plan(run_plan, self.runs_folder / id)
            folder = Path(tempfile.mkdtemp(prefix="finecomb-run-"))
            formats.save(list(_items_for_process(study, run_plan)), folder / "study")
            job = RunJob(
                study=str(folder / "study"),
                runs=str(self.runs_folder.resolve()),
                name=run_plan.record.name,
                settings=run_plan.record.settings,
                protocol=run_plan.protocol.id,
                documents=tuple(dict.fromkeys(task.document.id for task in run_plan.tasks)),
                template=template,
                retries=dict(run_plan.record.retries),
            )
            active = ActiveRun(_spawn_run_process(job), folder)
            self.active[id] = active
        known = _stored_calls_by_annotation(study, run_plan)
        threading.Thread(target=self._follow_events, args=(id, active, known), daemon=True).start()
        threading.Thread(target=self._watch_for_stop_request, args=(id, active), daemon=True).start()
        return id

    def stop(self, id: str) -> None:
        """Ask a run to stop; it ends after the calls that are under way were given up, and keeps all it has got."""
        active = self.active.get(id)
        if active is None:
            self._request_stop(id)
            return
        active.stopping = True
        if active.process.stdin:
            active.process.stdin.close()
        threading.Timer(_STOP_TIMEOUT, active.process.kill).start()

    def _request_stop(self, id: str) -> None:
        """Leave the wish for the worker that follows a run."""
        self.run_record(id)
        if not is_locked(self.runs_folder / id):
            raise FinecombError("this run is not at work")
        request_stop(self.runs_folder / id)

    def _watch_for_stop_request(self, id: str, active: ActiveRun) -> None:
        """Stop a run when somebody wishes so through another worker."""
        while active.process.poll() is None and not active.stopping:
            if is_stop_requested(self.runs_folder / id):
                with contextlib.suppress(FinecombError):  # it has just ended by itself
                    self.stop(id)
                return
            time.sleep(_BATCH_SECONDS)

    def close(self) -> None:
        """Stop everything: the server ends."""
        for active in list(self.active.values()):
            active.process.kill()

    # --- following a process -------------------------------------------------------------------------------------

    def _follow_events(self, id: str, active: ActiveRun, known: dict[str, tuple[str, ...]]) -> None:
        """Write down what a process says, until it ends."""
        batch = RunEventBatch(self.store, known)
        try:
            assert active.process.stdout is not None
            for line in active.process.stdout:
                self._apply_event(id, active, batch, RunEvent.model_validate_json(line))
            batch.write()
        except Exception as error:
            log.exception("run %s failed", id)
            write_error(
                self.runs_folder / id, str(error) if isinstance(error, FinecombError) else "the run failed on our side"
            )
            active.process.kill()
        finally:
            active.close()
            shutil.rmtree(active.study, ignore_errors=True)
            self._changed()
            del self.active[id]

    def _apply_event(self, id: str, active: ActiveRun, batch: RunEventBatch, event: RunEvent) -> None:
        if event.annotation:
            active.annotations[event.annotation.id] = event.annotation
        if event.done is not None:
            active.done, active.total, active.cost = event.done, event.total, event.cost
            active.seconds_left = event.seconds_left
        if event.error and not is_locked(
            self.runs_folder / id
        ):  # else another worker has started it at the same moment
            write_error(self.runs_folder / id, event.error)
        if event.crash:
            log.error("run %s failed: %s", id, event.crash)
        batch.add(event)


class RunEventBatch:
    """What a process has said since it was last written to the study."""

    def __init__(self, store: Store, known: dict[str, tuple[str, ...]]) -> None:
        self._store, self._known = store, known
        self._annotators: list[Annotator] = []
        self._annotations: list[Annotation] = []
        self._written = time.monotonic()

    def add(self, event: RunEvent) -> None:
        """Take an event; what has waited for a moment is written."""
        if event.annotator:
            self._annotators.append(event.annotator)
        annotation = event.annotation
        if annotation and self._known.get(annotation.id) != read_reply_note(annotation).calls:
            self._annotations.append(annotation)
        if time.monotonic() - self._written > _BATCH_SECONDS:
            self.write()

    def write(self) -> None:
        """Write all that waits."""
        if self._annotators or self._annotations:
            self._store.change_study_sync(put_machine_work, tuple(self._annotators), tuple(self._annotations))
        self._annotators, self._annotations, self._written = [], [], time.monotonic()


def _spawn_run_process(job: RunJob) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "finecomb.server.researchers.run_process"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    stdin: IO[bytes] = process.stdin
    stdin.write(to_json(job.model_dump(mode="json")) + b"\n")
    stdin.flush()
    return process


def _select_documents(study: Study, new: NewRun) -> list[Document]:
    if new.document is not None:
        return [study.document(new.document)]
    return list(study.iter_documents_head(new.first) if new.first else study.iter_documents())


def _items_for_process(study: Study, run_plan: RunPlan) -> Iterable[StudyItem]:
    """What a process must read to make the same plan: the texts, and others' work where it is shown or judged."""
    protocol, settings = run_plan.protocol, run_plan.record.settings
    yield study.settings.model_copy(update={"protocols": tuple(study.protocols)})
    yield from study.protocols.values()
    judged = protocol.work.unit in ("mark", "annotation")
    wanted = {task.document.id: task.document for task in run_plan.tasks}
    wanted |= {document.id: document for document, _ in run_plan.shots}
    yield from study.iter_documents() if judged or settings.shots else wanted.values()
    if judged or settings.shots:
        yield from study.iter_annotators()
        yield from study.iter_annotations()


def _stored_calls_by_annotation(study: Study, run_plan: RunPlan) -> dict[str, tuple[str, ...]]:
    """The calls behind what the study has already, which need not be written again."""
    return {
        annotation.id: read_reply_note(annotation).calls for annotation in annotations_of_run(study, run_plan.record)
    }


def run_annotator_ids(record: RunRecord) -> tuple[str, ...]:
    """The annotators of a run."""
    if record.settings.samples == 1:
        return (record.name,)
    return tuple(f"{record.name}#{number + 1}" for number in range(record.settings.samples))


def annotations_of_run(study: Study, record: RunRecord) -> Sequence[Annotation]:
    """The annotations of a run's annotators under its protocol."""
    ids = list(run_annotator_ids(record))
    chosen = study.filter_annotations(pl.col("annotator").is_in(ids) & (pl.col("protocol") == record.protocol))
    return [annotation for annotation in chosen.iter_annotations() if "llm" in annotation.meta]


def protocol_ids_current_first(first: Protocol, study: Study) -> tuple[str, ...]:
    """The protocols of a study, the one in force first."""
    return tuple(dict.fromkeys([first.id, *study.protocols]))
