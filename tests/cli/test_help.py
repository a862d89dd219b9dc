"""Help texts: short by default, complete on request."""

from __future__ import annotations

import pytest
import typer.main
from typer.testing import CliRunner

from finecomb.cli.commands import COMMANDS, Panel, app, load_commands
from finecomb.cli.help import COMMON_FLAGS, fold_rare_flags
from finecomb.cli.output import with_output_flags

MAX_LINES = 80
"""Two screens."""


def help_lines(*words: str) -> list[str]:
    result = CliRunner().invoke(app, [*words], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.mark.parametrize("name", COMMON_FLAGS)
def test_common_flags_are_flags_of_the_command(name: str) -> None:
    load_commands()
    command = fold_rare_flags(with_output_flags(typer.main.get_group(app).commands[name]))
    assert set(COMMON_FLAGS[name].split()) <= {parameter.name for parameter in command.params}


@pytest.mark.parametrize("name", [row.name for row in COMMANDS])
def test_help_fits_two_screens(name: str) -> None:
    assert len(help_lines(name, "--help")) <= MAX_LINES


def test_all_options_are_shown_on_request() -> None:
    short, full = help_lines("measure", "--help"), help_lines("measure", "--help-all")
    assert "--missing" not in "".join(short)
    assert "--missing" in "".join(full)
    assert "--help-all" in "".join(short)


def test_eight_commands_come_first() -> None:
    common = [row.name for row in COMMANDS if row.panel is Panel.COMMON]
    assert common == ["demo", "new", "import", "serve", "annotate", "measure", "agree", "report"]
    lines = "\n".join(help_lines("--help"))
    places = [lines.index(f"─ {panel} ─") for panel in Panel]
    assert places == sorted(places)
