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

from finecomb import formats
from finecomb.cli.shared import app, out
from finecomb.core.errors import FinecombError
from finecomb.core.study import Item, Study
from finecomb.report.tables import Row
from finecomb.simulate.people import CrowdTraits
from finecomb.simulate.redraw import redrawn

_ALPHA = 0.05
_NOT_A_NAME = ("df", "why", "signature")


def print_planned(study: Study, planned: Sequence[str]) -> None:
    """Print every planned table of a study."""
    with _saved(study.items()) as path:
        for line in planned:
            out.print(f"\nPlanned: {line}", soft_wrap=True)
            _run(line, path)


def power_rows(study: Study, planned: Sequence[str], traits: CrowdTraits, seed: int, runs: int) -> list[Row]:
    """How often each row of the planned tests had p below .05 when other people with the same skill did the work."""
    tests = [line for line in planned if shlex.split(line)[0] == "test"]
    protocol = study.protocols[study.settings.protocols[0]] if study.settings.protocols else study.protocol()
    hits: dict[tuple[str, str], list[bool]] = {}
    for run in range(runs if tests else 0):
        with _saved(redrawn(study, protocol, traits, seed, run)) as path:
            for line in tests:
                for row in _rows(line, path):
                    hits.setdefault((line, _name(row)), []).append(float(row["p"]) < _ALPHA)
    return [_power_row(line, name, found) for (line, name), found in hits.items()]


def _power_row(line: str, name: str, found: Sequence[bool]) -> Row:
    import numpy as np

    from finecomb.measure.audit import wilson

    share = sum(found) / len(found)
    low, high = wilson(np.array([share]), np.array([float(len(found))]))
    bounds = {"low": round(float(low[0]), 3), "high": round(float(high[0]), 3)}
    return {"planned": line, "row": name, "power": round(share, 3), **bounds, "runs": len(found)}


def _rows(line: str, path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a planned table that have a p."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        _run(line, path, "--json")
    for row in json.loads(text.getvalue())["table"]:
        if isinstance(row.get("p"), int | float):
            yield row


def _name(row: dict[str, Any]) -> str:
    """What tells a row from the others of its table: everything in it that is not a number."""
    return " ".join(str(value) for key, value in row.items() if isinstance(value, str) and key not in _NOT_A_NAME)


def _run(line: str, path: Path, *more: str) -> None:
    command, *words = shlex.split(line)
    try:
        app([command, str(path), *words, *more], standalone_mode=False)
    except FinecombError as error:
        raise FinecombError(f"planned {line!r}: {error}") from None


@contextlib.contextmanager
def _saved(items: Iterable[Item]) -> Iterator[Path]:
    """A study in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "rehearsed"
        formats.save(items, path)
        yield path
