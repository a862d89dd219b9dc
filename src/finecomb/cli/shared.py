"""Parts that commands share: the app, consoles, common options, and printing of progress, notes and results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from finecomb import formats
from finecomb.cli.commands import app as app
from finecomb.cli.output import OUTPUT
from finecomb.core.errors import format_as_flag
from finecomb.core.notes import ParameterNote
from finecomb.core.palette import label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.results import Finding, Findings, Result
from finecomb.core.study import Study, StudyItem
from finecomb.formats.atomic_file import write_file_atomically
from finecomb.reporting.tables import FORMAT_BY_SUFFIX, Row, finding_rows, format_json_tables, format_table, print_rows

_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160  # a pipe has no window width
out = Console(width=_WIDTH, highlight=False, markup=False, emoji=False)  # texts may contain [brackets] and :words:
err = Console(stderr=True, highlight=False, markup=False, emoji=False)

StudyPath = Annotated[
    Path,
    typer.Argument(help="Study folder, or a file in any format that `finecomb formats` lists.", show_default=False),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        help="Input format, as listed by `finecomb formats` (default: guessed from the file).",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
ProtocolName = Annotated[
    str,
    typer.Option(
        "--protocol",
        "-p",
        help="Name of a shipped protocol (see `finecomb protocols`), or a YAML file.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="Input column of a field, as `FIELD=COLUMN`, such as `text=Body`; may be repeated.",
        show_default=False,
    ),
]


def track_records(items: Iterable[StudyItem]) -> Iterator[StudyItem]:
    """Yield records unchanged, and show a counter on standard error if it is a terminal."""
    if not err.is_terminal:
        yield from items
        return
    from rich.progress import (
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )  # imported only when the counter is shown

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} records"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("reading")
        for item in items:
            progress.advance(task)
            yield item


def read(path: Path, from_: str = "") -> Study:
    """Read a study in any format, with progress, and print the reader's notes."""
    study = formats.read(path, from_, watch=track_records)
    for note in study.notes:
        print_note(note)
    return study


def print_note(line: str) -> None:
    """Print a note on standard error."""
    err.print(Text(f"note: {with_flags(line)}", "dim"), soft_wrap=True)


def with_flags(note: str) -> str:
    """Return a note with its parameters formatted as flags."""
    return note.format_text(format_as_flag) if isinstance(note, ParameterNote) else note


def print_notes(lines: Iterable[str]) -> None:
    """Print notes on standard error."""
    for line in lines:
        print_note(line)


def print_outcome(path: Path, words: str) -> None:
    """Print the one-line result of a command that wrote or checked a file; the line is never wrapped."""
    out.print(f"{path}: {words}", soft_wrap=True)


def format_count(number: int, thing: str) -> str:
    """Format a count with its noun: `1 text`, `2 texts`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def print_table(
    rows: Sequence[Row],
    title: str = "",
    empty: str = "No rows.",
    digits: int = 3,
    flat: Sequence[Row] = (),
    paper: Sequence[Row] = (),
) -> None:
    """Print a table in the format given by `--format`, and write it to the file given by `--table-out`.

    `rows` are printed in a terminal. `flat` are the rows for CSV and JSON, one number per cell, and `paper` those for
    Markdown and LaTeX, for example with intervals; both default to `rows`.
    """
    by_format = {"csv": flat, "json": flat, "markdown": paper, "latex": paper}
    write_table_to_requested_file(rows, title, digits, flat, paper)
    if OUTPUT.format == "table" or not rows:
        print_rows(out, rows, title, empty, digits)
    else:
        typer.echo(format_table(by_format[OUTPUT.format] or rows, OUTPUT.format, title, digits))


def write_table_to_requested_file(
    rows: Sequence[Row], title: str = "", digits: int = 3, flat: Sequence[Row] = (), paper: Sequence[Row] = ()
) -> None:
    """Write a table to the file given by `--table-out`, if any; `flat` and `paper` are as in `print_table`."""
    if OUTPUT.file is None or not rows:
        return
    path = OUTPUT.next_file()
    format = FORMAT_BY_SUFFIX[path.suffix]
    written = {"csv": flat, "json": flat, "markdown": paper, "latex": paper}[format] or rows
    write_file_atomically(path, format_table(written, format, title, digits) + "\n")
    print_note(f"{path}: {format_count(len(written), 'row')} written")


def prints_bold() -> bool:
    """Return True if the running command prints Markdown or LaTeX, in which the best value can be bold."""
    file = FORMAT_BY_SUFFIX[OUTPUT.file.suffix] if OUTPUT.file is not None else "table"
    return {OUTPUT.format, file} & {"markdown", "latex"} != set()


def plot_findings(findings: Sequence[Finding], protocol: Protocol | None = None) -> None:
    """Plot findings to the file given by `--plot`, if any, with the label styles of the protocol."""
    if OUTPUT.plot is None:
        return
    from finecomb.reporting.figures import estimate_plots  # imported only for --plot, since it is slow to load

    estimate_plots.plot_findings(findings, label_styles(protocol) if protocol else None).save(OUTPUT.plot)
    print_note(f"{OUTPUT.plot}: plot with 95% intervals written")


def print_signature(signature: str, more: str = "") -> None:
    """Print the signature of the numbers if `-v` was passed."""
    if signature and OUTPUT.verbose:
        print_note(f"{signature}{more}")


def print_table_or_json(rows: list[Row], as_json_: bool, title: str, empty: str, notes: Iterable[str] = ()) -> None:
    """Print rows as a table or as one JSON object."""
    if as_json_:
        write_table_to_requested_file(rows, title)
        typer.echo(format_json_tables(rows, notes=list(notes)))
    else:
        print_table(rows, title, empty)
        for note in notes:
            print_note(note)


_INTERVALS = " (95% intervals; --json adds the fields that differ by row)"


def ask_to_trust_endpoint(call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Call a public function. On a terminal, ask whether the address that the study names for a model is trusted."""
    from finecomb.annotators.llm.endpoint_consent import UnconfirmedEndpointError

    try:
        return call(*arguments, **more)
    except UnconfirmedEndpointError as error:
        if not (err.is_terminal and sys.stdin.isatty()):
            raise
        print_note(error.format_message(format_as_flag))
        if not typer.confirm("Send the texts to this address, now and later?", err=True):
            raise
        return call(*arguments, trust_endpoint=True, **more)


def shows_progress() -> bool:
    """Return True if standard error is a terminal, on which progress can be shown."""
    return err.is_terminal


def print_result(result: Result, as_json_: bool, table_rows: Sequence[Row] = ()) -> None:
    """Print the result of a public function: notes, then a table in the format given by `--format` or a JSON object.

    `table_rows` replaces the rows of the printed table. `--plot` also plots the estimates; `-v` prints the signature.
    """
    print_notes(result.notes)
    if OUTPUT.plot is not None:
        result.plot(OUTPUT.plot)
        print_note(f"{OUTPUT.plot}: plot with 95% intervals written")
    rows: Sequence[Row]
    rows, signature = finding_rows(result) if isinstance(result, Findings) else (result.rows(), result.signature)
    if as_json_:
        write_table_to_requested_file(table_rows or rows, result.title)
        typer.echo(format_json_tables(rows, signature, [with_flags(note) for note in result.notes]))
        return
    print_table(table_rows or rows, result.title)
    print_signature(signature, _INTERVALS if isinstance(result, Findings) else "")
