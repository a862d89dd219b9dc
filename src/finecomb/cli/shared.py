"""What all commands share: the app, the two consoles, common options, progress, notes and results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from finecomb import formats
from finecomb.cli.commands import app as app
from finecomb.cli.output import OUTPUT
from finecomb.core.errors import flag_style
from finecomb.core.estimate import Finding
from finecomb.core.notes import ParameterNote
from finecomb.core.palette import label_styles
from finecomb.core.phase_names import parse_phases as parse_phases
from finecomb.core.protocol import Protocol
from finecomb.core.results import Findings, Result
from finecomb.core.study import Study, StudyItem
from finecomb.formats.atomic_file import write_file
from finecomb.formats.base import parse_columns
from finecomb.reporting.tables import FORMAT_BY_SUFFIX, Row, as_json, finding_rows, format_table, print_rows

_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160  # no window sets the width of a pipe
out = Console(width=_WIDTH, highlight=False, markup=False, emoji=False)  # texts may hold [brackets] and :words:
err = Console(stderr=True, highlight=False, markup=False, emoji=False)

StudyPath = Annotated[
    Path,
    typer.Argument(help="A study's folder, or a file in any format that `finecomb formats` lists.", show_default=False),
]
From = Annotated[
    str, typer.Option("--from", help="Format of the input, when it cannot be guessed.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
ProtocolName = Annotated[
    str, typer.Option("--protocol", "-p", help="A shipped protocol's name or your YAML file.", show_default=False)
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map", help="OURS=THEIRS: what a table calls one of our columns, e.g. text=Body.", show_default=False
    ),
]


def track_records(items: Iterable[StudyItem]) -> Iterator[StudyItem]:
    """Pass records on with a counter on standard error, shown only to people."""
    if not err.is_terminal:
        yield from items
        return
    from rich.progress import (
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )  # nobody waits for what is not shown

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} records"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("reading")
        for item in items:
            progress.advance(task)
            yield item


def read(path: Path, from_: str = "") -> Study:
    """A study from any format, with progress and the reader's notes."""
    study = formats.read(path, from_, watch=track_records)
    for note in study.notes:
        print_note(note)
    return study


def print_note(line: str) -> None:
    """A note for people, on standard error."""
    err.print(Text(f"note: {with_flags(line)}", "dim"), soft_wrap=True)


def with_flags(note: str) -> str:
    """Return a note with the parameters that it names as flags."""
    return note.text(flag_style) if isinstance(note, ParameterNote) else note


def print_notes(lines: Iterable[str]) -> None:
    """Several notes for people."""
    for line in lines:
        print_note(line)


def print_outcome(path: Path, words: str) -> None:
    """The one-line result of a command that wrote or checked something, never wrapped."""
    out.print(f"{path}: {words}", soft_wrap=True)


def format_count(number: int, thing: str) -> str:
    """`1 text`, `2 texts`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def resume_note(count: int, thing: str) -> list[str]:
    """A note where parts of the work were there from an earlier run."""
    return [f"{format_count(count, thing)} done by an earlier run that was cut off"] if count else []


def parse_mapping(pairs: list[str] | None) -> dict[str, str]:
    """What `--map OURS=THEIRS` says."""
    return parse_columns(pairs or ())


def print_table(
    rows: Sequence[Row],
    title: str = "",
    empty: str = "Nothing to show.",
    digits: int = 3,
    flat: Sequence[Row] = (),
    paper: Sequence[Row] = (),
) -> None:
    """Print a table as `--format` says, and into the file of `--table-out`.

    Where `rows` are for a terminal only, `flat` are the rows for programs, with every digit in a cell of its own, and
    `paper` those for Markdown and LaTeX, e.g. with intervals.
    """
    by_format = {"csv": flat, "json": flat, "markdown": paper, "latex": paper}
    if OUTPUT.file is not None and rows:
        path = OUTPUT.next_file()
        format = FORMAT_BY_SUFFIX[path.suffix]
        write_file(path, format_table(by_format[format] or rows, format, title, digits) + "\n")
        print_note(f"{path}: {format_count(len(rows), 'row')} written")
    if OUTPUT.format == "table" or not rows:
        print_rows(out, rows, title, empty, digits)
    else:
        typer.echo(format_table(by_format[OUTPUT.format] or rows, OUTPUT.format, title, digits))


def prints_bold() -> bool:
    """Whether a table of the running command goes where the best number can be bold: Markdown or LaTeX."""
    file = FORMAT_BY_SUFFIX[OUTPUT.file.suffix] if OUTPUT.file is not None else "table"
    return {OUTPUT.format, file} & {"markdown", "latex"} != set()


def plot_findings(findings: Sequence[Finding], protocol: Protocol | None = None) -> None:
    """Draw findings into the file of `--plot`, where one was given; labels look as the protocol says."""
    if OUTPUT.plot is None:
        return
    from finecomb.reporting.figures.estimate_plots import save_plot  # figures are loaded only for who wants one

    save_plot(findings, OUTPUT.plot, label_styles(protocol) if protocol else None)
    print_note(f"{OUTPUT.plot}: drawn, with 95% intervals")


def print_signature(signature: str, more: str = "") -> None:
    """How numbers were made, for those who ask with `-v`; for others, that they can."""
    if signature and OUTPUT.verbose:
        print_note(f"{signature}{more}")


def print_table_or_json(rows: list[Row], as_json_: bool, title: str, empty: str, notes: Iterable[str] = ()) -> None:
    """Print rows as a table or as one JSON object."""
    if as_json_:
        typer.echo(as_json(rows, notes=list(notes)))
    else:
        print_table(rows, title, empty)
        for note in notes:
            print_note(note)


_INTERVALS = " (95% intervals; with --json each row adds what is particular to it)"


def shows_progress() -> bool:
    """Return whether a person watches standard error, so that progress is worth drawing."""
    return err.is_terminal


def print_result(result: Result, as_json_: bool, table_rows: Sequence[Row] = ()) -> None:
    """Print the result of a public function: its notes, then its table as `--format` says or one JSON object.

    `table_rows` are the rows of the table where they differ from those of the JSON object. With `--plot` its estimates
    are drawn too; with `-v` the signature is printed.
    """
    print_notes(result.notes)
    if OUTPUT.plot is not None:
        result.plot(OUTPUT.plot)
        print_note(f"{OUTPUT.plot}: drawn, with 95% intervals")
    rows: Sequence[Row]
    rows, signature = finding_rows(result) if isinstance(result, Findings) else (result.rows(), result.signature)
    if as_json_:
        typer.echo(as_json(rows, signature))
        return
    print_table(table_rows or rows, result.title)
    print_signature(signature, _INTERVALS if isinstance(result, Findings) else "")
