"""Language model runs started by researchers, each in its own process.

Results are written to the study as they arrive. When several server processes serve a study, each knows the runs
that it has started, and recognises the other runs by the lock in their folders. API keys stay in the environment. A run
names an environment variable that the server allows, and only the process of the run reads it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from pydantic_core import to_json

from finecomb import formats
from finecomb.annotators.llm.endpoint_consent import describe_endpoint, is_endpoint_confirmed
from finecomb.annotators.llm.local_models import PACKAGE_BY_MODEL, is_local_model, local_model_install_hint
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.providers import find_provider
from finecomb.annotators.llm.run_folder import (
    RUNS_FOLDER,
    STOP_FILE,
    RunRecord,
    TextRetry,
    is_run_locked,
    list_run_folders,
    read_run_record,
    write_run_error,
)
from finecomb.annotators.llm.run_identity import annotator_name_clash
from finecomb.annotators.llm.runs import RunPlan, plan_run, run_folder_name, save_plan
from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.collection.database.store import Store
from finecomb.collection.machine_work_storage import upsert_machine_work
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.model_notes import read_reply_note
from finecomb.core.records import Annotation, Annotator, ModelSettings
from finecomb.core.study import Study, StudyItem
from finecomb.engine.isolation import isolated_python
from finecomb.server.researchers.run_process import RunEvent, RunJob
from finecomb.server.researchers.run_schema import NewRun

log = logging.getLogger(__name__)
_MAX_BATCH_SECONDS = 0.5
_STOP_TIMEOUT_SECONDS = 20.0  # seconds after which a run that does not stop on request is killed


def default_runs_folder(store: Store) -> Path | None:
    """Return the folder for the runs of a served study, next to its database file, or None when it has no file."""
    file = store.database.place.file
    if file is None:
        return None
    return file.parent / RUNS_FOLDER if file.name == DATABASE_FILENAME else file.with_name(f"{file.name}.{RUNS_FOLDER}")


@dataclass
class ActiveRun:
    """Run in progress, and its process."""

    process: subprocess.Popen[bytes]
    study: Path
    """Folder with the input files of the process."""
    done: int = 0
    total: int = 0
    cost: float = 0.0
    seconds_left: float | None = None
    stopping: bool = False
    annotations: dict[str, Annotation] = field(default_factory=dict)
    """Annotations received from the process so far, by ID."""

    def close(self) -> None:
        """Wait for the process to end, and close its pipes."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


class RunManager:
    """Runs of one study: those on disk, and those started by this server process."""

    def __init__(
        self,
        store: Store,
        runs: Path | None,
        key_envs: Iterable[str] = (),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self._runs, self.key_envs, self._changed = store, runs, frozenset(key_envs), changed
        self.active: dict[str, ActiveRun] = {}
        """Runs started by this process, by ID."""
        self._lock = threading.Lock()
        self._work: dict[tuple[str, ...], tuple[Study, Sequence[Annotation]]] = {}

    def get_run_annotations(self, study: Study, record: RunRecord) -> Sequence[Annotation]:
        """Return the annotations of a run, cached until the study snapshot changes."""
        key = (record.protocol, *run_annotator_ids(record))
        study_and_work = self._work.get(key)
        if study_and_work is None or study_and_work[0] is not study:
            study_and_work = self._work[key] = (study, annotations_of_run(study, record))
        return study_and_work[1]

    @property
    def runs_folder(self) -> Path:
        """Folder in which the runs are stored."""
        if self._runs is None:
            raise FinecombError(
                "runs are stored in the study's folder; serve the folder, with --db for a PostgreSQL database"
            )
        return self._runs

    # --- plan ----------------------------------------------------------------------------------------------------

    def find_model_settings(self, new: NewRun) -> ModelSettings:
        """Return the settings of the model for a new run, or raise an error when the study does not have this model."""
        models = self.store.head.settings.models
        base = models.get(new.model)
        if base is None and is_local_model(new.model) and new.model.removeprefix("local:") in PACKAGE_BY_MODEL:
            base = ModelSettings(model=new.model)
        if base is None:
            raise FinecombError(
                f"unknown model {new.model!r}{did_you_mean(new.model, models) or '; add it to the study first'}"
            )
        budget = new.budget if base.price else None
        update = {"samples": new.samples, "max_tokens": new.max_tokens, "budget": budget}
        return ModelSettings.model_validate(base.model_dump() | update)

    def find_model_problem(self, settings: ModelSettings) -> str:
        """Return the reason why this server cannot use a model, or an empty string when it can."""
        if is_local_model(settings.model):
            hint = local_model_install_hint(settings.model)
            return f"the model is not installed on the server: {hint}" if hint else ""
        key_env = settings.key_env or find_provider(settings.model).key_env
        if key_env and key_env not in self.key_envs:
            return f"this server may not use {key_env}; restart it with --key-env {key_env}"
        if key_env and not os.environ.get(key_env, "").strip():
            return f"the environment variable {key_env} is not set on the server"
        # Addresses of imported studies and of run folders are not used before an owner has saved them here.
        if settings.base_url and not is_endpoint_confirmed(settings, str(self.store.database.place)):
            return (
                f"the study wants to send its texts {describe_endpoint(settings)}; an owner must confirm this address "
                "by saving the model again on this page"
            )
        return ""

    def plan_run(self, study: Study, new: NewRun) -> RunPlan:
        """Plan a run, or raise an error with the reason why it is not possible."""
        protocol = study.protocol(new.protocol) if new.protocol else self.store.head.protocol
        template = PromptTemplate.parse(new.template, "the prompt") if new.template else None
        name = new.name or new.model.removeprefix("local:")
        if new.document is not None:
            documents = [study.document(new.document)]
        else:
            documents = list(study.iter_first_documents(new.first) if new.first else study.iter_documents())
        return plan_run(study, self.find_model_settings(new), protocol, documents, name, template)

    # --- start and stop ------------------------------------------------------------------------------------------

    def start_run(self, study: Study, new: NewRun) -> str:
        """Start or resume a run, and return its ID."""
        run_plan = self.plan_run(study, new)
        if problem := self.find_model_problem(run_plan.record.settings) or annotator_name_clash(study, run_plan):
            raise FinecombError(problem)
        return self._start_process(study, run_plan, new.template)

    def retry_text(self, study: Study, id: str, document: str, max_tokens: int | None) -> None:
        """Send one text to a run's model again."""
        record = self.read_run_record(id)
        before = record.retries.get(document)
        retry = TextRetry(number=(before.number if before else 0) + 1, max_tokens=max_tokens)
        protocol = study.protocol(record.protocol)
        template = PromptTemplate.parse(record.template, "the prompt")
        run_plan = plan_run(study, record.settings, protocol, [study.document(document)], record.name, template)
        run_plan = run_plan.with_retries({document: retry})
        if problem := self.find_model_problem(record.settings):
            raise FinecombError(problem)
        self._start_process(study, run_plan, record.template)

    def read_run_record(self, id: str) -> RunRecord:
        """Return the record of a run, or raise an error when the ID is unknown."""
        names = [folder.name for folder in list_run_folders(self.runs_folder)]
        if id not in names:
            raise FinecombError(f"unknown run {id!r}{did_you_mean(id, names)}")
        return read_run_record(self.runs_folder / id)

    def _start_process(self, study: Study, run_plan: RunPlan, template: str) -> str:
        id = run_folder_name(run_plan.record)
        with self._lock:
            if id in self.active or is_run_locked(self.runs_folder / id):
                raise FinecombError("this run is already in progress; stop it first")
            write_run_error(self.runs_folder / id, "")
            (self.runs_folder / id / STOP_FILE).unlink(missing_ok=True)
            save_plan(run_plan, self.runs_folder / id)
            folder = Path(tempfile.mkdtemp(prefix="finecomb-run-"))
            formats.save_records(list(_records_for_process(study, run_plan)), folder / "study")
            job = RunJob(
                study=str(folder / "study"),
                runs=str(self.runs_folder.resolve()),
                name=run_plan.record.name,
                settings=run_plan.record.settings,
                protocol=run_plan.protocol.id,
                documents=tuple(dict.fromkeys(task.document.id for task in run_plan.tasks)),
                template=template,
                retries=dict(run_plan.record.retries),
                generation=run_plan.record.generation,
            )
            command = isolated_python("finecomb.server.researchers.run_process")
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            assert process.stdin is not None
            process.stdin.write(to_json(job.model_dump(mode="json")) + b"\n")
            process.stdin.flush()
            active = ActiveRun(process, folder)
            self.active[id] = active
        # Annotations that are already stored with the same calls need not be written again.
        stored = annotations_of_run(study, run_plan.record)
        known = {annotation.id: read_reply_note(annotation).calls for annotation in stored}
        threading.Thread(target=self._follow_events, args=(id, active, known), daemon=True).start()
        threading.Thread(target=self._watch_for_stop_request, args=(id, active), daemon=True).start()
        return id

    def stop_run(self, id: str) -> None:
        """Ask a run to stop. The run cancels the current calls and keeps all results."""
        active = self.active.get(id)
        if active is None:
            self.read_run_record(id)
            if not is_run_locked(self.runs_folder / id):
                raise FinecombError("this run is not in progress")
            (self.runs_folder / id / STOP_FILE).touch()  # for the server process that started the run
            return
        active.stopping = True
        if active.process.stdin:
            active.process.stdin.close()
        threading.Timer(_STOP_TIMEOUT_SECONDS, active.process.kill).start()

    def _watch_for_stop_request(self, id: str, active: ActiveRun) -> None:
        """Stop a run when another server process has left a stop request."""
        while active.process.poll() is None and not active.stopping:
            if (self.runs_folder / id / STOP_FILE).exists():
                with contextlib.suppress(FinecombError):  # the run has just ended by itself
                    self.stop_run(id)
                return
            time.sleep(_MAX_BATCH_SECONDS)

    def close(self) -> None:
        """Kill all runs of this process, because the server is stopping."""
        for active in list(self.active.values()):
            active.process.kill()

    # --- events --------------------------------------------------------------------------------------------------

    def _follow_events(self, id: str, active: ActiveRun, known: dict[str, tuple[str, ...]]) -> None:
        """Apply the events of a run process until it ends."""
        batch = RunEventBatch(self.store, known)
        try:
            assert active.process.stdout is not None
            for line in active.process.stdout:
                event = RunEvent.model_validate_json(line)
                if event.annotation:
                    active.annotations[event.annotation.id] = event.annotation
                if event.done is not None:
                    active.done, active.total, active.cost = event.done, event.total, event.cost
                    active.seconds_left = event.seconds_left
                # Another server process started the same run at the same moment and holds its lock.
                if event.error and not is_run_locked(self.runs_folder / id):
                    write_run_error(self.runs_folder / id, event.error)
                if event.crash:
                    log.error("run %s failed: %s", id, event.crash)
                batch.add(event)
            batch.write()
        except Exception as error:
            log.exception("run %s failed", id)
            write_run_error(
                self.runs_folder / id,
                str(error)
                if isinstance(error, FinecombError)
                else "the run failed because of an internal error; see the server's log",
            )
            active.process.kill()
        finally:
            active.close()
            shutil.rmtree(active.study, ignore_errors=True)
            self._changed()
            del self.active[id]


class RunEventBatch:
    """Events of a run process that have not been written to the study yet."""

    def __init__(self, store: Store, known: dict[str, tuple[str, ...]]) -> None:
        self._store, self._known = store, known
        self._annotators: list[Annotator] = []
        self._annotations: list[Annotation] = []
        self._written = time.monotonic()

    def add(self, event: RunEvent) -> None:
        """Add an event. Write the batch when it is old enough."""
        if event.annotator:
            self._annotators.append(event.annotator)
        annotation = event.annotation
        if annotation and self._known.get(annotation.id) != read_reply_note(annotation).calls:
            self._annotations.append(annotation)
        if time.monotonic() - self._written > _MAX_BATCH_SECONDS:
            self.write()

    def write(self) -> None:
        """Write all pending events to the study."""
        if self._annotators or self._annotations:
            self._store.run_study_change_sync(upsert_machine_work, tuple(self._annotators), tuple(self._annotations))
        self._annotators, self._annotations, self._written = [], [], time.monotonic()


def _records_for_process(study: Study, run_plan: RunPlan) -> Iterable[StudyItem]:
    """Yield the records that a run process needs: the texts, and the work of others if it is shown or judged."""
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


def run_annotator_ids(record: RunRecord) -> tuple[str, ...]:
    """Return the IDs of a run's annotators, one per sample."""
    if record.settings.samples == 1:
        return (record.name,)
    return tuple(f"{record.name}#{number + 1}" for number in range(record.settings.samples))


def annotations_of_run(study: Study, record: RunRecord) -> Sequence[Annotation]:
    """Return the annotations that a run's annotators made under its protocol."""
    ids = list(run_annotator_ids(record))
    chosen = study.filter_annotations(pl.col("annotator").is_in(ids) & (pl.col("protocol") == record.protocol))
    return [annotation for annotation in chosen.iter_annotations() if "llm" in annotation.meta]
