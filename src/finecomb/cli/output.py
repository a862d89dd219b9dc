"""Output flags: `--format`, `--table-out` and `-v` for commands with `--json`; `--plot` for those with estimates.

The flags are added when a command is loaded, and their values are stored here for the one command that runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from finecomb.core.errors import FinecombError
from finecomb.reporting.tables import FORMAT_BY_SUFFIX, TableFormat

PLOT_SUFFIXES = (".svg", ".png", ".pdf")
"""Suffixes of figure files, defined here because `estimate_plots`, which draws figures, is slow to import."""


@dataclass
class TableOutput:
    """Values of the output flags of the running command."""

    format: TableFormat = "table"
    file: Path | None = None
    plot: Path | None = None
    verbose: bool = False
    written: list[Path] = field(default_factory=list)
    """Files written so far; a second table goes to a second file."""

    def next_file(self) -> Path:
        """Return the path for the next table: FILE, then FILE-2 and so on."""
        assert self.file is not None
        number = len(self.written) + 1
        path = self.file if number == 1 else self.file.with_stem(f"{self.file.stem}-{number}")
        self.written.append(path)
        return path


OUTPUT = TableOutput()
"""Output flags of the running command; reset for every command."""


@contextlib.contextmanager
def keep_output_flags() -> Iterator[None]:
    """Restore the running command's output flags after the block, which parses the flags of a planned table."""
    before = vars(OUTPUT) | {"written": list(OUTPUT.written)}
    try:
        yield
    finally:
        vars(OUTPUT).update(before)


COMMANDS_WITHOUT_TABLES = ("check", "show")
"""Commands with `--json` that print no tables."""
COMMANDS_WITH_PLOT = ("measure", "agree", "test", "score", "power", "calibrate", "estimate")
"""Commands whose estimates can be plotted."""


def with_output_flags(command: Any) -> Any:
    """Add the output flags to a command that prints tables; called once when the command is loaded."""
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
    """Return flags built by Typer, so that their help and errors look like those of other flags."""
    flags = typer.Typer(add_completion=False)
    flags.command()(declarations)
    return [flag for flag in typer.main.get_command(flags).params if flag.name != "help"]


def _flag_declarations(
    table_format: Annotated[
        TableFormat,
        typer.Option(
            "--format",
            help="Format of printed tables.",
            callback=lambda value: _set_flag("format", value),
            is_eager=True,
            expose_value=False,
        ),
    ] = "table",
    table_file: Annotated[
        Path | None,
        typer.Option(
            "--table-out",
            help="Also write the table to this file (`.csv`, `.md`, `.tex` or `.json`).",
            callback=lambda value: _set_flag("file", value),
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
            help="Also print the signature, which describes how the numbers were computed.",
            callback=lambda value: _set_flag("verbose", value),
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Declare the output flags; the function is never called."""


def _plot_declaration(
    plot_file: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Plot the numbers with their intervals to this file (`.svg`, `.png` or `.pdf`).",
            callback=lambda value: _set_flag("plot", value),
            is_eager=True,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Declare the flag `--plot`; the function is never called."""


def _set_flag(name: str, value: Any) -> Any:
    """Store the value of an output flag in `OUTPUT`; a file must have a suffix of a known type."""
    if name == "file" and value is not None and value.suffix not in FORMAT_BY_SUFFIX:
        raise FinecombError(f"--table-out {value}: unknown file type; use one of {', '.join(FORMAT_BY_SUFFIX)}")
    if name == "plot" and value is not None and value.suffix.lower() not in PLOT_SUFFIXES:
        raise FinecombError(f"--plot {value}: unknown file type; use one of {', '.join(PLOT_SUFFIXES)}")
    if name == "format":  # Click calls this once per command, even if the flag was not passed
        OUTPUT.written = []
    setattr(OUTPUT, name, value)
    return value


def _resolve_json_flag(context: Any, parameter: Any, value: bool) -> bool:
    if value and OUTPUT.format not in ("table", "json"):
        raise FinecombError(f"--json and --format {OUTPUT.format} cannot be used together")
    return value or OUTPUT.format == "json"
