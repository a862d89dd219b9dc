"""The tables that a study plans, computed from a rehearsed one, and how powerful the planned tests are."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
import typer.main

from finecomb import formats
from finecomb.annotators.simulated.resimulation import resimulate_study
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.cli.shared import app, out, print_note
from finecomb.core.errors import FinecombError, flag_style
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import planned_problem
from finecomb.reporting.tables import Row

_ALPHA = 0.05
_REPORT_INTERVAL = 10  # repetitions between two lines about how far they are
_UsageError: Any = typer.BadParameter.__base__  # of the click that typer brings or depends on
_IGNORED_COLUMNS = ("df", "why", "signature")


def planned_problems(planned: Sequence[str]) -> list[str]:
    """What is wrong with planned tables that `finecomb check` lets pass: options that their commands do not have."""
    group = typer.main.get_command(app)
    readable = [line for line in planned if not planned_problem(line)]
    found = [(line, _usage_problem(group, shlex.split(line))) for line in readable]
    return [f"planned {line!r}: {problem}" for line, problem in found if problem]


def _usage_problem(group: Any, words: Sequence[str]) -> str:
    """Why a command would not take these words, or nothing."""
    if {"-h", "--help"} & set(words):
        return "shows a help text and makes no table"
    context = typer.Context(group, info_name="finecomb")
    _, command, _ = group.resolve_command(context, list(words))
    try:
        command.make_context(words[0], ["study", *words[1:]], parent=context)
    except _UsageError as error:
        return " ".join(error.format_message().split())
    return ""


def print_planned_tables(study: Study, planned: Sequence[str]) -> list[str]:
    """Print every planned table of a study; returns the lines that gave one, and says why others did not."""
    made = []
    with _save_temporarily(study.items()) as path:
        for line in planned:
            out.print(f"\nPlanned: {line}", soft_wrap=True)
            try:
                _run_planned(line, path)
            except FinecombError as error:
                print_note(error.text(flag_style))
            else:
                made.append(line)
    return made


def power_rows(study: Study, planned: Sequence[str], traits: CrowdTraits, seed: int, runs: int) -> list[Row]:
    """How often each row of the planned tests had p below .05 when other people with the same skill did the work."""
    tests = [line for line in planned if shlex.split(line)[0] == "test"]
    protocol = study.protocols[study.settings.protocols[0]] if study.settings.protocols else study.protocol()
    hits: dict[tuple[str, str], list[bool]] = {}
    for run in range(runs):
        tests = [line for line in tests if run == 0 or any(line == tested for tested, _ in hits)]  # those with a p
        if not tests:
            break
        with _save_temporarily(resimulate_study(study, protocol, traits, seed, run)) as path:
            for line in tests:
                for row in _test_rows(line, path):
                    hits.setdefault((line, _row_name(row)), []).append(float(row["p"]) < _ALPHA)
        if (run + 1) % _REPORT_INTERVAL == 0 and run + 1 < runs:
            print_note(f"power: {run + 1:,} of {runs:,} repetitions done")
    return [_power_row(line, name, found) for (line, name), found in hits.items()]


def _power_row(line: str, name: str, found: Sequence[bool]) -> Row:
    import numpy as np

    from finecomb.statistics.measures.mark_audit import wilson_interval

    share = sum(found) / len(found)
    low, high = wilson_interval(np.array([share]), np.array([float(len(found))]))
    bounds = {"low": round(float(low[0]), 3), "high": round(float(high[0]), 3)}
    return {"planned": line, "row": name, "power": round(share, 3), **bounds, "runs": len(found)}


def _test_rows(line: str, path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a planned table that have a p."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        _run_planned(line, path, *_no_interval_options(line), "--json")
    for row in json.loads(text.getvalue())["table"]:
        if isinstance(row.get("p"), int | float):
            yield row


def _no_interval_options(line: str) -> Sequence[str]:
    """Options that save the resamples of intervals, where p is not made of them."""
    return ("--draws", "0") if "human-or-machine" in shlex.split(line) else ()


def _row_name(row: dict[str, Any]) -> str:
    """What tells a row from the others of its table: everything in it that is not a number."""
    return " ".join(str(value) for key, value in row.items() if isinstance(value, str) and key not in _IGNORED_COLUMNS)


def _run_planned(line: str, path: Path, *more: str) -> None:
    command, *words = shlex.split(line)
    try:
        app([command, str(path), *words, *more], standalone_mode=False)
    except FinecombError as error:
        raise FinecombError(f"planned {line!r}: {error.args[0]}") from None


@contextlib.contextmanager
def _save_temporarily(items: Iterable[StudyItem]) -> Iterator[Path]:
    """A study in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "rehearsed"
        formats.save(items, path)
        yield path
