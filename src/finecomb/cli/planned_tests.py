"""Planned tables of a study: checked against the options of their commands, and printed for a trial run."""

from __future__ import annotations

import dataclasses
import importlib
import shlex
from collections.abc import Sequence
from typing import Any

import typer
import typer.main

from finecomb.cli.output import keep_output_flags
from finecomb.cli.shared import app, out, print_note
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.study import Study
from finecomb.core.study_checks import planned_table_problem

_UsageError: Any = typer.BadParameter.__base__  # defined by the click that typer vendors or depends on
PRINTER_BY_COMMAND = {
    "measure": ("statistics", "print_measures"),
    "agree": ("agreement", "print_agreement"),
    "gold": ("gold", "print_gold"),
    "test": ("agreement", "print_test"),
    "stats": ("studies", "print_counts"),
}
"""For each plannable command, the module of `finecomb.cli` and the function that computes and prints its table."""


def planned_problems(planned: Sequence[str]) -> list[str]:
    """Return problems that `finecomb check` does not report: options of planned tables that their commands lack."""
    readable = [line for line in planned if not planned_table_problem(line)]
    problems = [(line, _usage_problem(shlex.split(line))) for line in readable]
    return [f"planned {line!r}: {problem}" for line, problem in problems if problem]


def _usage_problem(words: Sequence[str]) -> str:
    """Return why a command line would be rejected, or an empty string if it is valid."""
    if {"-h", "--help"} & set(words):
        return "prints a help text, not a table"
    try:
        with keep_output_flags():
            _parse_flags(words)
    except _UsageError as error:
        return " ".join(error.format_message().split())
    return ""


def _parse_flags(words: Sequence[str]) -> typer.Context:
    """Parse the flags of a planned table as its command does; output flags are set for the running command."""
    group: Any = typer.main.get_command(app)
    parent = typer.Context(group, info_name="finecomb")
    _, command, _ = group.resolve_command(parent, list(words))
    context: typer.Context = command.make_context(words[0], ["study", *words[1:]], parent=parent)
    return context


def print_planned_tables(study: Study, planned: Sequence[str]) -> list[str]:
    """Print every planned table of a study, or a note if it fails; return the command lines that succeeded."""
    study = dataclasses.replace(study, origin="")  # the origin is a temporary file, whose path must not be printed
    succeeded: list[str] = []
    for line in planned:
        out.print(f"\nPlanned: {line}", soft_wrap=True)
        try:
            with keep_output_flags():
                words = shlex.split(line)
                context = _parse_flags(words)
                command: Any = context.command
                arguments = command.callback.bind_call(context, context.params)
                del arguments["study"], arguments["from_"]  # the study is in memory
                module, printer = PRINTER_BY_COMMAND[words[0]]
                getattr(importlib.import_module(f"finecomb.cli.{module}"), printer)(study, **arguments)
        except FinecombError as error:
            print_note(f"planned {line!r}: {error.format_message(format_as_flag)}")
        else:
            succeeded.append(line)
    return succeeded
