"""What public functions that ask language models share: numbers, progress of calls, and prompts from files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Annotated

from finecomb.annotators.llm.model_calls import CallProgress, ProgressCallback
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.api.parameters import COMMA_SEPARATED
from finecomb.api.progress import Progress
from finecomb.formats.source_files import read_text

Numbers = Annotated[float | str | Sequence[float], COMMA_SEPARATED]
"""One number or several; one string may hold several with commas between them."""
MODEL_OPTIONS = (
    "base_url", "key_env", "samples", "temperature", "max_tokens", "shots", "price", "budget", "concurrency",
    "requests_per_minute", "tokens_per_minute", "timeout", "attempts", "context_tokens", "by_segment", "seed",
)  # fmt: skip
"""Keywords that say how a model is asked."""


def read_template(path: str | PathLike[str] | None) -> PromptTemplate | None:
    """Return the prompt template in a file, or None where no file is named."""
    return PromptTemplate.parse(read_text(Path(path)), str(path)) if path else None


@contextmanager
def call_progress(progress: Progress, unit: str = "calls") -> Iterator[ProgressCallback]:
    """Yield a function that is told how far calls are: a bar with cost, rate and time left, or a user's function."""
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
            more = (
                f"{failed}, ${state.cost:.4f}, {state.calls_per_second:.1f} a second, {state.seconds_left:,.0f} s left"
            )
            bar.update(task, completed=state.done, total=state.total, more=more)

        yield watch
