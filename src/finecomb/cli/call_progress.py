"""The progress of calls to a language model, with what they cost so far, for every command that makes many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn

from finecomb.annotators.llm.model_calls import CallProgress, ProgressCallback
from finecomb.cli.shared import err


@contextmanager
def show_call_progress(things: str = "calls") -> Iterator[ProgressCallback]:
    """Progress with cost so far, rate and time left, shown only to people."""
    columns = (BarColumn(), TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {things}{{task.fields[more]}}"))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("asking", total=None, more="")

        def watch(progress: CallProgress) -> None:
            failed = f", {progress.failed} failed" if progress.failed else ""
            more = (
                f"{failed}, ${progress.cost:.4f}, {progress.calls_per_second:.1f} a second, "
                f"{progress.seconds_left:,.0f} s left"
            )
            bar.update(task, completed=progress.done, total=progress.total, more=more)

        yield watch
