"""Commands that do not spread their work: a hidden `--engine` says why there is none."""

from __future__ import annotations

from typing import Any

import typer
import typer.main

from finecomb.core.errors import FinecombError

WITH_ENGINE = ("agree", "criticize", "detect", "stress", "test")
"""Commands that have `finecomb.engine.options.EngineOptions` among their options."""
_MODELS = (
    "an endpoint is waited for, with --concurrency calls at a time, and a local model keeps all cores busy; serve a "
    "model on other machines and name them with --base-url"
)
_RESAMPLES = "its resamples are products of matrices, which take less time than to send the numbers to others"
REASONS = {
    "annotate": _MODELS,
    "generate": _MODELS,
    "attack": _MODELS,
    "measure": _RESAMPLES,
    "score": _RESAMPLES,
}
"""Why a command has no engine, where somebody might expect one."""


def with_engine_refused(command: Any) -> Any:
    """The command with a hidden `--engine` that says why there is none; called once when it is loaded."""
    if command.name in WITH_ENGINE or any(parameter.name == "refused_engine" for parameter in command.params):
        return command
    flags = typer.Typer(add_completion=False)
    flags.command()(_declaration(command.name))
    command.params += [flag for flag in typer.main.get_command(flags).params if flag.name == "refused_engine"]
    return command


def _declaration(name: str) -> Any:
    def refuse(value: str) -> str:
        if value:
            reason = REASONS.get(name, "it does all its work in one process")
            raise FinecombError(f"--engine does not apply to {name}: {reason}; it applies to {', '.join(WITH_ENGINE)}")
        return value

    def declaration(
        refused_engine: str = typer.Option("", "--engine", hidden=True, callback=refuse, expose_value=False),
    ) -> None:
        """Nothing: its parameter is the flag."""

    return declaration
