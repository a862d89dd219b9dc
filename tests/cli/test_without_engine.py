"""One seam: `--engine` is the same wherever it is, and is refused with a reason everywhere else."""

from __future__ import annotations

import pytest
import typer.main

from finecomb.cli import app
from finecomb.cli.commands import COMMANDS, load_commands
from finecomb.cli.without_engine import REASONS, WITH_ENGINE
from finecomb.core.options import option_specs
from finecomb.engine.options import PartitionOptions
from tests.test_cli import refused


def test_every_command_with_an_engine_has_the_same_flags() -> None:
    load_commands()
    commands = typer.main.get_group(app).commands
    with_engine = {name for name, command in commands.items() if any(flag.name == "engine" for flag in command.params)}
    assert with_engine == set(WITH_ENGINE)
    specs = option_specs(PartitionOptions)
    for name in WITH_ENGINE:
        flags = {flag.name: flag for flag in commands[name].params}
        assert [(getattr(flags[spec], "help", ""), flags[spec].opts) for spec in specs] == [
            (spec.help, [spec.flag]) for spec in specs.values()
        ]
    kept = {name for name in WITH_ENGINE if any(flag.name == "partitions" for flag in commands[name].params)}
    assert kept == set(WITH_ENGINE)


@pytest.mark.parametrize("name", ["measure", "annotate", "convert"])
def test_other_commands_say_why_they_have_none(name: str) -> None:
    assert name not in WITH_ENGINE
    message = refused(name, "study", "--engine", "ray")
    reason = REASONS.get(name, "it does all its work in one process")
    assert (
        message == f"--engine does not apply to {name}: {reason}; it applies to agree, criticize, detect, stress, test"
    )


def test_reasons_are_of_commands_that_there_are() -> None:
    assert set(REASONS) - {"attack"} <= {row.name for row in COMMANDS}
