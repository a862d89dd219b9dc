"""The command `rehearse`: a trial run with simulated participants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats
from finecomb.api.collection import TrialRun
from finecomb.api.collection import rehearse as fc_rehearse
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.planned_tests import planned_problems, print_planned_tables
from finecomb.cli.shared import (
    AsJson,
    Force,
    StudyPath,
    app,
    out,
    print_note,
    print_outcome,
    print_table,
    print_table_or_json,
    read,
)
from finecomb.core.errors import FinecombError

_VISITS_PER_NOTE = 100
_REPETITIONS_PER_NOTE = 10


@app.command()
@derive_flags_from(fc_rehearse)
def rehearse(
    study: StudyPath,
    call: PublicFunctionCall,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Study to write, including the annotations of the simulated participants.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(min=0, help="Number of simulated repetitions of the planned tests, to estimate power (0 = none)."),
    ] = 50,
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Computes the tables under `planned` in study.yaml, and the power of planned tests.

    Example: `finecomb rehearse my-study --rejected 0.186 --leaves 0.05 -o rehearsed`
    """
    whole = read(study)
    if output and output.exists() and not force:
        raise FinecombError(f"{output} already exists; choose another name or pass --force")
    if problems := planned_problems(whole.settings.planned):
        raise FinecombError("\n".join(problems))
    trial = call(whole, runs=0, progress=_note_visits)
    print_table_or_json(trial.rows(), as_json_, trial.title, "No participants.", [] if as_json_ else trial.notes)
    if output:  # written before the tables, so that a failing table cannot lose the simulated annotations
        formats.save_records(trial.study.items(), output, force=force)
        if not as_json_:
            print_outcome(output, "study with the simulated annotations written; every command can read it")
    is_complete = as_json_ or _print_planned_tests(trial, runs)
    if not is_complete or not trial.is_filled:
        raise typer.Exit(1)


def _print_planned_tests(trial: TrialRun, runs: int) -> bool:
    """Print the planned tables and the power of the planned tests; return whether every table succeeded."""
    planned = trial.study.settings.planned
    if not planned:
        print_note("no tables are planned; list them in study.yaml, e.g. planned: [test --what scores --by condition]")
        return True
    made = print_planned_tables(trial.study, planned)
    if power := trial.compute_power(runs, _note_repetitions, made):
        out.print()
        print_table(power.rows(), power.title)
    return len(made) == len(planned)


def _note_visits(done: int, needed: int | None) -> None:
    if done % _VISITS_PER_NOTE == 0:
        print_note(f"{done:,} participants so far{f'; {needed:,} are needed' if needed else ''}")


def _note_repetitions(done: int, runs: int | None) -> None:
    if done % _REPETITIONS_PER_NOTE == 0 and done < (runs or 0):
        print_note(f"power: {done:,} of {runs:,} repetitions")
