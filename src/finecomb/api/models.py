"""Shared parts of functions that call language models: parameters, progress of calls, and prompt files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Annotated, TypeVar

from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.runner import CallProgress, ProgressCallback, RunnerTask, read_stored_run, run_task
from finecomb.api.parameters import COMMA_SEPARATED
from finecomb.api.progress import Progress
from finecomb.formats.source_files import read_text

Run = TypeVar("Run")
Numbers = Annotated[float | str | Sequence[float], COMMA_SEPARATED]
"""One number or several, also as one comma-separated string."""
MODEL_OPTIONS = (
    "base_url", "key_env", "samples", "temperature", "max_tokens", "shots", "price", "budget", "concurrency",
    "requests_per_minute", "tokens_per_minute", "timeout", "attempts", "context_tokens", "by_segment", "chunk", "seed",
    "effort", "thinking_tokens", "api_version", "extra",
)  # fmt: skip
"""Keywords that configure the calls to a model."""


def read_template(path: str | PathLike[str] | None) -> PromptTemplate | None:
    """Read a prompt template from a file; return None without a path."""
    return PromptTemplate.parse(read_text(Path(path)), str(path)) if path else None


@contextmanager
def call_progress(progress: Progress, unit: str = "calls") -> Iterator[ProgressCallback]:
    """Yield a callback for the progress of calls: a bar with cost, rate and time left, or the caller's function."""
    if progress is False:
        yield lambda state: None
        return
    if callable(progress):
        yield lambda state: progress(state.done, state.total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}{{task.fields[more]}}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("asking", total=None, more="")

        def watch(state: CallProgress) -> None:
            failed = f", {state.failed} failed" if state.failed else ""
            rate = f"{state.calls_per_second:.1f} per second"
            more = f"{failed}, ${state.cost:.4f}, {rate}, {state.seconds_left:,.0f} s left"
            bar.update(task, completed=state.done, total=state.total, more=more)

        yield watch


def run_until_interrupted(
    make_task: Callable[[], RunnerTask[Run]], runs: Path | None, progress: Progress, unit: str = "calls"
) -> tuple[Run, bool]:
    """Run a task with progress; return its results, complete or not, and whether it was interrupted.

    After an interruption, the results are read from the run's folder. Without a folder nothing is stored, and the
    interruption is raised again.
    """
    try:
        with call_progress(progress, unit) as watch:
            return run_task(make_task(), runs, watch=watch), False
    except KeyboardInterrupt:
        if runs is None:
            raise
        return read_stored_run(make_task(), runs), True
