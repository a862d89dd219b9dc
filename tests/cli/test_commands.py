from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

import finecomb as fc
import finecomb.cli
from finecomb.cli import app
from finecomb.cli.commands import COMMANDS, CommandRow, load_commands


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


def test_a_mistyped_command_is_told_its_neighbour() -> None:
    result = CliRunner().invoke(app, ["mesure"])
    assert result.exit_code == 2
    assert "Did you mean 'measure'" in result.output


HEAVY = "altair fastapi numpy openpyxl polars pydantic regex scipy sqlalchemy uvicorn vl_convert yaml".split()


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_nothing_heavy_is_loaded_before_a_command_is_called(option: str) -> None:
    loaded = modules_of(option)
    assert "typer" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    assert {name for name in loaded if name.startswith("finecomb")} == {
        "finecomb", "finecomb.cli", "finecomb.cli.commands", "finecomb.core", "finecomb.core.errors",
        "finecomb.version",
    }  # fmt: skip


def test_a_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    fc.write(fc.demo(), tmp_path / "study")
    loaded = modules_of("measure", str(tmp_path / "study"), "--draws", "0")
    assert "polars" in loaded
    others = ["altair", "fastapi", "openpyxl", "sqlalchemy", "uvicorn", "vl_convert", "finecomb.server"]
    assert [name for name in others if name in loaded] == []


def modules_of(*arguments: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    run = f"{code}; from finecomb.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", run, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())
