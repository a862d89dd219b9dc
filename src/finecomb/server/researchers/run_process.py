"""Language model run in a separate process, so that the server stays responsive.

The job is read from standard input, as one line. The end of the input stops the run, as Ctrl-C does. Results are
written to standard output as soon as they are on disk, one event per line.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO

from pydantic_core import to_json

from finecomb import formats
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.run_folder import TextRetry
from finecomb.annotators.llm.runner import CallProgress
from finecomb.annotators.llm.runs import execute_plan, plan_run
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, ModelSettings, Record

_PROGRESS_SECONDS = 0.5  # interval between progress reports


class RunJob(Record):
    """Job that the server sends to a run process."""

    study: str
    """Folder with the texts and other input files."""
    runs: str
    """Folder in which the runs are stored."""
    name: str
    settings: ModelSettings
    protocol: str
    documents: tuple[str, ...]
    template: str = ""
    """Prompt template; empty for the default template."""
    retries: dict[str, TextRetry] = {}
    generation: int = 1


class RunEvent(Record):
    """Event of a run process: one line of its output."""

    annotator: Annotator | None = None
    annotation: Annotation | None = None
    done: int | None = None
    """Number of completed calls out of `total`, reported together with `cost` and `seconds_left`."""
    total: int = 0
    cost: float = 0.0
    seconds_left: float | None = None
    error: str = ""
    """Reason why the run cannot continue, shown to researchers."""
    crash: str = ""
    """Traceback of an internal error, written to the log."""


class EventWriter:
    """Writer of events to a copy of standard output, so that a local model's runtime cannot write between them."""

    def __init__(self) -> None:
        self._out: IO[bytes] = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._last = 0.0

    def write(self, event: RunEvent) -> None:
        """Write one event."""
        self._out.write(to_json(event.model_dump(mode="json", exclude_defaults=True)) + b"\n")
        self._out.flush()

    def report_progress(self, progress: CallProgress) -> None:
        """Write the progress at most once per interval, and at the end."""
        if time.monotonic() - self._last < _PROGRESS_SECONDS and progress.done + progress.failed < progress.total:
            return
        self._last = time.monotonic()
        left = progress.seconds_left
        known = None if left == float("inf") else left
        self.write(RunEvent(done=progress.done, total=progress.total, cost=progress.cost, seconds_left=known))


def _interrupt_at_end_of_input() -> None:
    """Interrupt the run when the server closes the standard input or ends."""
    sys.stdin.buffer.read()
    main_thread = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:  # Windows
        signal.raise_signal(signal.SIGINT)


def main() -> None:
    """Run the job that is read from standard input."""
    events = EventWriter()
    job = RunJob.model_validate_json(sys.stdin.buffer.readline())
    threading.Thread(target=_interrupt_at_end_of_input, daemon=True).start()
    try:
        study = formats.read(Path(job.study))
        template = PromptTemplate.parse(job.template, "the prompt") if job.template else None
        documents = [study.document(id) for id in job.documents]
        protocol = study.protocol(job.protocol)
        run_plan = plan_run(study, job.settings, protocol, documents, job.name, template)
        run_plan = run_plan.with_retries(job.retries, job.generation)
        for sample in range(job.settings.samples):
            events.write(RunEvent(annotator=run_plan.build_annotator(sample)))
        execute_plan(
            run_plan,
            Path(job.runs),
            watch=events.report_progress,
            deliver=lambda annotation: events.write(RunEvent(annotation=annotation)),
        )
    except FinecombError as error:
        events.write(RunEvent(error=str(error)))
    except KeyboardInterrupt:
        pass
    except Exception:
        events.write(
            RunEvent(
                error="the run failed because of an internal error; see the server's log", crash=traceback.format_exc()
            )
        )
    os._exit(0)  # a thread may still be waiting for input or for a local model


if __name__ == "__main__":
    main()
