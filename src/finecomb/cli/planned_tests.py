"""The tables that a study plans, checked by the flags of their commands and printed from a trial run."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
import typer.main

from finecomb import formats
from finecomb.cli.shared import app, out, print_note
from finecomb.core.errors import FinecombError, flag_style
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import planned_problem

_UsageError: Any = typer.BadParameter.__base__  # of the click that typer brings or depends on


def planned_problems(planned: Sequence[str]) -> list[str]:
    """What is wrong with planned tables that `finecomb check` lets pass: options that their commands do not have."""
    group = typer.main.get_command(app)
    readable = [line for line in planned if not planned_problem(line)]
    found = [(line, _usage_problem(group, shlex.split(line))) for line in readable]
    return [f"planned {line!r}: {problem}" for line, problem in found if problem]


def _usage_problem(group: Any, words: Sequence[str]) -> str:
    """Why a command would not take these words, or nothing."""
    if {"-h", "--help"} & set(words):
        return "shows a help text and makes no table"
    context = typer.Context(group, info_name="finecomb")
    _, command, _ = group.resolve_command(context, list(words))
    try:
        command.make_context(words[0], ["study", *words[1:]], parent=context)
    except _UsageError as error:
        return " ".join(error.format_message().split())
    return ""


def print_planned_tables(study: Study, planned: Sequence[str]) -> list[str]:
    """Print every planned table of a study; returns the lines that gave one, and says why others did not."""
    made = []
    with _save_temporarily(study.items()) as path:
        for line in planned:
            out.print(f"\nPlanned: {line}", soft_wrap=True)
            try:
                _run_planned(line, path)
            except FinecombError as error:
                print_note(error.text(flag_style))
            else:
                made.append(line)
    return made


def _run_planned(line: str, path: Path) -> None:
    command, *words = shlex.split(line)
    try:
        app([command, str(path), *words], standalone_mode=False)
    except FinecombError as error:
        raise FinecombError(f"planned {line!r}: {error.text(flag_style)}") from None


@contextlib.contextmanager
def _save_temporarily(items: Iterable[StudyItem]) -> Iterator[Path]:
    """A study in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "rehearsed"
        formats.save(items, path)
        yield path
