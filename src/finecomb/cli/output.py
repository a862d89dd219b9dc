"""How a command gives its tables: `--format`, `--table-out` and `-v`, on every command that has `--json`.

Commands whose findings can be drawn have `--plot` too.

The flags are put on commands when they are loaded, and what they say is kept here for the one command that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from finecomb.core.errors import FinecombError
from finecomb.reporting.tables import FORMAT_BY_SUFFIX, TableFormat

PLOT_SUFFIXES = (".svg", ".png", ".pdf")
"""Endings of a picture, as `finecomb.reporting.figures.estimate_plots` draws them; that module is loaded only for who
wants one.
"""


@dataclass
class TableOutput:
    """What the flags of the running command say about its tables."""

    format: TableFormat = "table"
    file: Path | None = None
    plot: Path | None = None
    verbose: bool = False
    written: list[Path] = field(default_factory=list)
    """Files that got a table so far; a second table goes into a second file."""

    def next_file(self) -> Path:
        """Where the next table goes: FILE, then FILE-2 and so on."""
        assert self.file is not None
        number = len(self.written) + 1
        path = self.file if number == 1 else self.file.with_stem(f"{self.file.stem}-{number}")
        self.written.append(path)
        return path


OUTPUT = TableOutput()
"""Of the running command; every command starts with a fresh one."""


COMMANDS_WITHOUT_TABLES = ("check", "show")
"""Commands with `--json` whose other result is no table."""
COMMANDS_WITH_PLOT = ("measure", "agree", "test", "score", "power", "calibrate", "estimate")
"""Commands whose findings can be drawn."""


def with_output_flags(command: Any) -> Any:
    """The command with the flags, where it prints tables; called once when it is loaded."""
    names = [parameter.name for parameter in command.params]
    if "as_json_" not in names or "table_format" in names or command.name in COMMANDS_WITHOUT_TABLES:
        return command
    as_json = command.params[names.index("as_json_")]
    as_json.callback = _resolve_json_flag
    command.params += _build_flags(_flag_declarations)
    OUTPUT.plot = None
    if command.name in COMMANDS_WITH_PLOT:
        command.params += _build_flags(_plot_declaration)
    return command


def _build_flags(declarations: Callable[..., None]) -> list[Any]:
    """The flags as Typer makes them, so that help and errors look like those of all others."""
    flags = typer.Typer(add_completion=False)
    flags.command()(declarations)
    return [flag for flag in typer.main.get_command(flags).params if flag.name != "help"]


def _flag_declarations(
    table_format: Annotated[
        TableFormat,
        typer.Option(
            "--format",
            help="How tables are printed.",
            callback=lambda value: _set_format(value),
            is_eager=True,
            expose_value=False,
        ),
    ] = "table",
    table_file: Annotated[
        Path | None,
        typer.Option(
            "--table-out",
            help="Write the table into this file too; its ending says how: .csv, .md, .tex or .json.",
            callback=lambda value: _set_file(value),
            is_eager=True,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Show how the numbers were made.",
            callback=lambda value: _set_verbose(value),
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Nothing: its parameters are the flags."""


def _plot_declaration(
    plot_file: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Draw the numbers with their intervals into this file; its ending says how: .svg, .png or .pdf.",
            callback=lambda value: _set_plot(value),
            is_eager=True,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Nothing: its parameter is the flag."""


def _set_format(value: TableFormat) -> TableFormat:
    OUTPUT.format = value
    OUTPUT.written = []
    return value


def _set_file(value: Path | None) -> Path | None:
    if value is not None and value.suffix not in FORMAT_BY_SUFFIX:
        raise FinecombError(f"--table-out {value}: the ending says the format: {', '.join(FORMAT_BY_SUFFIX)}")
    OUTPUT.file = value
    return value


def _set_plot(value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() not in PLOT_SUFFIXES:
        raise FinecombError(f"--plot {value}: the ending says the form; it is one of {', '.join(PLOT_SUFFIXES)}")
    OUTPUT.plot = value
    return value


def refuse_plot(what: str) -> None:
    """An error where `--plot` was given for something that cannot be drawn."""
    if OUTPUT.plot is not None:
        raise FinecombError(f"--plot {OUTPUT.plot}: {what} cannot be drawn; leave --plot out")


def _set_verbose(value: bool) -> bool:
    OUTPUT.verbose = value
    return value


def _resolve_json_flag(context: Any, parameter: Any, value: bool) -> bool:
    if value and OUTPUT.format not in ("table", "json"):
        raise FinecombError(f"--json and --format {OUTPUT.format} contradict each other; leave one of the two out")
    return value or OUTPUT.format == "json"
