"""Short help for commands with many flags: `--help` shows the common flags, and `--help-all` shows all flags."""

from __future__ import annotations

import typing
from typing import Any

import typer
import typer.main

COMMON_FLAGS = {
    "agree": "measure who level by label where annotator kind protocol draws seed plot_file",
    "annotate": "model name prompt limit dry_run samples temperature budget price concurrency base_url key_env",
    "calibrate": "judge people epsilon margin question by keep html protocol where seed",
    "criticize": "critic by show output fit save where paired draws seed",
    "detect": "detector output where protocol threshold",
    "generate": "model output limit dry_run samples top_p temperature words seed budget concurrency base_url key_env",
    "gold": "output min_votes align size annotator kind where protocol by seed",
    "import": "into output use_map save_map map labels no_row offsets annotator protocol force",
    "measure": "measure by sort label drop where kind annotator protocol tokens draws seed plot_file grid",
    "power": "half_width difference annotations annotators measure label judge runs seed",
    "prepare": "output prompt words overlap balance seed",
    "score": "gold judge match by where protocol report draws seed plot_file",
    "test": "what by measure paired correction each_label label where protocol draws seed plot_file",
    "train": "detector output gold encoder epochs test_folds seed",
    "validate": "judge gold draws seed base_url key_env budget price",
}
"""Flags that `--help` shows, by command; a command that is not listed shows all of its flags."""
ALWAYS_SHOWN = ("as_json_", "table_format", "table_file", "help", "help_all")


def fold_rare_flags(command: Any) -> Any:
    """Limit `--help` of a command to its common flags, and add `--help-all`; called once per command."""
    if command.name not in COMMON_FLAGS or any(parameter.name == "help_all" for parameter in command.params):
        return command
    shown_flags = {*COMMON_FLAGS[command.name].split(), *ALWAYS_SHOWN}
    rare = [flag for flag in command.params if flag.param_type_name == "option" and flag.name not in shown_flags]
    help_all = typer.Typer(add_completion=False)
    help_all.command()(_help_all)
    command.params += [flag for flag in typer.main.get_command(help_all).params if flag.name == "help_all"]
    format_help = command.format_help

    def format_short_help(context: Any, formatter: Any) -> None:
        """Hide the rare flags while the help is printed; completion and the documentation still list them."""
        for flag in rare:
            flag.hidden = not context.meta.get(_SHOW_ALL)
        try:
            format_help(context, formatter)
        finally:
            for flag in rare:
                flag.hidden = False

    command.format_help = format_short_help
    return command


_SHOW_ALL = "finecomb.help_all"


def _print_full_help(context: typer.Context, is_wanted: bool) -> None:
    if is_wanted:
        context.meta[_SHOW_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


def _help_all(
    help_all: typing.Annotated[
        bool,
        typer.Option(
            "--help-all", help="Show all options.", callback=_print_full_help, is_eager=True, expose_value=False
        ),
    ] = False,
) -> None:
    """Declare the flag `--help-all`; the function is never called."""
