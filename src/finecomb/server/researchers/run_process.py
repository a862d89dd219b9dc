"""A run of a language model in a process of its own, so that the server goes on answering while it waits and reads.

The question comes on standard input, in one line; when that ends, the run stops as after Ctrl-C. What comes of it is
written to standard output, one event a line, as soon as it is on disk.
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
from finecomb.annotators.llm.model_calls import CallProgress
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.run_folder import TextRetry
from finecomb.annotators.llm.runs import RunPlan, execute_plan, plan_run
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, ModelSettings, Record

_PROGRESS_SECONDS = 0.5  # seconds between two reports of progress


class RunJob(Record):
    """What a process is asked to do."""

    study: str
    """Folder with the texts and what else is needed."""
    runs: str
    """Where runs are kept."""
    name: str
    settings: ModelSettings
    protocol: str
    documents: tuple[str, ...]
    template: str = ""
    """A prompt template; ours when empty."""
    retries: dict[str, TextRetry] = {}

    def plan(self) -> RunPlan:
        """What is asked; refused with the reason when it cannot work."""
        study = formats.read(Path(self.study))
        template = PromptTemplate.parse(self.template, "the prompt") if self.template else None
        documents = [study.document(id) for id in self.documents]
        protocol = study.protocol(self.protocol)
        run_plan = plan_run(study, self.settings, protocol, documents, self.name, template)
        return run_plan.with_retries(self.retries)


class RunEvent(Record):
    """One line of what a process says."""

    annotator: Annotator | None = None
    annotation: Annotation | None = None
    done: int | None = None
    """Calls answered so far, of `total`; `cost` and `seconds_left` come with them."""
    total: int = 0
    cost: float = 0.0
    seconds_left: float | None = None
    error: str = ""
    """Why it cannot go on, in words for researchers."""
    crash: str = ""
    """A mistake of ours, for the log."""


class EventWriter:
    """Writes events to what was standard output; the runtime of a local model may write there past Python."""

    def __init__(self) -> None:
        self._out: IO[bytes] = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._last = 0.0

    def write(self, event: RunEvent) -> None:
        """Send one event."""
        self._out.write(to_json(event.model_dump(mode="json", exclude_defaults=True)) + b"\n")
        self._out.flush()

    def report_progress(self, progress: CallProgress) -> None:
        """Say how far it is, now and then."""
        if time.monotonic() - self._last < _PROGRESS_SECONDS and progress.done + progress.failed < progress.total:
            return
        self._last = time.monotonic()
        left = progress.seconds_left
        known = None if left == float("inf") else left
        self.write(RunEvent(done=progress.done, total=progress.total, cost=progress.cost, seconds_left=known))


def _interrupt_at_the_end_of_input() -> None:
    """Whoever started the run has closed its end, or is gone."""
    sys.stdin.buffer.read()
    main_thread = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:  # Windows
        signal.raise_signal(signal.SIGINT)


def main() -> None:
    """Carry out the job on standard input."""
    events = EventWriter()
    job = RunJob.model_validate_json(sys.stdin.buffer.readline())
    threading.Thread(target=_interrupt_at_the_end_of_input, daemon=True).start()
    try:
        run_plan = job.plan()
        for sample in range(job.settings.samples):
            events.write(RunEvent(annotator=run_plan.annotator(sample)))
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
            RunEvent(error="the run failed on our side; the server's log says how", crash=traceback.format_exc())
        )
    os._exit(0)  # a thread may still wait for input or for a local model


if __name__ == "__main__":
    main()
