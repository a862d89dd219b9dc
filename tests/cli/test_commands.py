from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest
import typer.main
from typer.testing import CliRunner

import finecomb.cli
from finecomb.cli import app
from finecomb.cli.commands import COMMANDS, CommandRow, Panel, load_commands


def registered() -> set[str]:
    for module in pkgutil.iter_modules(finecomb.cli.__path__):
        importlib.import_module(f"finecomb.cli.{module.name}")
    commands = {info.name or getattr(info.callback, "__name__", "") for info in app.registered_commands}
    return commands | {info.name for info in app.registered_groups if info.name}


def test_every_command_has_one_row_and_every_row_a_command() -> None:
    assert sorted(row.name for row in COMMANDS) == sorted(registered())


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: str(row.name))
def test_a_row_says_what_the_docstring_says(row: CommandRow) -> None:
    load_commands()
    command = typer.main.get_group(app).commands[row.name]
    first = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    assert row.help == " ".join(first.split())


def test_the_help_shows_commands_in_the_order_of_a_study() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    places = [text.index(f"─ {panel} ─") for panel in Panel]
    assert places == sorted(places)
    assert text.index("│ new ") == min(text.index(f"│ {row.name} ") for row in COMMANDS)


def test_a_mistyped_command_is_told_its_neighbour() -> None:
    result = CliRunner().invoke(app, ["mesure"])
    assert result.exit_code == 2
    assert "Did you mean 'measure'?" in result.output
